"""Workers of a group start when their leader takes them, or say why they still wait."""

import ast
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from devcluster.layout import free_ports
from dynamo_graphs.offline import graph_tree
from dynamo_operator.component.wait_for_leader import CONTAINER, WITHIN_SECONDS, script
from dynamo_operator.names import GROVE, on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from specs import a_graph

SETTINGS = RenderSettings(mpi_secret_name="keys", mpi_secret_namespace="dynamo")
RAY = ("--tensor-parallel-size", "16")
DATA_PARALLEL = ("--data-parallel-size", "16")


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
def test_a_name_that_does_not_resolve_is_told_as_it_is(waiting: Run, name: str) -> None:
    code, said = waiting(name, "1", "0")
    assert (1, 1) == (code, len(said.splitlines()))
    assert f"gave up after 0 s: the name {name} does not resolve" in said


def test_an_open_port_is_not_yet_ray(waiting: Run, tmp_path: Path) -> None:
    a_ray(tmp_path, "echo not yet >&2; exit 1")
    with a_leader() as port:
        code, said = waiting("127.0.0.1", port, "1", "ray")
    assert (1, f"gave up after 1 s: Ray at 127.0.0.1:{port} is not healthy: not yet") == (
        code,
        said.splitlines()[-1],
    )


def test_ray_is_asked_for_its_health_at_the_address_of_the_leader(waiting: Run, tmp_path: Path) -> None:
    a_ray(tmp_path, 'echo "$@" >> "$0.calls"; test $(wc -l < "$0.calls") -gt 1')
    with a_leader() as port:
        code, said = waiting("127.0.0.1", port, "20", "ray")
    assert (0, 2) == (code, len(said.splitlines()))
    call = f"health-check --address 127.0.0.1:{port}\n"
    assert 2 * call == (tmp_path / "ray.calls").read_text("utf-8")


def test_a_ray_that_does_not_answer_is_not_waited_for_longer_than_the_time(
    waiting: Run, tmp_path: Path
) -> None:
    a_ray(tmp_path, "exec sleep 25")
    with a_leader() as port:
        code, said = waiting("127.0.0.1", port, "2", "ray")
    assert 1 == code
    assert said.splitlines()[-1].endswith("accepts connections but does not answer")


def objects(module: str, *args: str, on_grove: bool = False, **service: Any) -> list[Object]:
    command = {"command": ["python3", "-m", module], "args": [*args]}
    worker = {
        "componentType": "worker",
        "multinode": {"nodeCount": 2},
        "resources": {"limits": {"gpu": "8", "cpu": "4"}, "requests": {"memory": "1Gi"}},
        "extraPodSpec": {"mainContainer": {"image": "i", **command}, **service},
    }
    graph = a_graph({"W": worker})
    graph = on_provider(graph, GROVE) if on_grove else graph
    return list(graph_tree(graph, Facts(grove_served=on_grove), SETTINGS))


def pods(found: list[Object]) -> tuple[Object, Object]:
    """The specs of leader and worker."""
    for each in found:
        if each["kind"] == "LeaderWorkerSet":
            template = each["spec"]["leaderWorkerTemplate"]
            return template["leaderTemplate"]["spec"], template["workerTemplate"]["spec"]
        if each["kind"] == "PodCliqueSet":
            leader, worker = (clique["spec"] for clique in each["spec"]["template"]["cliques"])
            return leader["podSpec"], worker["podSpec"]
    raise AssertionError("no pods")


@pytest.mark.parametrize("on_grove", [False, True])
@pytest.mark.parametrize(
    ("args", "said"), [(RAY, ["6379", "1800", "ray"]), (DATA_PARALLEL, ["13445", "1800"])]
)
def test_the_workers_of_vllm_wait_and_the_leader_does_not(
    args: tuple[str, ...], said: list[str], *, on_grove: bool
) -> None:
    found = objects("dynamo.vllm", *args, on_grove=on_grove)
    leader, worker = pods(found)
    [step] = worker["initContainers"]
    [main] = worker["containers"]
    assert "initContainers" not in leader
    assert said == step["args"][1:]
    assert (main["image"], main["env"]) == (step["image"], step["env"])
    assert {"limits": {"cpu": "4"}, "requests": {"memory": "1Gi"}} == step["resources"]
    assert str(WITHIN_SECONDS) in step["args"]
    [mount] = (each for each in step["volumeMounts"] if each["name"] == CONTAINER)
    [volume] = (each for each in worker["volumes"] if each["name"] == CONTAINER)
    [held] = (each for each in found if each["kind"] == "ConfigMap")
    assert held["metadata"]["name"] == volume["configMap"]["name"]
    assert f"{mount['mountPath']}/{next(iter(held['data']))}" == step["command"][1]
    assert script() in held["data"].values()


@pytest.mark.parametrize("module", ["dynamo.sglang", "dynamo.trtllm", "dynamo.vllm", "mine"])
def test_nobody_else_waits(module: str) -> None:
    found = objects(module)
    assert [False, False] == ["initContainers" in each for each in pods(found)]
    assert [] == [each for each in found if each["kind"] == "ConfigMap"]


def test_the_users_own_steps_come_first_and_one_of_that_name_takes_the_place_of_ours() -> None:
    mine = {"name": "download", "image": "d"}
    _, worker = pods(objects("dynamo.vllm", *RAY, initContainers=[mine]))
    assert ["download", CONTAINER] == [each["name"] for each in worker["initContainers"]]
    own = {"name": CONTAINER, "image": "o"}
    _, worker = pods(objects("dynamo.vllm", *RAY, initContainers=[own]))
    assert [own] == worker["initContainers"]


def test_the_script_fits_an_older_python() -> None:
    ast.parse(script(), feature_version=(3, 8))
