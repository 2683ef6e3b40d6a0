"""Restart, suspend, pause and scale a whole graph, on a real API server."""

from collections.abc import Callable

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.graph.test_graph import COMPONENT, DEPLOYMENT, GRAPH
from cluster.world import PODS, World
from kube_runtime.kind import Object

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
        each["metadata"]["name"]
        for each in world.list(PODS)
        if "deletionTimestamp" not in each["metadata"]
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


def test_a_suspended_graph_has_no_pods_and_comes_back_as_it_was(world: World) -> None:
    world.create(GRAPH, small())
    world.eventually(GRAPH, "chat", is_ready)
    world.patch(GRAPH, "chat", {"metadata": {"annotations": {"nvidia.com/suspend": "true"}}})
    suspended = world.eventually(
        GRAPH, "chat", lambda body: condition(body, "Suspended").get("status") == "True"
    )
    assert set() == pods(world)
    ready = condition(suspended, "Ready")
    assert ("False", "suspended") == (ready["status"], ready["reason"])
    assert 2 == suspended["spec"]["services"]["Decode"]["replicas"]
    world.patch(GRAPH, "chat", {"metadata": {"annotations": {"nvidia.com/suspend": None}}})
    world.eventually(
        GRAPH,
        "chat",
        lambda body: is_ready(body) and condition(body, "Suspended")["status"] == "False",
    )
    assert 3 == len(pods(world))


def test_nothing_is_done_for_a_paused_graph_until_the_pause_ends(world: World) -> None:
    world.create(GRAPH, small())
    world.eventually(GRAPH, "chat", is_ready)
    world.patch(GRAPH, "chat", {"metadata": {"annotations": {"nvidia.com/paused": "true"}}})
    paused = world.eventually(
        GRAPH, "chat", lambda body: condition(body, "Progressing").get("status") == "Unknown"
    )
    assert "paused" == condition(paused, "Progressing")["reason"]
    world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": {"replicas": 3}}}})
    world.delete(COMPONENT, "chat-frontend")
    world.gone(COMPONENT, "chat-frontend")
    component = world.get(COMPONENT, "chat-decode")
    assert component is not None
    assert 2 == component["spec"]["replicas"]
    world.patch(GRAPH, "chat", {"metadata": {"annotations": {"nvidia.com/paused": None}}})
    resumed = world.eventually(GRAPH, "chat", is_ready)
    assert 3 == resumed["status"]["services"]["Decode"]["replicas"]
    assert "Unknown" != condition(resumed, "Progressing")["status"]


def test_a_paused_graph_can_be_deleted(world: World) -> None:
    body = small()
    body["metadata"]["annotations"] = {"nvidia.com/paused": "true"}
    world.create(GRAPH, body)
    world.eventually(GRAPH, "chat", lambda body: bool(condition(body, "Progressing")))
    assert [] == world.list(COMPONENT)
    world.delete(GRAPH, "chat")
    world.gone(GRAPH, "chat")


def test_kubectl_scales_the_workers_of_a_graph(
    kinds: ControlPlane, world: World, namespace: str
) -> None:
    world.create(GRAPH, small())
    world.eventually(GRAPH, "chat", is_ready)
    kinds.kubectl("scale", f"--namespace={namespace}", "dgd/chat", "--replicas=2")
    scaled = world.eventually(
        GRAPH, "chat", lambda body: is_ready(body) and body["status"].get("replicas") == 2
    )
    counts = {key: each["replicas"] for key, each in scaled["status"]["services"].items()}
    assert {"Frontend": 1, "Decode": 4} == counts
    assert 2 == scaled["spec"]["services"]["Decode"]["replicas"]
    kinds.kubectl("scale", f"--namespace={namespace}", "dgd/chat", "--replicas=0")
    zero = world.eventually(
        GRAPH, "chat", lambda body: is_ready(body) and body["status"].get("replicas") == 0
    )
    assert "successful" == zero["status"]["state"]
    selector = zero["status"]["selector"]
    assert "" == kinds.kubectl(
        "get", f"--namespace={namespace}", "pods", f"--selector={selector}", "--output=name"
    )


def test_a_component_that_is_not_paused_any_more_says_so(world: World) -> None:
    world.create(GRAPH, small())
    world.eventually(GRAPH, "chat", is_ready)
    name = "chat-frontend"
    world.patch(COMPONENT, name, {"metadata": {"annotations": {"nvidia.com/paused": "true"}}})
    world.eventually(
        COMPONENT, name, lambda body: condition(body, "Paused").get("status") == "True"
    )
    world.patch(COMPONENT, name, {"metadata": {"annotations": {"nvidia.com/paused": None}}})
    world.eventually(
        COMPONENT, name, lambda body: condition(body, "Paused").get("status") == "False"
    )
