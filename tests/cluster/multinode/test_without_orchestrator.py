"""A component over several nodes where nothing runs such pods, until something does."""

from collections.abc import Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.installed import installed
from cluster.multinode.graphs import graph
from cluster.multinode.test_groups import COMPONENT, PLACES, SETS, condition
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import PODS, World
from dynamo_operator.api.graph import DynamoGraphDeployment

GRAPH = DynamoGraphDeployment.KIND
MESSAGE = "no multinode orchestrator available"

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def plain_operator(
    kinds: ControlPlane, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[OperatorProcess]:
    """An operator on the control plane that all tests share, where no groups form."""
    log = tmp_path_factory.mktemp("plain-operator") / "operator.log"
    with OperatorProcess(kinds.kubeconfig, log, OFF) as process:
        process.ready()
        yield process


@pytest.mark.usefixtures("plain_operator")
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
        cause = "g-w-0: it has not been observed yet"
        waiting = world.eventually(
            GRAPH, "g", lambda body: cause in condition(body, "Ready").get("message", "")
        )
        assert "pending" == waiting["status"]["state"]
    world.eventually(GRAPH, "g", lambda body: "failed" == body["status"]["state"])
