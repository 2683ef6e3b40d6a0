"""A graph keeps the workload provider that it began with."""

import pytest

from cluster.audit import Audit, Call
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.graph.test_graph import COMPONENT, GRAPH, condition, is_ready
from cluster.operator_process import OperatorProcess
from cluster.world import EVENTS, World

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

RECORD = "nvidia.com/workload-provider"


def test_the_provider_is_recorded_with_one_request_before_anything_is_made(
    world: World, kinds: ControlPlane
) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend")))
    ready = world.eventually(GRAPH, "chat", is_ready)
    assert "component" == ready["metadata"]["annotations"][RECORD]
    calls = Audit(kinds.audit_log).calls(namespace=world.namespace)
    assert 1 == calls[Call("patch", "dynamographdeployments")]


def test_a_record_that_is_lost_is_made_again_from_what_exists(world: World) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend")))
    world.eventually(GRAPH, "chat", is_ready)
    world.patch(GRAPH, "chat", {"metadata": {"annotations": {RECORD: None}}})
    world.eventually(GRAPH, "chat", lambda it: RECORD in it["metadata"]["annotations"])


def test_a_graph_whose_provider_is_not_there_says_so_and_is_left_alone(
    world: World, operator: OperatorProcess
) -> None:
    wanted = graph(Frontend=service("frontend"))
    wanted["metadata"]["annotations"] = {RECORD: "knative"}
    world.create(GRAPH, wanted)
    failed = world.eventually(GRAPH, "chat", lambda it: condition(it, "Ready") != {})
    said = condition(failed, "Ready")
    assert ("False", "selected_workload_provider_unavailable") == (said["status"], said["reason"])
    assert "knative" in said["message"]
    assert "failed" == failed["status"]["state"]

    def told() -> bool:
        return any(it["reason"] == "WorkloadProviderUnavailable" for it in world.list(EVENTS))

    world.until(told)
    assert [] == world.list(COMPONENT)
    world.patch(GRAPH, "chat", {"metadata": {"annotations": {RECORD: "component"}}})
    world.eventually(GRAPH, "chat", is_ready)
