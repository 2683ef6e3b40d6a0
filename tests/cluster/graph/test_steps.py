"""Restart, suspend, pause and scale a whole graph, on a real API server."""

import pytest

from cluster.conditions import condition, is_ready
from cluster.graph.graphs import graph, service, worker
from cluster.world import COMPONENT, GRAPH, World
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def small() -> Object:
    return graph("chat", Frontend=service("frontend"), Decode=worker("decode", replicas=2))


def test_a_paused_graph_can_be_deleted(world: World) -> None:
    body = small()
    body["metadata"]["annotations"] = {"nvidia.com/paused": "true"}
    world.create(GRAPH, body)
    world.eventually(GRAPH, "chat", lambda body: bool(condition(body, "Progressing")))
    assert [] == world.list(COMPONENT)
    world.delete(GRAPH, "chat")
    world.gone(GRAPH, "chat")


def test_a_component_that_is_not_paused_any_more_says_so(world: World) -> None:
    world.create(GRAPH, small())
    world.eventually(GRAPH, "chat", is_ready)
    name = "chat-frontend"
    world.patch(COMPONENT, name, {"metadata": {"annotations": {"nvidia.com/paused": "true"}}})
    world.eventually(COMPONENT, name, lambda body: condition(body, "Paused").get("status") == "True")
    world.patch(COMPONENT, name, {"metadata": {"annotations": {"nvidia.com/paused": None}}})
    world.eventually(COMPONENT, name, lambda body: condition(body, "Paused").get("status") == "False")
