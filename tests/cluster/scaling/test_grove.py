"""An adapter of a service that Grove runs on several nodes: it scales the live group, to zero as well."""

from collections.abc import Callable, Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, worker
from cluster.grove.test_grove_graph import GROUP, SET, Grove
from cluster.installed import installed
from cluster.operator_process import OperatorProcess
from cluster.scaling.test_scaling import NAME, SELECTOR, Kubectl, own_number, says
from cluster.world import ADAPTER, GRAPH, World
from dynamo_operator.shared.cluster import GROVE
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

LIVE = "chat-0-decode"


@pytest.fixture(scope="module")
def grove(kinds: ControlPlane) -> Iterator[None]:
    with installed(kinds, ("grove",), GROVE.kinds):
        yield


def leaders(*numbers: int) -> str:
    names = ",".join(f"{LIVE}-{number}-decode-ldr" for number in numbers)
    return f"{SELECTOR},grove.io/podclique in ({names})"


def wants(replicas: int) -> Callable[[Object], bool]:
    return lambda body: replicas == body["spec"]["replicas"]


def test_the_live_group_is_scaled_and_the_template_stays(
    grove: None, operator: OperatorProcess, world: World, kubectl: Kubectl
) -> None:
    service = worker("decode", multinode={"nodeCount": 2}, scalingAdapter={"enabled": True})
    world.create(GRAPH, graph("chat", decode=service))
    template = world.eventually(SET, "chat")["metadata"]["generation"]
    grove_controller = Grove(world)
    done = {"replicas": 1, "availableReplicas": 1, "updatedReplicas": 1}
    grove_controller.makes(GROUP, LIVE, 1, **done)
    world.eventually(ADAPTER, NAME, says("True", "scaled"))
    for replicas, selector in ((3, leaders(0, 1, 2)), (0, leaders(0))):
        kubectl("scale", f"dgdsa/{NAME}", f"--replicas={replicas}")
        world.eventually(GROUP, LIVE, wants(replicas))
        world.eventually(ADAPTER, NAME, says("False", "scaling"))
        grove_controller.reports(
            GROUP, LIVE, replicas=replicas, availableReplicas=replicas, updatedReplicas=replicas
        )
        found = world.eventually(ADAPTER, NAME, says("True", "scaled"))
        assert replicas == found["status"]["replicas"]
        assert selector == found["status"]["selector"]
    stored = world.eventually(GRAPH, "chat", lambda body: own_number(body) == 0)
    assert "decode" in stored["spec"]["services"]
    assert template == world.eventually(SET, "chat")["metadata"]["generation"]
