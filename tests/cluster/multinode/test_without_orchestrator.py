"""A component over several nodes where nothing runs such pods, until something does."""

import pytest

from cluster.conditions import condition
from cluster.conftest import ControlPlane, operated, operator_flags
from cluster.installed import installed
from cluster.multinode.graphs import graph
from cluster.multinode.test_groups import COMPONENT, PLACES, SETS
from cluster.world import PODS, World
from dynamo_operator.graph.api import DynamoGraphDeployment

# The control plane that all tests share, where no groups form.
__all__ = ["operated", "operator_flags"]

GRAPH = DynamoGraphDeployment.KIND
MESSAGE = "no multinode orchestrator available"

pytestmark = pytest.mark.cluster


@pytest.mark.usefixtures("operator")
def test_it_says_so_and_goes_on_when_groups_can_form(kinds: ControlPlane, world: World) -> None:
    world.create(GRAPH, graph("vllm"))
    service = graph("vllm")["spec"]["services"]["W"]
    world.create(COMPONENT, {"metadata": {"name": "alone"}, "spec": service})
    failed = world.eventually(GRAPH, "g", lambda body: bool(condition(body, "Ready")))
    assert "failed" == failed["status"]["state"]
    assert "no_multinode_orchestrator" == condition(failed, "Ready")["reason"]
    words = f"failed to reconcile Dynamo components deployments: {MESSAGE}"
    assert words == condition(failed, "Ready")["message"]
    alone = world.eventually(COMPONENT, "alone", lambda body: bool(condition(body, "Available")))
    available = condition(alone, "Available")
    assert ("False", "MultinodeOrchestratorUnavailable", MESSAGE) == (
        available["status"],
        available["reason"],
        available["message"],
    )
    assert "True" == condition(alone, "Valid")["status"]
    assert [] == world.list(PODS)
    with installed(kinds, ("lws", "podgroup"), (SETS, PLACES)):
        for name in ("g-w-0", "alone-0"):
            world.eventually(SETS, name)
            world.eventually(PLACES, name)
        cause = "g-w-0: no controller has observed LeaderWorkerSet g-w-0"
        waiting = world.eventually(
            GRAPH, "g", lambda body: cause in condition(body, "Ready").get("message", "")
        )
        assert "pending" == waiting["status"]["state"]
    world.eventually(GRAPH, "g", lambda body: "failed" == body["status"].get("state"))
