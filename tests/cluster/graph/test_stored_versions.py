"""Graphs on a cluster that stores v1beta1: while no conversion webhook answers, and where it serves no other.

Where both versions are served the CRDs name a Service without pods, as while all replicas of an operator are
gone: a request in v1alpha1 fails. The operator needs none.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.operator_process import OperatorProcess
from cluster.person import Person
from cluster.served import serve
from cluster.world import CHILDREN, EVENTS, PODS, World
from devcluster.components import KubectlError
from dynamo_operator.component.api import DynamoComponentDeployment
from kube_runtime.types.kinds import ControllerRevision, Deployment
from kube_runtime.types.meta import Kind, Object

pytestmark = pytest.mark.cluster

GRAPH = Kind("nvidia.com", "v1beta1", "DynamoGraphDeployment")
ADAPTER = Kind("nvidia.com", "v1beta1", "DynamoGraphDeploymentScalingAdapter")
COMPONENT = Kind("nvidia.com", "v1beta1", "DynamoComponentDeployment")
OWNED = (
    *(kind for kind in CHILDREN if kind != DynamoComponentDeployment.KIND),
    *(COMPONENT, ADAPTER, ControllerRevision.KIND, PODS),
)
WORKER = """\
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  components:
    - {name: Frontend, type: frontend, podTemplate: {spec: {containers: [{name: main, image: "vllm:1.6.1"}]}}}
    - name: Decode
      type: decode
      replicas: 2
      scalingAdapter: {}
      podTemplate:
        spec:
          volumes: [{name: tmp, emptyDir: {}}]
          containers:
            - name: main
              image: vllm:1.6.1
              command: [python3, -m, dynamo.vllm]
              volumeMounts: [{name: tmp, mountPath: /tmp, readOnly: true}]
"""


@pytest.fixture(scope="module")
def restored(kinds: ControlPlane) -> Iterator[None]:
    """Afterwards v1alpha1 alone is served."""
    yield
    serve(kinds, "v1alpha1")
    kinds.install_crds()


@pytest.fixture(scope="module")
def operated(kinds: ControlPlane, restored: None, request: pytest.FixtureRequest) -> ControlPlane:
    """The control plane, which serves the versions of the test and stores the first."""
    serve(kinds, *request.param)
    kinds.install_crds()  # none: the garbage collector learns the versions by the restart
    return kinds


@pytest.fixture
def person(operated: ControlPlane, namespace: str) -> Person:
    return Person(operated.kubeconfig, namespace)


def owned(world: World) -> list[Object]:
    """What a graph owns, also through others."""
    bodies = [body for kind in OWNED for body in world.list(kind)]
    return [body for body in bodies if body["metadata"].get("ownerReferences")]


def ready(world: World, person: Person) -> None:
    world.until(lambda: is_ready(world.read(GRAPH, "chat")), what=lambda: str(person.run("why", "chat")))


@pytest.mark.parametrize("operated", [("v1beta1", "v1alpha1")], indirect=True)
@pytest.mark.usefixtures("operator")
def test_a_graph_runs_scales_and_goes_without_a_conversion_webhook(
    operator: OperatorProcess, world: World, kubectl: Callable[..., str]
) -> None:
    kubectl("apply", "--filename=-", input=WORKER)
    with pytest.raises(KubectlError, match="conversion webhook"):
        kubectl("get", "dynamographdeployments.v1alpha1.nvidia.com", "chat")
    world.until(lambda: is_ready(world.read(GRAPH, "chat")), what=lambda: str(world.get(GRAPH, "chat")))
    deployment = world.read(Deployment.KIND, "chat-decode")
    (mount,) = (
        mount
        for mount in deployment["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
        if mount["name"] == "tmp"
    )
    assert mount["readOnly"]
    kubectl("scale", "dgdsa/chat-decode", "--replicas=3")
    world.until(
        lambda: world.read(GRAPH, "chat")["spec"]["components"][1]["replicas"] == 3,
        what=lambda: kubectl("get", "dgd,dgdsa", "-oyaml"),
    )
    world.until(
        lambda: world.read(Deployment.KIND, "chat-decode")["status"].get("readyReplicas") == 3,
        what=lambda: kubectl("get", "pods"),
    )
    status = world.read(GRAPH, "chat")["status"]
    assert {"Frontend", "Decode"} == set(status["components"])
    kubectl("delete", "dgd/chat")
    world.gone(GRAPH, "chat")
    world.gone(ADAPTER, "chat-decode")
    world.gone(Deployment.KIND, "chat-decode")
    assert "conversion webhook" not in operator.log.read_text(encoding="utf-8")


@pytest.mark.parametrize("operated", [("v1beta1",)], indirect=True)
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
