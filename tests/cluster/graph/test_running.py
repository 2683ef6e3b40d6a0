"""A running operator: its probes, its metrics, its logs, and a second one beside it."""

import urllib.request
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.graph.test_graph import GRAPH
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import World
from devcluster.layout import free_ports
from kube_runtime.types.kinds import Lease

pytestmark = pytest.mark.cluster


def page(port: int, path: str) -> str:
    """What an HTTP server of the operator answers."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=60) as answer:
        text: str = answer.read().decode()
        return text


def test_probes_and_metrics(world: World, kinds: ControlPlane, tmp_path: Path) -> None:
    metrics, health = free_ports(2)
    flags = (
        f"--metrics-bind-address=127.0.0.1:{metrics}",
        f"--health-probe-bind-address=127.0.0.1:{health}",
        f"--restrictedNamespace={world.namespace}",
    )
    with OperatorProcess(kinds.kubeconfig, tmp_path / "log", flags) as operator:
        operator.ready()
        assert "ok" == page(health, "/readyz")
        assert "ok" == page(health, "/healthz")
        world.create(GRAPH, graph(Frontend=service("frontend")))
        world.eventually(GRAPH, "chat", is_ready)
        counted = page(metrics, "/metrics")
        assert 0 == operator.stop()
    for name in ("resources_total", "reconcile_total", "api_requests_total"):
        assert f"\ndynamo_operator_{name}{{" in counted
    kind = 'resource_type="DynamoGraphDeployment",status="successful"'
    labels = f'{{namespace="{world.namespace}",{kind}}}'
    assert f"dynamo_operator_resources_total{labels} 1.0" in counted


def candidate(kinds: ControlPlane, world: World, log: Path) -> OperatorProcess:
    """An operator that would lead in the test's namespace."""
    flags = (
        *OFF,
        "--leader-elect",
        f"--leader-election-namespace={world.namespace}",
        f"--restrictedNamespace={world.namespace}",
    )
    return OperatorProcess(kinds.kubeconfig, log, flags)


def test_a_leader_that_loses_its_lease_ends(
    world: World, kinds: ControlPlane, tmp_path: Path
) -> None:
    with candidate(kinds, world, tmp_path / "log") as operator:
        operator.ready()
        held = world.eventually(
            Lease.KIND, "dynamo.nvidia.com", lambda it: bool(it["spec"].get("holderIdentity"))
        )
        assert held["spec"]["holderIdentity"]
        thief = {"spec": {"holderIdentity": "somebody-else", "leaseDurationSeconds": 60}}
        world.patch(Lease.KIND, "dynamo.nvidia.com", thief)
        assert 1 == operator.wait()
        assert "Traceback" not in operator.log.read_text(encoding="utf-8")
