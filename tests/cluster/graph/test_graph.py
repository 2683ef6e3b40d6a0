"""A graph on a real API server: it becomes ready, stays right, and goes without a trace."""

import pytest

from cluster.conditions import condition, is_ready
from cluster.graph.graphs import SERVICES, graph, service, worker
from cluster.world import EVENTS, PODS, Refused, World
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.kind import Kind, Object
from kube_runtime.types.kinds import Deployment, Role, RoleBinding, Service, ServiceAccount

GRAPH = DynamoGraphDeployment.KIND
COMPONENT = DynamoComponentDeployment.KIND
DEPLOYMENT = Deployment.KIND
SERVICE = Service.KIND
QUOTA = Kind("", "v1", "ResourceQuota", "resourcequotas")

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
        component = world.get(COMPONENT, f"chat-{name.lower()}")
        assert component is not None
        for type_ in ("Valid", "Available", "DynamoComponentReady"):
            assert "True" == condition(component, type_)["status"]
    assert 3 == len(world.list(PODS))


def test_a_deleted_graph_leaves_nothing_behind(world: World) -> None:
    planner = service("planner")
    world.create(GRAPH, graph(Frontend=service("frontend"), Planner=planner))
    world.eventually(GRAPH, "chat", is_ready)
    assert world.get(ServiceAccount.KIND, "planner-serviceaccount")
    world.delete(GRAPH, "chat")
    kinds = (COMPONENT, DEPLOYMENT, SERVICE, Role.KIND, RoleBinding.KIND, PODS)
    world.until(
        lambda: not any(world.list(kind) for kind in kinds),
        what=lambda: str({str(kind): world.list(kind) for kind in kinds}),
    )
    accounts = [each["metadata"]["name"] for each in world.list(ServiceAccount.KIND)]
    assert ["default"] == accounts


def test_a_foreground_deletion_ends(world: World) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)
    world.delete(GRAPH, "chat", propagation="Foreground")
    world.gone(GRAPH, "chat")
    assert [] == world.list(DEPLOYMENT)


def test_two_graphs_share_the_planners_account(world: World) -> None:
    for name in ("one", "two"):
        world.create(GRAPH, graph(name, Planner=service("planner")))
    for name in ("one", "two"):
        world.eventually(GRAPH, name, is_ready)
    account = ServiceAccount.KIND
    world.eventually(account, "planner-serviceaccount", lambda it: _owners(it) == ["one", "two"])
    world.delete(GRAPH, "one")
    world.gone(GRAPH, "one")
    world.eventually(account, "planner-serviceaccount", lambda it: _owners(it) == ["two"])
    assert is_ready(world.eventually(GRAPH, "two"))


def _owners(body: Object) -> list[str]:
    return sorted(each["name"] for each in body["metadata"].get("ownerReferences", []))


def test_a_deleted_child_comes_back(world: World) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)
    before = world.eventually(DEPLOYMENT, "chat-decode")["metadata"]["uid"]
    for kind, name in ((DEPLOYMENT, "chat-decode"), (SERVICE, "chat-decode")):
        world.delete(kind, name)
    world.eventually(DEPLOYMENT, "chat-decode", lambda it: it["metadata"]["uid"] != before)
    world.eventually(SERVICE, "chat-decode")
    world.delete(COMPONENT, "chat-frontend")
    world.eventually(GRAPH, "chat", is_ready)


@pytest.mark.parametrize(
    ("kind", "name", "change"),
    [
        (DEPLOYMENT, "chat-decode", {"spec": {"replicas": 3}}),
        (DEPLOYMENT, "chat-decode", {"metadata": {"labels": {"nvidia.com/dynamo-component": "x"}}}),
        (SERVICE, "chat-decode", {"spec": {"selector": {"nvidia.com/dynamo-component": "x"}}}),
        (SERVICE, "chat-decode", {"metadata": {"ownerReferences": []}}),
        (Role.KIND, "chat-k8s-service-discovery-role", {"rules": []}),
        (COMPONENT, "chat-decode", {"spec": {"replicas": 3}}),
    ],
)
def test_a_manual_change_of_a_child_is_undone(
    world: World, kind: Kind, name: str, change: Object
) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)
    before = _content(world.eventually(kind, name))
    if "ownerReferences" in change.get("metadata", {}):
        world.patch(kind, name, change)
        refused = world.eventually(COMPONENT, "chat-decode", _is_blocked)
        assert "NameConflict" == condition(refused, "Available")["reason"]
        return
    world.patch(kind, name, change)
    world.until(
        lambda: _content(world.eventually(kind, name)) == before,
        what=lambda: f"{before} is now {_content(world.eventually(kind, name))}",
    )


def _is_blocked(body: Object) -> bool:
    return condition(body, "Available").get("status") == "False"


def _content(body: Object) -> Object:
    metadata = {name: body["metadata"].get(name) for name in ("labels", "ownerReferences")}
    return {**{each: body.get(each) for each in ("spec", "rules", "subjects")}, **metadata}


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
    waiting = world.eventually(
        GRAPH, "chat", lambda it: it["status"].get("observedGeneration") == 2
    )
    assert "pending" == waiting["status"]["state"]
    said = condition(waiting, "Ready")
    assert ("False", "updating") == (said["status"], said["reason"])
    assert "chat-decode" in said["message"]
    healed = {"extraPodMetadata": None}
    world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": healed}}})
    world.eventually(GRAPH, "chat", is_ready)


def test_zero_replicas_are_ready(world: World) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend"), Decode=worker("decode", replicas=0)))
    ready = world.eventually(GRAPH, "chat", is_ready)
    assert 0 == ready["status"]["services"]["Decode"]["replicas"]


def test_a_removed_service_goes(world: World) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)
    world.patch(GRAPH, "chat", {"spec": {"services": {"Prefill": None}}})
    world.gone(COMPONENT, "chat-prefill")
    world.gone(DEPLOYMENT, "chat-prefill")
    ready = world.eventually(GRAPH, "chat", is_ready)
    assert {"Decode", "Frontend"} == set(ready["status"]["services"])


def test_a_bad_graph_says_all_that_is_wrong_and_touches_nothing(world: World) -> None:
    nameless = service("frontend", extraPodSpec={"mainContainer": {}})
    memory = {"limits": {"memory": "lots"}}
    world.create(GRAPH, graph(Frontend=nameless, Decode=worker("decode", resources=memory)))
    failed = world.eventually(
        GRAPH, "chat", lambda it: it.get("status", {}).get("state") == "failed"
    )
    said = condition(failed, "Ready")
    assert "ValidationFailed" == said["reason"]
    assert "image" in said["message"]
    assert "lots" in said["message"]
    assert [] == world.list(COMPONENT)
    good = {"Frontend": service("frontend"), "Decode": worker("decode", resources=None)}
    world.patch(GRAPH, "chat", {"spec": {"services": good}})
    world.eventually(GRAPH, "chat", is_ready)


def test_a_taken_name_is_reported_and_left_alone(world: World) -> None:
    theirs = {
        "metadata": {"name": "chat-frontend"},
        "spec": {"ports": [{"port": 1234}], "selector": {"app": "theirs"}},
    }
    before = world.create(SERVICE, theirs)
    world.create(GRAPH, graph())
    failed = world.eventually(COMPONENT, "chat-frontend", _is_blocked)
    said = condition(failed, "Available")
    assert "NameConflict" == said["reason"]
    assert "Service chat-frontend" in said["message"]
    pending = world.eventually(
        GRAPH,
        "chat",
        lambda it: "Service chat-frontend" in condition(it, "Ready").get("message", ""),
    )
    assert "pending" == pending["status"]["state"]
    now = world.eventually(SERVICE, "chat-frontend")
    assert before["metadata"]["resourceVersion"] == now["metadata"]["resourceVersion"]
    world.delete(SERVICE, "chat-frontend")
    world.eventually(GRAPH, "chat", is_ready)


def test_a_refusal_of_the_api_server_is_a_condition(world: World) -> None:
    quota = {"metadata": {"name": "few"}, "spec": {"hard": {"count/services": "0"}}}
    world.create(QUOTA, quota)
    world.eventually(QUOTA, "few", lambda it: "hard" in it.get("status", {}))
    world.create(GRAPH, graph(Frontend=service("frontend")))
    refused = world.eventually(COMPONENT, "chat-frontend", _is_blocked)
    said = condition(refused, "Available")
    assert "RejectedByApiServer" == said["reason"]
    assert "exceeded quota" in said["message"]


def test_pull_secrets_reach_the_pods_that_need_them(world: World) -> None:
    auths = '{"auths":{"https://nvcr.io/v2/":{"auth":"eDp5"}}}'
    secret = Kind("", "v1", "Secret", "secrets")
    world.create(
        secret,
        {
            "metadata": {"name": "ngc"},
            "type": "kubernetes.io/dockerconfigjson",
            "stringData": {".dockerconfigjson": auths},
        },
    )
    world.create(GRAPH, graph(Frontend=service("frontend")))
    deployment = world.eventually(
        DEPLOYMENT, "chat-frontend", lambda it: "imagePullSecrets" in it["spec"]["template"]["spec"]
    )
    assert [{"name": "ngc"}] == deployment["spec"]["template"]["spec"]["imagePullSecrets"]


def test_events_tell_what_was_created(world: World) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)

    def told() -> set[str]:
        events = world.list(EVENTS)
        return {it["reason"] for it in events if it["involvedObject"]["name"] == "chat"}

    expected = {
        "CreateServiceAccount",
        "CreateRole",
        "CreateRoleBinding",
        "CreateDynamoComponentDeployment",
    }
    world.until(lambda: told() == expected, what=lambda: str(told()))


def test_the_schema_refuses_a_typo(world: World) -> None:
    pod = {"mainContainer": {"image": "i", "imagePulPolicy": "Always"}}
    with pytest.raises(Refused, match="imagePulPolicy"):
        world.create(GRAPH, graph(Frontend=service("frontend", extraPodSpec=pod)))
