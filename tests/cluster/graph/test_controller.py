"""A graph on a real API server: it becomes ready, keeps its PVCs and its provider, and leaves no object."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from cluster.audit import Audit, Call
from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import IMAGE, SERVICES, graph, service, worker
from cluster.installed import installed
from cluster.world import COMPONENT, DEPLOYMENT, GRAPH, PODS, SERVICE, World
from dynamo_graphs import Graph
from dynamo_operator.graph.render import role_binding
from dynamo_operator.shared.cluster import GROVE, PodCliqueSet
from kube_runtime.types.kinds import PersistentVolumeClaim, PodDisruptionBudget, RoleBinding, ServiceAccount
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


def test_a_paused_graph_can_be_deleted(world: World) -> None:
    body = graph()
    body["metadata"]["annotations"] = {"nvidia.com/paused": "true"}
    world.create(GRAPH, body)
    world.eventually(GRAPH, "chat", lambda body: bool(condition(body, "Progressing")))
    assert [] == world.list(COMPONENT)
    world.delete(GRAPH, "chat")
    world.gone(GRAPH, "chat")


def test_a_component_that_is_not_paused_any_more_says_so(world: World) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)
    name = "chat-frontend"
    world.patch(COMPONENT, name, {"metadata": {"annotations": {"nvidia.com/paused": "true"}}})
    world.eventually(COMPONENT, name, lambda body: condition(body, "Paused").get("status") == "True")
    world.patch(COMPONENT, name, {"metadata": {"annotations": {"nvidia.com/paused": None}}})
    world.eventually(COMPONENT, name, lambda body: condition(body, "Paused").get("status") == "False")


def test_maps_inside_a_pod_spec_can_be_emptied(world: World) -> None:
    container = {"image": IMAGE, "volumeMounts": [{"name": "work", "mountPath": "/work"}]}
    pod = {
        "mainContainer": container,
        "securityContext": {"fsGroup": 7},
        "volumes": [{"name": "work", "emptyDir": {"sizeLimit": "1Gi"}}],
    }
    world.create(GRAPH, graph(Frontend=service("frontend", extraPodSpec=pod)))
    world.eventually(GRAPH, "chat", is_ready)
    emptied = {**pod, "securityContext": {"fsGroup": None}, "volumes": [{"name": "work", "emptyDir": {}}]}
    world.patch(GRAPH, "chat", {"spec": {"services": {"Frontend": {"extraPodSpec": emptied}}}})
    world.eventually(GRAPH, "chat", is_ready)
    spec = world.eventually(DEPLOYMENT, "chat-frontend")["spec"]["template"]["spec"]
    assert {"name": "work", "emptyDir": {}} in spec["volumes"]
    assert {} == spec.get("securityContext", {})


def test_a_budget_settles_follows_its_graph_and_goes_with_the_wish(world: World, kinds: ControlPlane) -> None:
    body = graph()
    body["spec"]["labels"] = {"team": "serving"}
    key = min(body["spec"]["services"])
    name = f"chat-{key.lower()}"
    body["spec"]["services"][key]["disruptionBudget"] = {"maxUnavailable": "25%"}
    world.create(GRAPH, body)
    made = world.eventually(
        PodDisruptionBudget.KIND, name, lambda each: each.get("status", {}).get("observedGeneration") == 1
    )
    assert "25%" == made["spec"]["maxUnavailable"]
    assert "serving" == made["metadata"]["labels"]["team"]
    Audit(kinds.audit_log).falls_silent(world.namespace)
    world.patch(
        GRAPH,
        "chat",
        {"spec": {"services": {key: {"disruptionBudget": {"maxUnavailable": None, "minAvailable": 1}}}}},
    )
    changed = world.eventually(PodDisruptionBudget.KIND, name, lambda each: "minAvailable" in each["spec"])
    assert "maxUnavailable" not in changed["spec"]
    world.patch(GRAPH, "chat", {"spec": {"services": {key: {"disruptionBudget": None}}}})
    world.gone(PodDisruptionBudget.KIND, name)


def test_a_planner_whose_binding_names_another_role_gets_a_new_one(world: World, kinds: ControlPlane) -> None:
    body = role_binding(
        world.namespace, "planner-serviceaccount-binding", "planner-serviceaccount", "ClusterRole", "edit"
    )
    before = world.create(RoleBinding.KIND, body)
    audit = Audit(kinds.audit_log)
    since = audit.now()
    world.create(GRAPH, graph(Planner=service("planner")))
    world.eventually(GRAPH, "chat", is_ready)
    found = world.eventually(RoleBinding.KIND, "planner-serviceaccount-binding")
    assert "view" == found["roleRef"]["name"]
    assert before["metadata"]["uid"] != found["metadata"]["uid"]
    assert ["chat"] == [each["name"] for each in found["metadata"]["ownerReferences"]]
    calls = audit.calls(namespace=world.namespace, since=since)
    assert 1 == calls[Call("delete", "rolebindings")]
    audit.falls_silent(world.namespace)
    since = audit.now()
    world.patch(GRAPH, "chat", {"metadata": {"annotations": {"woken": "again"}}})
    audit.falls_silent(world.namespace)
    assert Call("delete", "rolebindings") not in audit.calls(namespace=world.namespace, since=since)
    assert found == world.get(RoleBinding.KIND, "planner-serviceaccount-binding")


RECORD = "nvidia.com/workload-provider"
UNAVAILABLE = "selected_workload_provider_unavailable"


def test_graphs_stay_where_they_began_while_grove_comes_and_goes(world: World, kinds: ControlPlane) -> None:
    frontend = service("frontend")
    world.create(GRAPH, graph("before", Frontend=frontend))
    before = world.eventually(GRAPH, "before", is_ready)
    assert RECORD not in _annotations(before)
    with installed(kinds, ("grove",), GROVE.kinds):
        world.eventually(GRAPH, "before", lambda it: "component" == _annotations(it).get(RECORD))

        world.create(GRAPH, graph("during", Frontend=frontend))
        world.eventually(GRAPH, "during", lambda it: "grove" == _annotations(it).get(RECORD))
        world.eventually(PodCliqueSet.KIND, "during")
        world.patch(GRAPH, "before", {"spec": {"services": {"Frontend": {"replicas": 2}}}})
        world.eventually(GRAPH, "before", lambda it: is_ready(it) and 2 == it["status"]["observedGeneration"])
        assert None is world.get(PodCliqueSet.KIND, "before")
        world.patch(GRAPH, "before", {"metadata": {"annotations": {RECORD: None}}})
        world.eventually(GRAPH, "before", lambda it: "component" == _annotations(it).get(RECORD))
        was = world.eventually(COMPONENT, "before-frontend")["metadata"]["uid"]
        world.delete(COMPONENT, "before-frontend")
        world.eventually(COMPONENT, "before-frontend", lambda it: was != it["metadata"]["uid"])
        world.eventually(GRAPH, "before", is_ready)
        assert None is world.get(PodCliqueSet.KIND, "before")
    lost = world.eventually(GRAPH, "during", lambda it: UNAVAILABLE == _reason(it))
    assert "grove" == _annotations(lost)[RECORD]
    assert None is world.get(COMPONENT, "during-frontend")
    world.create(GRAPH, graph("after", Frontend=frontend))
    world.eventually(GRAPH, "after", is_ready)
    with installed(kinds, ("grove",), GROVE.kinds):
        world.eventually(PodCliqueSet.KIND, "during")
        world.eventually(GRAPH, "during", lambda it: UNAVAILABLE != _reason(it))


def _annotations(body: Object) -> dict[str, str]:
    found: dict[str, str] = body["metadata"].get("annotations", {})
    return found


def _reason(body: Object) -> str:
    return str(condition(body, "Ready").get("reason", ""))


FOLDER = Path(__file__).parents[3] / "examples"
# Requests become ready in tests/cluster/profiler, where a profiler runs.
EXAMPLES = sorted(each for each in FOLDER.glob("*.yaml") if not each.stem.startswith("request-"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_becomes_ready(example: Path, world: World) -> None:
    written = next(yaml.safe_load_all(example.read_text(encoding="utf-8")))  # its Ingress has no controller
    body = Graph.from_dict(written).to_dict("v1alpha1")
    world.create(GRAPH, body)
    ready = world.eventually(GRAPH, body["metadata"]["name"], is_ready)
    assert set(body["spec"]["services"]) == set(ready["status"]["services"])


CLAIM = PersistentVolumeClaim.KIND


def with_claims(*claims: Object) -> Object:
    wanted = graph(Frontend=service("frontend"))
    wanted["spec"]["pvcs"] = list(claims)
    return wanted


def made(name: str = "models", size: str = "1Gi") -> Object:
    details = {"size": size, "storageClass": "standard", "volumeAccessMode": "ReadWriteMany"}
    return {"name": name, "create": True, **details}


def claim(name: str) -> Object:
    spec: dict[str, Any] = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "theirs",
        "resources": {"requests": {"storage": "5Gi"}},
    }
    return {"metadata": {"name": name}, "spec": spec}


def test_a_claim_is_neither_changed_nor_taken_away(world: World) -> None:
    world.create(GRAPH, with_claims(made(size="1Gi")))
    before = world.eventually(CLAIM, "models")
    world.patch(GRAPH, "chat", {"spec": {"pvcs": [made(size="2Gi"), made("more")]}})
    world.eventually(CLAIM, "more")
    world.patch(GRAPH, "chat", {"spec": {"pvcs": None}})
    world.eventually(GRAPH, "chat", lambda it: it["status"].get("observedGeneration") == 3)
    after = world.eventually(CLAIM, "models")
    assert before["spec"] == after["spec"]
    assert "deletionTimestamp" not in after["metadata"]


def test_a_claim_that_exists_is_left_alone(world: World) -> None:
    before = world.create(CLAIM, claim("models"))
    world.create(GRAPH, with_claims(made()))
    world.eventually(GRAPH, "chat", is_ready)
    after = world.eventually(CLAIM, "models")
    assert before["spec"] == after["spec"]
    assert "ownerReferences" not in after["metadata"]


def is_going(claim: Object | None) -> bool:
    """Whether a PVC is deleted, or waits for its finalizers."""
    return claim is None or "deletionTimestamp" in claim["metadata"]


def test_a_retained_claim_outlives_its_graph(world: World) -> None:
    kept, late = made("kept") | {"retain": True}, made("late")
    world.create(GRAPH, with_claims(kept, late, made("gone")))
    world.eventually(CLAIM, "gone", lambda it: bool(it["metadata"]["ownerReferences"]))
    found = world.eventually(CLAIM, "kept")
    assert "ownerReferences" not in found["metadata"]
    changed = [kept, late | {"retain": True, "size": "9Gi"}, made("gone")]
    world.patch(GRAPH, "chat", {"spec": {"pvcs": changed}})
    freed = world.eventually(CLAIM, "late", lambda it: not it["metadata"].get("ownerReferences"))
    assert "1Gi" == freed["spec"]["resources"]["requests"]["storage"]
    world.delete(GRAPH, "chat")
    world.until(lambda: is_going(world.get(CLAIM, "gone")))
    for name in ("kept", "late"):
        assert "deletionTimestamp" not in world.eventually(CLAIM, name)["metadata"]
