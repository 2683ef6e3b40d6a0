"""A graph on a real API server: it becomes ready, stays right, and goes without a trace."""

import pytest

from cluster.audit import Audit
from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import SERVICES, graph, service, worker
from cluster.world import COMPONENT, DEPLOYMENT, GRAPH, PODS, SERVICE, World
from kube_runtime.types.kinds import ServiceAccount
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def test_a_graph_becomes_ready(world: World) -> None:
    world.create(GRAPH, graph())
    ready = world.eventually(GRAPH, "chat", is_ready)
    assert "successful" == ready["status"]["state"]
    assert "all_resources_are_ready" == condition(ready, "Ready")["reason"]
    for name in SERVICES:
        counts = {
            "componentKind": "Deployment",
            "componentName": f"chat-{name.lower()}",
            "replicas": 1,
            "updatedReplicas": 1,
            "readyReplicas": 1,
            "availableReplicas": 1,
            "scheduledReplicas": 1,
            "componentNames": [f"chat-{name.lower()}"],
            "runtimeNamespace": f"{world.namespace}-chat",
        }
        assert counts == ready["status"]["services"][name]
        component = world.read(COMPONENT, f"chat-{name.lower()}")
        for type_ in ("Valid", "Available", "DynamoComponentReady"):
            assert "True" == condition(component, type_)["status"]
    assert 3 == len(world.list(PODS))


def test_two_graphs_share_objects_and_take_no_turns_writing_them(world: World, kinds: ControlPlane) -> None:
    decode = worker("decode", modelRef={"name": "Qwen/Qwen3-0.6B"}, resources=None)
    for name in ("one", "two"):
        world.create(GRAPH, graph(name, Planner=service("planner"), Decode=decode))
    for name in ("one", "two"):
        world.eventually(GRAPH, name, is_ready)
    account = ServiceAccount.KIND
    world.eventually(account, "planner-serviceaccount", lambda it: _owners(it) == ["one", "two"])
    audit = Audit(kinds.audit_log)
    audit.falls_silent(world.namespace)
    world.delete(GRAPH, "one")
    world.gone(GRAPH, "one")
    world.eventually(account, "planner-serviceaccount", lambda it: _owners(it) == ["two"])
    assert is_ready(world.eventually(GRAPH, "two"))
    world.delete(GRAPH, "two")
    world.gone(account, "planner-serviceaccount")


def _owners(body: Object) -> list[str]:
    return sorted(each["name"] for each in body["metadata"].get("ownerReferences", []))


def test_a_child_without_its_owner_is_not_ours(world: World) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend")))
    world.eventually(GRAPH, "chat", is_ready)
    world.patch(SERVICE, "chat-frontend", {"metadata": {"ownerReferences": []}})
    refused = world.eventually(
        COMPONENT, "chat-frontend", lambda it: condition(it, "Available").get("status") == "False"
    )
    assert "NameConflict" == condition(refused, "Available")["reason"]


def test_what_others_add_stays(world: World) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)
    world.patch(DEPLOYMENT, "chat-decode", {"metadata": {"annotations": {"team": "search"}}})
    world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": {"replicas": 2}}}})
    world.eventually(GRAPH, "chat", is_ready)
    after = world.eventually(DEPLOYMENT, "chat-decode")
    assert 2 == after["spec"]["replicas"]
    assert "search" == after["metadata"]["annotations"]["team"]


def test_an_edit_is_not_ready_before_its_pods_are(world: World) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)
    broken = {"extraPodMetadata": {"annotations": {"fake-kubelet": "never-starts"}}}
    world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": broken}}})
    waiting = world.eventually(GRAPH, "chat", lambda it: it["status"].get("observedGeneration") == 2)
    assert "pending" == waiting["status"]["state"]
    said = condition(waiting, "Ready")
    assert ("False", "updating") == (said["status"], said["reason"])
    assert "chat-decode" in said["message"]
    healed = {"extraPodMetadata": None}
    world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": healed}}})
    world.eventually(GRAPH, "chat", is_ready)
