"""Restart, suspend, pause and scale a whole graph, on a real API server."""

from collections.abc import Callable

import pytest

from cluster.conditions import condition, is_ready
from cluster.graph.graphs import graph, service, worker
from cluster.graph.test_graph import COMPONENT, DEPLOYMENT, GRAPH
from cluster.world import PODS, World
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

RESTART_AT = "nvidia.com/restartAt"


def small() -> Object:
    """A frontend and a worker of two pods."""
    return graph("chat", Frontend=service("frontend"), Decode=worker("decode", replicas=2))


def restarted(world: World, component: str) -> str | None:
    deployment = world.get(DEPLOYMENT, f"chat-{component}")
    assert deployment is not None
    annotations = deployment["spec"]["template"]["metadata"].get("annotations", {})
    found: str | None = annotations.get(RESTART_AT)
    return found


def is_completed(id_: str) -> Callable[[Object], bool]:
    return lambda body: {"observedID": id_, "phase": "Completed"} == body["status"].get("restart")


def pods(world: World) -> set[str]:
    return {
        each["metadata"]["name"] for each in world.list(PODS) if "deletionTimestamp" not in each["metadata"]
    }


def test_a_restart_replaces_every_pod_once(world: World) -> None:
    world.create(GRAPH, small())
    world.eventually(GRAPH, "chat", is_ready)
    before = pods(world)
    wish = {"id": "one", "strategy": {"type": "Parallel"}}
    world.patch(GRAPH, "chat", {"spec": {"restart": wish}})
    world.eventually(
        GRAPH,
        "chat",
        lambda body: body["status"].get("restart", {}).get("phase") == "Restarting",
    )
    done = world.eventually(GRAPH, "chat", is_completed("one"))
    assert not before & pods(world), "an old pod was still there when the restart was reported done"
    assert {"one"} == {restarted(world, each) for each in ("frontend", "decode")}
    world.eventually(GRAPH, "chat", is_ready)
    world.patch(GRAPH, "chat", {"spec": {"restart": None}})
    world.eventually(
        GRAPH,
        "chat",
        lambda body: body["status"]["observedGeneration"] > done["metadata"]["generation"],
    )
    assert {"one"} == {restarted(world, each) for each in ("frontend", "decode")}


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
