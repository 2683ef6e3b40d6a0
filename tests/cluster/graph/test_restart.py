"""An operator that starts again changes nothing, and catches up with what it has missed."""

import time
from pathlib import Path

import pytest

from cluster.audit import Audit
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import COMPONENT, DEPLOYMENT, GRAPH, SERVICE, World
from kube_runtime.types.kinds import Role, RoleBinding, ServiceAccount

KINDS = (GRAPH, COMPONENT, DEPLOYMENT, SERVICE, ServiceAccount.KIND, Role.KIND, RoleBinding.KIND)

pytestmark = pytest.mark.cluster


@pytest.fixture
def lone_operator(kinds: ControlPlane, namespace: str, tmp_path: Path) -> OperatorProcess:
    """An operator for this test's namespace only, not started."""
    flags = (*OFF, f"--restrictedNamespace={namespace}")
    return OperatorProcess(kinds.kubeconfig, tmp_path / "operator.log", flags)


def versions(world: World) -> dict[str, str]:
    return {
        f"{kind} {each['metadata']['name']}": each["metadata"]["resourceVersion"]
        for kind in KINDS
        for each in world.list(kind)
    }


def test_a_second_start_changes_nothing(
    world: World, lone_operator: OperatorProcess, kinds: ControlPlane
) -> None:
    with lone_operator:
        lone_operator.ready()
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
        audit = Audit(kinds.audit_log)
        audit.falls_silent(world.namespace)
        assert 0 == lone_operator.stop()
        before = versions(world)
        since = audit.now()
        lone_operator.start()
        lone_operator.ready()
        time.sleep(2)
    assert before == versions(world)
    assert {} == audit.calls(namespace=world.namespace, since=since)


def test_a_graph_edited_while_no_operator_ran_is_updated(
    world: World, lone_operator: OperatorProcess
) -> None:
    with lone_operator:
        lone_operator.ready()
        world.create(GRAPH, graph())
        world.eventually(GRAPH, "chat", is_ready)
        assert 0 == lone_operator.stop()
        world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": {"replicas": 3}}}})
        world.delete(SERVICE, "chat-frontend")
        world.create(GRAPH, graph("other", Frontend=service("frontend")))
        lone_operator.start()
        ready = world.eventually(GRAPH, "chat", is_ready)
        world.eventually(GRAPH, "other", is_ready)
    assert 3 == ready["status"]["services"]["Decode"]["replicas"]
    assert world.get(SERVICE, "chat-frontend")
