"""Workers of a group start when their leader accepts connections, or report why they still wait."""

import ast
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from devcluster.layout import free_ports
from dynamo_operator.component.wait_for_leader import script


@pytest.fixture
def waiting(tmp_path: Path) -> Callable[..., tuple[int, str]]:
    """Runs the script as a pod would, with the programs of a folder in front of all others."""
    path = tmp_path / "wait_for_leader.py"
    path.write_text(script(), encoding="utf-8")
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}

    def run(*arguments: str) -> tuple[int, str]:
        answer = subprocess.run(  # noqa: S603  # our own script
            [sys.executable, "-W", "error", str(path), *arguments],
            capture_output=True,
            text=True,
            env=environment,
            timeout=120,
            check=False,
        )
        assert "" == answer.stderr
        return answer.returncode, answer.stdout

    return run


@contextmanager
def a_leader(after_seconds: float = 0) -> Iterator[str]:
    """A port that accepts connections, from some time on."""
    (port,) = free_ports(1)
    if not after_seconds:
        with socket.create_server(("127.0.0.1", port)):
            yield str(port)
        return
    opened: list[socket.socket] = []
    address = ("127.0.0.1", port)
    timer = threading.Timer(after_seconds, lambda: opened.append(socket.create_server(address)))
    timer.start()
    yield str(port)
    timer.join()
    opened[0].close()


def a_ray(folder: Path, lines: str) -> None:
    """A program of that name."""
    path = folder / "ray"
    path.write_text(f"#!/bin/sh\n{lines}\n", encoding="utf-8")
    path.chmod(0o755)


Run = Callable[..., tuple[int, str]]


def test_a_leader_that_listens_is_not_waited_for(waiting: Run) -> None:
    with a_leader() as port:
        assert (0, f"the leader takes workers at 127.0.0.1:{port}\n") == (waiting("127.0.0.1", port, "5"))


def test_a_leader_that_comes_later_is_waited_for(waiting: Run) -> None:
    with a_leader(after_seconds=1) as port:
        code, said = waiting("127.0.0.1", port, "20")
    first, last = said.splitlines()
    assert (0, f"the leader takes workers at 127.0.0.1:{port}") == (code, last)
    assert first.startswith(f"waiting for the leader: nothing listens at 127.0.0.1:{port}")


def test_a_leader_that_never_comes_is_given_up_within_the_time_with_the_cause(waiting: Run) -> None:
    code, said = waiting("127.0.0.1", str(free_ports(1)[0]), "1")
    assert (1, True) == (code, "\ngave up after 1 s: nothing listens at 127.0.0.1:" in f"\n{said}")


@pytest.mark.parametrize("name", ["leader.invalid", "a b'c", "$(touch x)", "x" * 300])
def test_an_unresolvable_name_is_logged_unchanged(waiting: Run, name: str) -> None:
    code, said = waiting(name, "1", "0")
    assert (1, 1) == (code, len(said.splitlines()))
    assert f"gave up after 0 s: the name {name} does not resolve" in said


@pytest.mark.parametrize(
    ("lines", "cause"),
    [("echo not yet >&2; exit 1", "is not healthy: not yet"),
     ("exec sleep 25", "accepts connections but does not answer")],
)  # fmt: skip
def test_a_ray_that_is_not_healthy_or_does_not_answer_is_not_waited_for_longer_than_the_time(
    waiting: Run, tmp_path: Path, lines: str, cause: str
) -> None:
    a_ray(tmp_path, lines)
    with a_leader() as port:
        code, said = waiting("127.0.0.1", port, "2", "ray")
    assert (1, f"gave up after 2 s: Ray at 127.0.0.1:{port} {cause}") == (code, said.splitlines()[-1])


def test_ray_is_asked_for_its_health_at_the_address_of_the_leader(waiting: Run, tmp_path: Path) -> None:
    a_ray(tmp_path, 'echo "$@" >> "$0.calls"; test $(wc -l < "$0.calls") -gt 1')
    with a_leader() as port:
        code, said = waiting("127.0.0.1", port, "20", "ray")
    assert (0, 2) == (code, len(said.splitlines()))
    call = f"health-check --address 127.0.0.1:{port}\n"
    assert 2 * call == (tmp_path / "ray.calls").read_text("utf-8")


def test_the_script_fits_an_older_python() -> None:
    ast.parse(script(), feature_version=(3, 8))
