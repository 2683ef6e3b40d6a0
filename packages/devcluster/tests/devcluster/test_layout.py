import socket
import subprocess
import sys
import threading
from io import StringIO
from pathlib import Path

import pytest

from devcluster.layout import cache_folder, free_ports, held, state_folder
from devcluster.progress import Lines, Silent


def test_folders_follow_the_xdg_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/somewhere/cache")
    monkeypatch.setenv("XDG_STATE_HOME", "/somewhere/state")
    assert Path("/somewhere/cache/dynamo-operator/controlplane") == cache_folder()
    assert Path("/somewhere/state/dynamo-operator/controlplane") == state_folder()


@pytest.mark.parametrize("unset", ["", "relative/path"])
def test_an_empty_or_relative_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch, unset: str) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    monkeypatch.setenv("XDG_CACHE_HOME", unset)
    monkeypatch.setenv("XDG_STATE_HOME", unset)
    assert Path("/home/somebody/.cache/dynamo-operator/controlplane") == cache_folder()
    assert Path("/home/somebody/.local/state/dynamo-operator/controlplane") == state_folder()


HOLDER = """
import sys, time
from pathlib import Path
from devcluster.layout import held
from devcluster.progress import Silent
with held(Path(sys.argv[1]), Silent(), "nothing"):
    print("held", flush=True)
    time.sleep(60)
"""


def test_the_second_logs_once_that_it_waits_and_continues_when_the_first_is_done(tmp_path: Path) -> None:
    lock = tmp_path / "folder" / "lock"
    order: list[str] = []
    second_waits = threading.Event()

    class Waiting(Silent):
        def step(self, text: str) -> None:
            order.append(text)
            second_waits.set()

    def second() -> None:
        with held(lock, Waiting(), "the first"):
            order.append("second")

    with held(lock, Waiting(), "never"):
        thread = threading.Thread(target=second)
        thread.start()
        assert second_waits.wait(10)
        order.append("first")
    thread.join(10)
    assert ["waiting for the first", "first", "second"] == order


def test_the_lock_of_a_killed_holder_is_free(tmp_path: Path) -> None:
    lock = tmp_path / "lock"
    steps = StringIO()
    with subprocess.Popen(  # noqa: S603 - this interpreter
        [sys.executable, "-c", HOLDER, lock], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert "held\n" == holder.stdout.readline()
        holder.kill()
        holder.wait()
        with held(lock, Lines(steps), "the killed one"):
            pass
    assert "" == steps.getvalue()


def test_free_ports_are_different_below_those_of_outgoing_connections_and_unused() -> None:
    ports = free_ports(5)
    outgoing = Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()
    assert 5 == len(set(ports))
    assert max(ports) < int(outgoing[0])
    for port in ports:
        with socket.socket() as server:
            server.bind(("127.0.0.1", port))


def test_reserved_ports_are_not_chosen() -> None:
    all_but_few = set(range(65536)) - set(range(20_000, 20_500))
    assert all(port < 20_500 for port in free_ports(3, reserved=all_but_few))
