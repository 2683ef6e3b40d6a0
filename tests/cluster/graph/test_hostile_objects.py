"""Objects that the API server takes and that are hard to read: they affect no others."""

import base64
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.graph.test_graph import GRAPH
from cluster.operator_process import OFF, OperatorProcess
from cluster.person import Person
from cluster.world import World
from dynamo_graphs.types.secrets import PullSecret
from kube_runtime.kind import Object

pytestmark = pytest.mark.cluster

LEVELS = 3000


@pytest.fixture(autouse=True)
def deep_json() -> Iterator[None]:
    """Let the test itself write and read such objects."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(25_000)
    yield
    sys.setrecursionlimit(before)


def pull_secret(name: str, content: bytes) -> Object:
    data = {".dockerconfigjson": base64.b64encode(content).decode()}
    return {"metadata": {"name": name}, "type": "kubernetes.io/dockerconfigjson", "data": data}


def a_deep_graph(name: str) -> Object:
    deep: Object = {}
    for _ in range(LEVELS):
        deep = {"x": deep}
    profiles = [{"name": "x", "plugins": []}]
    config = {"plugins": [{"type": "a"}], "schedulingProfiles": profiles, "z": deep}
    return graph(name, W=service("worker", eppConfig={"config": config}))


def test_neither_a_secret_nor_a_graph_can_end_the_operator(
    world: World, kinds: ControlPlane, tmp_path: Path
) -> None:
    flags = (*OFF, f"--restrictedNamespace={world.namespace}")
    secrets = {
        "no-utf-8": b'{"auths":{"\xff\xfe.io":{"auth":"YTpi"}}}',
        "deep": b'{"auths":{"a.io":' + b"[" * LEVELS + b"]" * LEVELS + b"}}",
    }
    for turn in ("running", "started"):
        with OperatorProcess(kinds.kubeconfig, tmp_path / turn, flags) as operator:
            operator.ready()
            if turn == "running":
                for name, content in secrets.items():
                    world.create(PullSecret.KIND, pull_secret(name, content))
                world.create(GRAPH, a_deep_graph("deep"))
            world.create(GRAPH, graph(turn, Frontend=service("frontend")))
            world.eventually(GRAPH, turn, is_ready)
            world.eventually(GRAPH, "deep", lambda it: bool(it["status"]))
            assert 0 == operator.stop()


@pytest.mark.usefixtures("kinds")
def test_a_deep_graph_is_read_as_any_other(world: World, kinds: ControlPlane) -> None:
    world.create(GRAPH, a_deep_graph("deep"))
    user = Person(kinds.kubeconfig, world.namespace)
    assert (1, "", f"error: graph nope not found in namespace {world.namespace}\n") == user.run(
        "why", "nope"
    )
    for command in (
        ("get",),
        ("why", "deep"),
        ("why", "--all"),
        ("status", "deep"),
        ("tree", "deep"),
        ("top",),
    ):
        code, text, said = user.run(*command)
        assert (True, True, False) == (code in {0, 1}, "deep" in text, "Traceback" in said), (
            command,
            said,
        )
