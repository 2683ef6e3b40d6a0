"""A graph on Grove, on a real API server. These tests alone play Grove."""

from typing import Any

import pytest

from cluster.audit import Audit, Call
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.world import COMPONENT, GRAPH, World
from dynamo_operator.shared.cluster import PodClique, PodCliqueScalingGroup, PodCliqueSet
from kube_runtime.types.meta import Kind, Object

SET = PodCliqueSet.KIND
CLIQUE = PodClique.KIND
GROUP = PodCliqueScalingGroup.KIND

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def multinode(**fields: Any) -> Object:
    return worker("decode", multinode={"nodeCount": 2}, **fields)


class Grove:
    """What Grove would do, by hand."""

    def __init__(self, world: World) -> None:
        self._world = world

    def makes(self, kind: Kind, name: str, size: int, /, **status: int) -> None:
        """Make what Grove makes of a set, with a status about its newest spec."""
        self._world.create(kind, {"metadata": {"name": name}, "spec": {"replicas": size}})
        self.reports(kind, name, **status)

    def reports(self, kind: Kind, name: str, **status: int) -> None:
        found = self._world.eventually(kind, name)
        observed = {"observedGeneration": found["metadata"]["generation"]}
        self._world.patch(kind, name, {"status": observed | status}, "status")


@pytest.fixture
def grove_controller(world: World) -> Grove:
    return Grove(world)


DONE = {"replicas": 1, "readyReplicas": 1, "updatedReplicas": 1}


def test_a_graph_is_ready_when_all_that_grove_made_is(world: World, grove_controller: Grove) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend"), Decode=multinode()))
    world.eventually(SET, "chat")
    grove_controller.makes(CLIQUE, "chat-0-frontend", 1, **DONE)
    done = {"replicas": 1, "availableReplicas": 1, "updatedReplicas": 1}
    grove_controller.makes(GROUP, "chat-0-decode", 1, **done)
    found = world.eventually(GRAPH, "chat", is_ready)
    assert "successful" == found["status"]["state"]
    assert 1 == found["status"]["services"]["Frontend"]["readyReplicas"]
    assert 1 == found["status"]["services"]["Decode"]["availableReplicas"]


def test_a_new_size_goes_to_the_live_clique_and_not_into_the_template(
    world: World, grove_controller: Grove, kinds: ControlPlane
) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend")))
    before = world.eventually(SET, "chat")
    grove_controller.makes(CLIQUE, "chat-0-frontend", 1, **DONE)
    world.eventually(GRAPH, "chat", is_ready)
    world.patch(GRAPH, "chat", {"spec": {"services": {"Frontend": {"replicas": 3}}}})
    world.eventually(CLIQUE, "chat-0-frontend", lambda it: it["spec"]["replicas"] == 3)
    grove_controller.reports(CLIQUE, "chat-0-frontend", replicas=3, readyReplicas=3, updatedReplicas=3)
    world.eventually(GRAPH, "chat", is_ready)
    after = world.eventually(SET, "chat")
    assert before["metadata"]["generation"] == after["metadata"]["generation"]
    calls = Audit(kinds.audit_log).calls(namespace=world.namespace)
    assert Call("patch", "podcliques/scale") in calls
    assert Call("patch", "podcliques") not in calls


def test_a_graph_that_is_moved_leaves_nothing_of_its_old_provider(world: World) -> None:
    wanted = graph(Frontend=service("frontend"))
    wanted["metadata"]["annotations"] = {"nvidia.com/workload-provider": "component"}
    world.create(GRAPH, wanted)
    world.eventually(GRAPH, "chat", is_ready)
    for provider, gone, made in (("grove", COMPONENT, SET), ("component", SET, COMPONENT)):
        record = {"nvidia.com/workload-provider": provider}
        world.patch(GRAPH, "chat", {"metadata": {"annotations": record}})
        name = {COMPONENT: "chat-frontend", SET: "chat"}
        world.gone(gone, name[gone])
        world.eventually(made, name[made])
    world.eventually(GRAPH, "chat", is_ready)
