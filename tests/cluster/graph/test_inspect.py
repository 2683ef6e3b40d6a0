"""`dynamoctl get`, `why`, `status`, `tree`, `events` and `logs` on a real cluster."""

from collections.abc import Callable

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.person import Person
from cluster.world import GRAPH, PATIENCE_SECONDS, World
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

KINDS = "dynamographdeployments.nvidia.com,dynamocomponentdeployments.nvidia.com"


@pytest.fixture
def reader(kinds: ControlPlane, namespace: str, kubectl: Callable[..., str]) -> Person:
    kubectl("create", "serviceaccount", "reader")
    kubectl("create", "role", "reader", "--verb=get,list,watch", f"--resource={KINDS}")
    kubectl(*("create", "rolebinding", "reader", "--role=reader"), f"--serviceaccount={namespace}:reader")
    return Person(kinds.instance.service_account_kubeconfig(namespace, "reader"), namespace)


def without_image() -> Object:
    annotations = {"fake-kubelet": "no-image"}
    return worker("decode", extraPodMetadata={"annotations": annotations})


def test_a_watch_ends_when_the_graph_is_ready(world: World, admin: Person) -> None:
    world.create(GRAPH, graph(Decode=without_image()))
    world.eventually(GRAPH, "chat", lambda it: condition(it).get("reason") == "image_pull_failed")
    with admin.running("status", "chat", "--watch") as process:
        assert process.stdout
        assert "not ready" in process.stdout.readline()
        world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": {"extraPodMetadata": None}}}})
        said, _ = process.communicate(timeout=PATIENCE_SECONDS)
    assert 0 == process.returncode
    assert f"DynamoGraphDeployment {world.namespace}/chat: ready: Decode 1/1\n" in said


def test_a_watch_ends_when_the_graph_is_deleted(world: World, admin: Person) -> None:
    world.create(GRAPH, graph(Decode=without_image()))
    with admin.running("status", "chat", "--watch") as process:
        assert process.stdout
        process.stdout.readline()
        world.delete(GRAPH, "chat")
        _, said = process.communicate(timeout=PATIENCE_SECONDS)
    assert 1 == process.returncode
    assert f"error: graph chat not found in namespace {world.namespace}\n" == said


def test_a_user_who_may_not_see_pods(world: World, reader: Person) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend"), Decode=without_image()))
    world.eventually(GRAPH, "chat", lambda it: condition(it).get("reason") == "image_pull_failed")
    code, text, said = reader.run("why", "chat")
    assert (1, "") == (code, said)
    assert "container main: ImagePullBackOff" in text
    code, text, said = reader.run("tree", "chat")
    assert 1 == code
    assert "✔ DynamoComponentDeployment chat-frontend" in text
    assert 1 == sum(each.startswith("warning: cannot list pods") for each in said.splitlines())
    assert all(each.startswith("warning: ") for each in said.splitlines())


def test_a_list_is_watched(world: World, admin: Person) -> None:
    with admin.running("get", "--watch") as process:
        assert process.stdout
        assert "NAME" in process.stdout.readline()
        world.create(GRAPH, graph(Frontend=service("frontend")))
        for line in process.stdout:
            if line.split()[:2] == ["chat", "True"]:
                return
    pytest.fail("the watch ended")


TEMPLATES = (
    "{.kind}: {.items[*].metadata.name}",
    '{range .items[*]}{.metadata.name}{"\\t"}{.spec.services.Decode.componentType}{"\\n"}{end}',
    "{range .items[*]}{range .status.conditions[*]}{.type}={.status};{end}{end}",
    "{.items[*].status.conditions[?(@.type=='Ready')].reason}",
    '{.items[?(@.metadata.name!="chat")].metadata.name}',
    "{.items[?(@.metadata.generation>=1)].kind}",
    "{.items[*]['metadata.name','spec.services']}",
    "{.items[0].metadata.labels.team\\.example/a}|{.items[-1].metadata.name}|{.items[0,1].metadata.name}",
    "{.items[0:1].metadata.name}{.items[::2].metadata.name}{.items[1].nothing.there}",
    "{..componentType}",
    "{$.kind}{@.kind}{['kind']}{ .kind }",
    "{.items.metadata}{range .items}{.metadata.name}{end}",
)


def test_a_template_prints_what_kubectl_prints(
    world: World, admin: Person, kubectl: Callable[..., str]
) -> None:
    for name in ("chat", "search"):
        body = graph(name=name, Decode=without_image())
        body["metadata"]["labels"] = {"team.example/a": name}
        world.create(GRAPH, body)
        world.eventually(GRAPH, name, lambda it: condition(it).get("reason") == "image_pull_failed")
    for template in TEMPLATES:
        expected = kubectl("get", "dynamographdeployments", f"--output=jsonpath={template}")
        assert (0, expected, "") == admin.run("get", f"--output=jsonpath={template}"), template


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
