"""A binding that an earlier release left with another role is recreated, without a user's help."""

import time

import pytest

from cluster.audit import Audit, Call
from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.graph.test_graph import GRAPH
from cluster.requests.playing import REQUEST, a_request, state
from cluster.world import World
from dynamo_operator.graph.render import role_binding
from kube_runtime.types.kinds import RoleBinding
from kube_runtime.types.meta import Object

BINDING = RoleBinding.KIND
PLANNER = "planner-serviceaccount"
PROFILING = "dgdr-profiling-job"

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


@pytest.fixture(scope="module")
def operator_flags() -> tuple[str, ...]:
    """It may run planners and profile, with other roles than before."""
    roles = ("--planner-cluster-role-name=view", "--dgdr-profiling-cluster-role-name=view")
    return (*roles, "--operator-image=dynamo-operator:test")


def left(world: World, account: str) -> Object:
    """The binding of a ServiceAccount that an earlier release has left."""
    body = role_binding(world.namespace, f"{account}-binding", account, "ClusterRole", "edit")
    return world.create(BINDING, body)


def test_a_planner_has_the_role_that_the_operator_is_told_now(world: World, kinds: ControlPlane) -> None:
    before = left(world, PLANNER)
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
    time.sleep(2)
    assert Call("delete", "rolebindings") not in audit.calls(namespace=world.namespace, since=since)
    assert found == world.get(BINDING, f"{PLANNER}-binding")


def test_a_profiling_job_starts_with_the_role_that_the_operator_is_told_now(world: World) -> None:
    left(world, PROFILING)
    world.create(REQUEST, a_request())
    world.eventually(REQUEST, "chat", lambda each: "Profiling" == state(each))
    found = world.eventually(BINDING, f"{PROFILING}-binding")
    assert "view" == found["roleRef"]["name"]


def test_a_binding_of_somebody_else_is_left_alone(world: World) -> None:
    body = role_binding(world.namespace, f"{PLANNER}-binding", PLANNER, "ClusterRole", "edit")
    body["metadata"]["labels"] = {}
    theirs = world.create(BINDING, body)
    world.create(GRAPH, graph(Planner=service("planner")))
    world.eventually(GRAPH, "chat", lambda it: "name_conflict" == condition(it).get("reason"))
    assert theirs == world.get(BINDING, f"{PLANNER}-binding")
