"""A binding that an earlier release left with another role is recreated, without a user's help."""

import pytest

from cluster.audit import Audit, Call
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.world import GRAPH, World
from dynamo_operator.graph.render import role_binding
from kube_runtime.types.kinds import RoleBinding

BINDING = RoleBinding.KIND
PLANNER = "planner-serviceaccount"

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def test_a_planner_has_the_role_that_the_operator_is_told_now(world: World, kinds: ControlPlane) -> None:
    body = role_binding(world.namespace, f"{PLANNER}-binding", PLANNER, "ClusterRole", "edit")
    before = world.create(BINDING, body)
    audit = Audit(kinds.audit_log)
    since = audit.now()
    world.create(GRAPH, graph(Planner=service("planner")))
    world.eventually(GRAPH, "chat", is_ready)
    found = world.eventually(BINDING, f"{PLANNER}-binding")
    assert "view" == found["roleRef"]["name"]
    assert before["metadata"]["uid"] != found["metadata"]["uid"]
    assert ["chat"] == [each["name"] for each in found["metadata"]["ownerReferences"]]
    calls = audit.calls(namespace=world.namespace, since=since)
    assert 1 == calls[Call("delete", "rolebindings")]
    audit.falls_silent(world.namespace)
    since = audit.now()
    world.patch(GRAPH, "chat", {"metadata": {"annotations": {"woken": "again"}}})
    audit.falls_silent(world.namespace)
    assert Call("delete", "rolebindings") not in audit.calls(namespace=world.namespace, since=since)
    assert found == world.get(BINDING, f"{PLANNER}-binding")
