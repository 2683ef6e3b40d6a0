"""`dynamoctl get`, `events` and `logs` on a real cluster, and the answer to wrong names."""

import json

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.person import Person
from cluster.world import World
from dynamo_operator.graph.api import DynamoGraphDeployment

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

GRAPH = DynamoGraphDeployment.KIND


def test_graphs_are_listed(world: World, admin: Person) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend")))
    world.eventually(GRAPH, "chat", is_ready)
    code, text, _ = admin.run("get")
    head, row = text.splitlines()
    assert (0, ["NAME", "READY"], ["chat", "True"]) == (code, head.split()[:2], row.split()[:2])
    code, text, _ = admin.run("get", "-A")
    assert [world.namespace, "chat"] in [row.split()[:2] for row in text.splitlines()]
    code, text, _ = admin.run("get", "dcd", "-o", "name")
    assert (0, "dynamocomponentdeployments.nvidia.com/chat-frontend\n") == (code, text)
    _, found = admin.json("get")
    assert [("List", "chat")] == [(found["kind"], each["metadata"]["name"]) for each in found["items"]]
    assert "managedFields" not in json.dumps(found)


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
