"""Managed rollouts are counted by their result, across a restart of the operator."""

import urllib.request
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.test_graph import GRAPH
from cluster.operator_process import OperatorProcess
from cluster.rollout.test_rollout import begun, managed, only_generation, rolling, said, workers
from cluster.world import World
from devcluster.layout import free_ports

pytestmark = pytest.mark.cluster


def counts(port: int) -> dict[str, float]:
    """What the operator has counted since its start, by result."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines: list[str] = answer.read().decode().splitlines()
    prefix = 'dynamo_operator_rollouts_total{result="'
    found = (line.removeprefix(prefix).split('"} ') for line in lines if line.startswith(prefix))
    return {result: float(count) for result, count in found}


def test_what_was_counted_is_not_counted_again_by_the_next_operator(
    world: World, kinds: ControlPlane, tmp_path: Path
) -> None:
    (port,) = free_ports(1)
    flags = (
        f"--metrics-bind-address=127.0.0.1:{port}",
        "--health-probe-bind-address=0",
        f"--restrictedNamespace={world.namespace}",
    )
    with OperatorProcess(kinds.kubeconfig, tmp_path / "log", flags) as operator:
        operator.ready()
        world.create(GRAPH, managed())
        world.eventually(GRAPH, "chat", is_ready)
        nothing = {"started": 0.0, "completed": 0.0, "superseded": 0.0, "deadline_exceeded": 0.0}
        assert nothing == counts(port)
        first = only_generation(world)
        world.patch(GRAPH, "chat", said("broken", **{"fake-kubelet": "never-starts"}))
        world.eventually(GRAPH, "chat", lambda it: rolling(it).get("phase") == "InProgress")
        whole = said("whole")
        whole["spec"]["services"]["Decode"]["extraPodMetadata"] = None
        world.patch(GRAPH, "chat", whole)
        expected = nothing | {"started": 2, "superseded": 1}
        world.until(lambda: expected == counts(port), what=lambda: f"counted: {counts(port)}")
        begun(world, 3)
        operator.kill()
        operator.start()
        operator.ready()
        done = world.eventually(GRAPH, "chat", lambda it: rolling(it).get("phase") == "Completed")
        expected = nothing | {"completed": 1}
        world.until(lambda: expected == counts(port), what=lambda: f"counted: {counts(port)}")
    assert first not in workers(world)
    assert [rolling(done)["toHash"]] == list(workers(world))
