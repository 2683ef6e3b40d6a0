"""Objects that the API server takes and that are hard to read: they affect no others."""

import base64
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.operator_process import OFF, OperatorProcess
from cluster.person import Person
from cluster.world import GRAPH, World
from dynamo_operator.shared.cluster import PullSecret
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

LEVELS = 3000


def pull_secret(name: str, content: bytes) -> Object:
    data = {".dockerconfigjson": base64.b64encode(content).decode()}
    return {"metadata": {"name": name}, "type": "kubernetes.io/dockerconfigjson", "data": data}


def create_deep_graph(kubectl: Callable[..., str], name: str) -> None:
    """A graph that only kubectl can write: Python's `json` does not nest that deeply at any version."""
    profiles = [{"name": "x", "plugins": []}]
    config = {"plugins": [{"type": "a"}], "schedulingProfiles": profiles, "z": "deep"}
    body = {
        "apiVersion": GRAPH.api_version,
        "kind": GRAPH.name,
        **graph(name, W=service("worker", eppConfig={"config": config})),
    }
    deep = '{"x":' * LEVELS + "{}" + "}" * LEVELS
    kubectl("create", "-f", "-", input=json.dumps(body).replace('"deep"', deep))


def test_neither_a_secret_nor_a_graph_can_end_the_operator(
    world: World, kinds: ControlPlane, kubectl: Callable[..., str], tmp_path: Path
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
                create_deep_graph(kubectl, "stranger")
            world.create(GRAPH, graph(turn, Frontend=service("frontend")))
            world.eventually(GRAPH, turn, is_ready)
            kubectl("wait", "--for=jsonpath={.status.state}", "--timeout=180s", "dgd/stranger")
            assert 0 == operator.stop()


def test_a_deep_graph_does_not_fail_commands_about_others(
    world: World, kinds: ControlPlane, kubectl: Callable[..., str]
) -> None:
    create_deep_graph(kubectl, "stranger")
    world.create(GRAPH, graph("plain"))
    user = Person(kinds.kubeconfig, world.namespace)
    missing = f"error: graph nope not found in namespace {world.namespace}\n"
    assert (1, "", missing) == user.run("why", "nope")
    for command in (["get"], ["why", "--all"], ["top"]):
        code, stdout, stderr = user.run(*command)
        assert code in {0, 1}, stderr
        assert "plain" in stdout, command
        assert "stranger" in stdout + stderr, command
    for command in (["why", "stranger"], ["status", "stranger"], ["tree", "stranger"]):
        code, stdout, stderr = user.run(*command)
        assert (1, True) == (code, "stranger" in stdout + stderr), command
        assert "Traceback" not in stderr
