"""A cluster that serves v1beta1 alone: everything that a user does with a graph, and its end."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.test_stored_versions import ADAPTER, GRAPH, WORKER
from cluster.person import Person
from cluster.served import serving
from cluster.world import CHILDREN, EVENTS, PODS, World
from devcluster.components import KubectlError
from dynamo_operator.component.api import DynamoComponentDeployment
from kube_runtime.types.kinds import ControllerRevision, Deployment
from kube_runtime.types.meta import Kind, Object

pytestmark = pytest.mark.cluster

COMPONENT = Kind("nvidia.com", "v1beta1", "DynamoComponentDeployment")
OWNED = (
    *(kind for kind in CHILDREN if kind != DynamoComponentDeployment.KIND),
    *(COMPONENT, ADAPTER, ControllerRevision.KIND, PODS),
)


@pytest.fixture(scope="module")
def operated(kinds: ControlPlane) -> Iterator[ControlPlane]:
    with serving(kinds, "v1beta1"):
        yield kinds


@pytest.fixture
def person(operated: ControlPlane, namespace: str) -> Person:
    return Person(operated.kubeconfig, namespace)


def owned(world: World) -> list[Object]:
    """What a graph owns, also through others."""
    bodies = [body for kind in OWNED for body in world.list(kind)]
    return [body for body in bodies if body["metadata"].get("ownerReferences")]


def ready(world: World, person: Person) -> None:
    world.until(lambda: is_ready(world.read(GRAPH, "chat")), what=lambda: str(person.run("why", "chat")))


@pytest.mark.usefixtures("operator")
def test_a_graph_is_created_scaled_undone_explained_and_deleted_with_its_children(
    world: World, person: Person, kubectl: Callable[..., str], tmp_path: Path
) -> None:
    with pytest.raises(KubectlError, match="the server doesn't have a resource type"):
        kubectl("get", "dynamographdeployments.v1alpha1.nvidia.com")
    file = tmp_path / "chat.yaml"
    file.write_text(WORKER)
    code, text, errors = person.run("apply", str(file), "--wait", "--timeout=180s")
    assert 0 == code, text + errors
    ready(world, person)
    assert {"nvidia.com/v1beta1"} == {
        reference["apiVersion"]
        for body in owned(world)
        for reference in body["metadata"]["ownerReferences"]
        if reference["kind"].startswith("Dynamo")
    }
    code, text, errors = person.run("scale", "chat/Decode", "--replicas=3")
    assert 0 == code, text + errors
    world.eventually(Deployment.KIND, "chat-decode", lambda it: it["status"].get("readyReplicas") == 3)
    file.write_text(WORKER.replace("vllm:1.6.1", "vllm:1.6.2").replace("      replicas: 2\n", ""))
    code, text, errors = person.run("diff", str(file))
    assert (0, "0 to create, 1 to change\n") == (code, errors), text
    code, text, errors = person.run("apply", str(file), "--wait", "--timeout=180s")
    assert 0 == code, text + errors
    code, text, errors = person.run("rollout", "undo", "chat")
    assert 0 == code, text + errors
    (image,) = {
        component["podTemplate"]["spec"]["containers"][0]["image"]
        for component in world.read(GRAPH, "chat")["spec"]["components"]
    }
    assert "vllm:1.6.1" == image
    ready(world, person)
    failures = list[object]()
    for words in (
        ("check",),
        ("why", "chat"),
        ("why", "--all"),
        ("status", "chat"),
        ("get",),
        ("tree", "chat", "--output=json"),
        ("events", "chat"),
        ("rollout", "status", "chat"),
        ("rollout", "history", "chat"),
        ("rollout", "restart", "chat"),
        ("suspend", "chat"),
        ("resume", "chat"),
        ("rollout", "undo", "chat", "--dry-run"),
        ("install", "cleanup", "--dry-run"),
    ):
        code, text, errors = person.run(*words)
        if code or "v1alpha1" in text + errors:
            failures.append((words, code, text, errors))
    assert [] == failures
    events = [event["involvedObject"] for event in world.list(EVENTS)]
    assert {"nvidia.com/v1beta1"} == {
        about["apiVersion"] for about in events if about["kind"].startswith("Dynamo")
    }
    kubectl("delete", "dgd/chat")
    world.gone(GRAPH, "chat")
    world.until(lambda: not owned(world), what=lambda: str(owned(world)))
