"""`dynamoctl get`, `events` and `logs` on a real cluster, and the answer to wrong names."""

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.person import Person
from cluster.world import GRAPH, World

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def test_a_list_is_watched(world: World, admin: Person) -> None:
    with admin.running("get", "--watch") as process:
        assert process.stdout
        assert "NAME" in process.stdout.readline()
        world.create(GRAPH, graph(Frontend=service("frontend")))
        for line in process.stdout:
            if line.split()[:2] == ["chat", "True"]:
                return
    pytest.fail("the watch ended")


def test_the_events_of_a_graph_and_its_pods(world: World, admin: Person) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend")))
    world.eventually(GRAPH, "chat", is_ready)

    def listed() -> set[str]:
        _, found = admin.json("events", "chat")
        return {each["object"].partition("/")[0] for each in found}

    world.until(lambda: {"Pod", "Deployment"} <= listed())
    code, found = admin.json("events", "chat")
    assert 0 == code
    assert sorted(each["lastSeen"] for each in found) == [each["lastSeen"] for each in found]
    code, text, _ = admin.run("events", "chat")
    assert (0, "LAST SEEN") == (code, text[:9])


def test_a_namespace_that_does_not_exist(kinds: ControlPlane, world: World) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend")))
    lost = Person(kinds.kubeconfig, "nowhere")
    code, _, said = lost.run("status", "chat")
    assert 1 == code
    assert "graph chat not found in namespace nowhere: namespace nowhere does not exist" in said
    assert "/chat" in said.partition("; there is ")[2]
    code, _, said = lost.run("get")
    assert (1, True) == (code, "namespace nowhere does not exist" in said)
