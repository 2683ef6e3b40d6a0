"""Both versions on a real API server: what is written in one is read in the other, by any request."""

import json
from collections.abc import Callable, Iterator
from contextlib import suppress

import pytest

from cluster.admission.clients import Kubectl, applied, appliers, argo_cd, flux, watched
from cluster.admission.conftest import NAMESPACE, SECRET_NAME, Install, Installation
from cluster.admission.front import Front, front
from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.served import DEFINITIONS, KINDS, define, empty, serve
from cluster.world import ADAPTER, GRAPH, Refused, World
from devcluster.components import KubectlError
from dynamo_operator.features.scaling import v1beta1 as adapter
from dynamo_operator.graph import v1beta1 as later
from dynamo_operator.labels import SUSPEND
from dynamo_operator.shared.cluster import ServingSecret
from dynamo_operator.versions.room import MOST_BYTES
from kube_runtime.crd import ConversionWebhook
from kube_runtime.types.meta import Kind, Object
from kube_runtime.wire import path_of

LATER_GRAPH = later.DynamoGraphDeployment.KIND
LATER_ADAPTER = adapter.DynamoGraphDeploymentScalingAdapter.KIND
IMAGE = "nvcr.io/nvidia/ai-dynamo/vllm-runtime:1.6.1"
GRAPHS = "dynamographdeployments"
VERSIONS = ("v1alpha1", "v1beta1")
MANY = 4
OF_VERSION = {kind.version: kind for kind in (GRAPH, LATER_GRAPH)}
AUTOSCALER = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
EVERY_VERSION = pytest.mark.parametrize("version", VERSIONS)
EITHER_STORED = pytest.mark.parametrize("stored", ["v1beta1", "v1alpha1"], indirect=True)
"""A statement that depends on the stored version; `make long` tries the others with v1alpha1 stored too."""


def component(name: str, type_: str, **fields: object) -> Object:
    containers = [{"name": "main", "image": IMAGE, "command": ["python3", "-m", "dynamo.vllm"]}]
    return {"name": name, "type": type_, "podTemplate": {"spec": {"containers": containers}}, **fields}


def idle(name: str) -> Object:
    """A graph without pods."""
    return graph(name, Frontend={**graph()["spec"]["services"]["Frontend"], "replicas": 0})


def later_graph(name: str = "chat", **fields: object) -> Object:
    components = [component("Frontend", "frontend"), component("Decode", "decode", **fields)]
    return {"metadata": {"name": name}, "spec": {"components": components}}


def manifest_of(kind: Kind, body: Object) -> Object:
    return {"apiVersion": kind.api_version, "kind": kind.name, **body}


MANIFESTS = {
    "v1alpha1": manifest_of(
        GRAPH,
        graph(
            Frontend=service(
                "frontend", serviceName="Frontend", sharedMemory={"disabled": True, "size": "0"}
            ),
            Decode=worker(
                "decode",
                labels={"a": "b"},
                ingress={"enabled": False, "host": "chat"},
                envs=[{"name": "B", "value": "x"}],
                resources={"limits": {"gpu": "1", "cpu": "1000m"}},
            ),
        ),
    ),
    "v1beta1": manifest_of(
        LATER_GRAPH,
        later_graph(experimental={"grove": {"forceScalingGroup": False}}, sharedMemorySize="1024Mi"),
    ),
}
"""Graphs with fields that the other version does not have."""


@pytest.fixture(scope="module")
def address(kinds: ControlPlane) -> Iterator[Front]:
    """Where the API server calls the operator; afterwards the CRDs have one version again."""
    with front() as address:
        yield address
        serve(kinds, "v1alpha1")


@pytest.fixture(
    scope="module", autouse=True, params=["v1beta1", pytest.param("v1alpha1", marks=pytest.mark.long)]
)
def stored(kinds: ControlPlane, address: Front, request: pytest.FixtureRequest) -> str:
    """The version in which objects are stored: by default that of a new installation."""
    (other,) = {*VERSIONS} - {request.param}
    serve(kinds, request.param, other, conversion=webhook_at(address))
    return str(request.param)


@pytest.fixture(scope="module")
def converting(kinds: ControlPlane, install: Install, address: Front) -> Iterator[Installation]:
    """An operator that converts, whichever version is stored."""
    with install(url_port=address.port) as found:
        address.backends = [found.port]
        kinds.world("").until(lambda: trust(found))
        yield found
        empty(kinds)  # while it converts


def webhook_at(address: Front) -> ConversionWebhook:
    return ConversionWebhook(url=f"https://127.0.0.1:{address.port}/convert")


def trust(found: Installation) -> bool:
    """Whether the API server calls conversions by the CA of the installation alone."""

    def bundle(kind: Kind) -> str:
        body = found.asker.get(path_of(DEFINITIONS, "", str(kind))).body
        return str(body["spec"]["conversion"]["webhook"]["clientConfig"].get("caBundle", ""))

    bundles = found.bundles()
    return "" not in bundles and all({bundle(kind)} == bundles for kind in KINDS)


@pytest.fixture
def world(stored: str, converting: Installation, world: World) -> Iterator[World]:
    yield world
    for each in world.list(OF_VERSION[stored]):
        world.delete(OF_VERSION[stored], each["metadata"]["name"])


@EITHER_STORED
def test_a_graph_of_one_version_is_read_in_the_other(world: World, kubectl: Callable[..., str]) -> None:
    world.apply(GRAPH, {"apiVersion": "nvidia.com/v1alpha1", "kind": GRAPH.name, **graph("old")})
    components = world.read(LATER_GRAPH, "old")["spec"]["components"]
    assert [("Decode", "decode"), ("Frontend", "frontend"), ("Prefill", "prefill")] == [
        (each["name"], each["type"]) for each in components
    ]
    assert {"nvidia.com/gpu": "1"} == components[0]["podTemplate"]["spec"]["containers"][0]["resources"][
        "limits"
    ]
    world.apply(
        LATER_GRAPH, {"apiVersion": LATER_GRAPH.api_version, "kind": GRAPH.name, **later_graph("new")}
    )
    services = world.read(GRAPH, "new")["spec"]["services"]
    assert ("worker", "decode") == (
        services["Decode"]["componentType"],
        services["Decode"]["subComponentType"],
    )
    for version in VERSIONS:
        names = kubectl("get", f"{GRAPHS}.{version}.nvidia.com", "--output=name").split()
        assert [f"dynamographdeployment.nvidia.com/{name}" for name in ("new", "old")] == names


def test_a_refusal_names_the_field_in_either_version(world: World, kubectl: Callable[..., str]) -> None:
    body = {"apiVersion": LATER_GRAPH.api_version, "kind": GRAPH.name, **later_graph(replicas=-1)}
    with pytest.raises(KubectlError, match=r"spec.components\[1\].replicas"):
        kubectl("apply", "--filename=-", input=json.dumps(body))


def test_rules_are_those_of_the_version_in_which_a_graph_is_written(world: World) -> None:
    """The volume of a pod is not that of a PVC, which every mount of v1alpha1 is."""
    body = {"apiVersion": LATER_GRAPH.api_version, "kind": GRAPH.name, **later_graph()}
    pod = body["spec"]["components"][1]["podTemplate"]["spec"]
    pod["volumes"] = [{"name": "dshm", "emptyDir": {"medium": "Memory"}}]
    pod["containers"][0]["volumeMounts"] = [{"name": "dshm", "mountPath": "/dev/shm"}]  # noqa: S108
    world.apply(LATER_GRAPH, body)
    del pod["containers"][0]["image"]
    with pytest.raises(Refused, match=r"spec\.components\[1\]\.podTemplate\.spec\.containers\[0\]\.image: "):
        world.apply(LATER_GRAPH, body)


def test_an_apply_of_what_is_stored_changes_nothing(world: World, kubectl: Callable[..., str]) -> None:
    """Nothing is filled in, so a merge patch, which knows lists only as a whole, has nothing to write."""
    written = {"apiVersion": LATER_GRAPH.api_version, "kind": GRAPH.name, **later_graph()}
    apply = ("apply", "--filename=-")
    assert "created" in kubectl(*apply, input=json.dumps(written))
    assert "unchanged" in kubectl(*apply, input=json.dumps(written))
    assert "" == kubectl("diff", "--filename=-", input=json.dumps(written))
    assert written["spec"] == world.read(LATER_GRAPH, "chat")["spec"]
    services = world.read(GRAPH, "chat")["spec"]["services"]
    assert ["Decode", "Frontend"] == sorted(services)
    assert not [name for name, service in services.items() if {"replicas", "minAvailable"} & service.keys()]


def test_what_is_switched_off_by_server_side_apply_becomes_no_null(world: World) -> None:
    """In the other version the field is absent then, and comes back from there."""
    body = {"apiVersion": GRAPH.api_version, "kind": GRAPH.name, **idle("old")}
    frontend = body["spec"]["services"]["Frontend"]
    for is_enabled in (True, False):
        host = {"host": "chat"} if is_enabled else {}
        frontend |= {"scalingAdapter": {"enabled": is_enabled}, "ingress": {"enabled": is_enabled, **host}}
        assert frontend.items() <= world.apply(GRAPH, body)["spec"]["services"]["Frontend"].items()
        component = world.read(LATER_GRAPH, "old")["spec"]["components"][0]
        assert is_enabled == ("scalingAdapter" in component)


def test_graphs_are_listed_in_both_versions(kinds: ControlPlane, world: World) -> None:
    for number in range(MANY):
        world.create(GRAPH, idle(f"g{number}"))
    for version in VERSIONS:
        listed = kinds.kubectl("get", f"{GRAPHS}.{version}.nvidia.com", "--all-namespaces", "--output=name")
        assert MANY == len(listed.split())


@EITHER_STORED
def test_annotations_may_fill_the_room_that_those_of_the_conversion_leave(world: World, stored: str) -> None:
    kind = OF_VERSION[stored]
    (other,) = {*VERSIONS} - {stored}
    body = idle("chat") if stored == "v1alpha1" else later_graph(replicas=0)
    body["spec"]["envs" if stored == "v1alpha1" else "env"] = []
    world.create(kind, body)
    world.eventually(kind, "chat", lambda it: "observedGeneration" in it.get("status", {}))

    def annotations() -> dict[str, str]:
        converted: dict[str, str] = world.read(OF_VERSION[other], "chat")["metadata"]["annotations"]
        converted.pop("nvidia.com/dgd-status", None)  # left out where it has no room
        return converted

    def size() -> int:
        return sum(len(text) for item in annotations().items() for text in item)

    def fill(count: int) -> None:
        world.patch(kind, "chat", {"metadata": {"annotations": {"filler": "x" * count}}})

    free = MOST_BYTES - size() - len("filler")
    fill(free)
    assert MOST_BYTES == size()
    assert "nvidia.com/dgd-typed" in annotations()
    assert 1 == len(world.list(OF_VERSION[other]))
    with pytest.raises(Refused, match=r"no room for nvidia\.com/dgd-typed"):
        fill(free + 1)


@EITHER_STORED
def test_two_managers_apply_in_two_versions(world: World, kubectl: Kubectl) -> None:
    whole = {**MANIFESTS["v1beta1"], **later_graph()}
    part = {**MANIFESTS["v1alpha1"], "metadata": {"name": "chat"}}
    part["spec"] = {"services": {"Decode": {"replicas": 3, "ingress": {"host": "chat"}}}}
    applied(kubectl, whole, "team")
    found = applied(kubectl, part, "autoscaler")["spec"]["services"]["Decode"]
    assert (3, IMAGE) == (found["replicas"], found["extraPodSpec"]["mainContainer"]["image"])
    again = applied(kubectl, whole, "team")
    generation, decode = again["metadata"]["generation"], again["spec"]["components"][1]
    assert (3, IMAGE) == (decode["replicas"], decode["podTemplate"]["spec"]["containers"][0]["image"])
    assert generation == applied(kubectl, part, "autoscaler")["metadata"]["generation"]
    for kind in (GRAPH, LATER_GRAPH):
        managers = {"team": LATER_GRAPH.api_version, "autoscaler": GRAPH.api_version}
        assert managers == appliers(world.read(kind, "chat"))
    assert "chat" == world.read(GRAPH, "chat")["spec"]["services"]["Decode"]["ingress"]["host"]
    with pytest.raises(KubectlError, match=r"autoscaler.*\s.*replicas"):
        applied(kubectl, {**whole, **later_graph(replicas=5)}, "team")
    taken = {"Decode": {"extraPodSpec": {"mainContainer": {"image": "other:1"}}}}
    with pytest.raises(KubectlError, match=r"team.*\s.*image"):
        applied(kubectl, {**part, "spec": {"services": taken}}, "autoscaler")
    part["spec"] = {"services": {"Decode": {"ingress": {"host": "chat"}}}}
    assert "replicas" not in applied(kubectl, part, "autoscaler")["spec"]["services"]["Decode"]
    assert generation + 1 == world.read(LATER_GRAPH, "chat")["metadata"]["generation"]


@EVERY_VERSION
def test_a_graph_is_ready_and_what_was_applied_does_not_differ(
    world: World, kubectl: Kubectl, version: str
) -> None:
    text = json.dumps(MANIFESTS[version])
    for flags in ((), ("--server-side", "--force-conflicts")):
        kubectl("apply", "--filename=-", *flags, input=text)
        world.eventually(GRAPH, "chat", is_ready)
        before = world.read(GRAPH, "chat")["metadata"]["generation"]
        kubectl("diff", "--filename=-", *flags, input=text)
        assert "unchanged" in kubectl("apply", "--filename=-", input=text) or flags
        assert before == world.read(GRAPH, "chat")["metadata"]["generation"]


def test_tools_of_gitops_read_the_same_health_in_both_versions(world: World) -> None:
    world.apply(LATER_GRAPH, MANIFESTS["v1beta1"])
    for kind in (GRAPH, LATER_GRAPH):
        world.eventually(kind, "chat", lambda body: (argo_cd(body), flux(body)) == ("Healthy", "Current"))
    world.patch(LATER_GRAPH, "chat", {"metadata": {"annotations": {SUSPEND: "true"}}})
    for kind in (GRAPH, LATER_GRAPH):
        world.eventually(kind, "chat", lambda body: argo_cd(body) == "Suspended")


@EITHER_STORED
@EVERY_VERSION
def test_an_edit_in_one_version_keeps_the_fields_of_the_other(
    world: World, kubectl: Kubectl, version: str
) -> None:
    (other,) = {*VERSIONS} - {version}
    world.apply(OF_VERSION[other], MANIFESTS[other])
    before = world.eventually(OF_VERSION[other], "chat", is_ready)["spec"]
    body = json.loads(kubectl("get", f"{GRAPHS}.{version}.nvidia.com", "chat", "--output=json"))
    body["spec"]["progressDeadlineSeconds"] = 77
    kubectl("replace", "--filename=-", input=json.dumps(body))
    assert {**before, "progressDeadlineSeconds": 77} == world.read(OF_VERSION[other], "chat")["spec"]


def test_patches_in_both_versions(world: World, kubectl: Kubectl) -> None:
    world.apply(LATER_GRAPH, MANIFESTS["v1beta1"])
    later, old = (f"{GRAPHS}.{version}.nvidia.com/chat" for version in ("v1beta1", "v1alpha1"))
    decode = "/spec/components/1"
    test = {"op": "test", "path": f"{decode}/name", "value": "Decode"}
    replicas = {"op": "add", "path": f"{decode}/replicas", "value": 2}
    world.json_patch(LATER_GRAPH, "chat", [test, replicas])
    assert 2 == world.read(GRAPH, "chat")["spec"]["services"]["Decode"]["replicas"]
    patch = {"spec": {"services": {"Decode": {"replicas": 3, "envs": [{"name": "A", "value": "1"}]}}}}
    world.patch(GRAPH, "chat", patch)
    found = world.read(LATER_GRAPH, "chat")["spec"]["components"][1]
    assert (3, "A") == (found["replicas"], found["podTemplate"]["spec"]["containers"][0]["env"][0]["name"])
    path = "/spec/services/Decode/envs/0/value"
    change = [{"op": "replace", "path": path, "value": "2"}]
    world.json_patch(GRAPH, "chat", change)
    world.patch(LATER_GRAPH, "chat", {"spec": {"replicas": 2}})
    found = world.read(LATER_GRAPH, "chat")["spec"]
    (env,) = found["components"][1]["podTemplate"]["spec"]["containers"][0]["env"]
    assert ("2", 2) == (env["value"], found["replicas"])
    for target in (old, later):  # of custom resources, in any version
        with pytest.raises(KubectlError, match="strategic-merge-patch"):
            kubectl("patch", target, "--type=strategic", "--patch={}")


@EVERY_VERSION
def test_kubectl_watches_a_graph(
    kinds: ControlPlane, world: World, kubectl: Kubectl, namespace: str, version: str
) -> None:
    target = (f"{GRAPHS}.{version}.nvidia.com", f"--namespace={namespace}")
    with watched(kinds.kubeconfig, *target, "--output-watch-events") as line:
        kubectl("apply", "--filename=-", input=json.dumps(MANIFESTS["v1beta1"]))
        assert "ADDED" in line("chat")
        assert "successful" in line("successful")
        kubectl("delete", f"{GRAPHS}.v1alpha1.nvidia.com/chat")
        assert "chat" in line("DELETED")


def test_an_autoscaler_scales_the_adapter(world: World) -> None:
    world.create(LATER_GRAPH, later_graph(scalingAdapter={}))
    adapter = LATER_ADAPTER  # tests/cluster/scaling has an autoscaler of the other version
    world.eventually(adapter, "chat-decode", lambda body: condition(body).get("status") == "True")
    target = {"apiVersion": adapter.api_version, "kind": adapter.name, "name": "chat-decode"}
    spec = {"minReplicas": 3, "maxReplicas": 5, "scaleTargetRef": target}
    world.create(AUTOSCALER, {"metadata": {"name": "decode"}, "spec": spec})
    world.eventually(LATER_GRAPH, "chat", lambda body: body["spec"]["components"][1].get("replicas") == 3)
    scaler = world.eventually(
        AUTOSCALER, "decode", lambda body: condition(body, "AbleToScale").get("status") == "True"
    )
    scale = world.eventually(adapter, "chat-decode", lambda body: body["status"].get("replicas") == 3)
    assert "dynamo-component=Decode" in scale["status"]["selector"]
    world.eventually(AUTOSCALER, "decode", lambda body: body["status"].get("currentReplicas") == 3)
    world.delete(AUTOSCALER, scaler["metadata"]["name"])


def test_an_adapter_is_scaled_in_both_versions(world: World, kubectl: Callable[..., str]) -> None:
    decode = worker("decode", scalingAdapter={"enabled": True})
    world.create(GRAPH, graph("chat", Frontend={**graph()["spec"]["services"]["Frontend"]}, Decode=decode))
    world.eventually(ADAPTER, "chat-decode")
    for kind, other, replicas in ((ADAPTER, LATER_ADAPTER, 2), (LATER_ADAPTER, ADAPTER, 3)):
        target = f"{kind.plural}.{kind.version}.nvidia.com/chat-decode"
        kubectl("scale", target, f"--replicas={replicas}")
        assert replicas == world.read(other, "chat-decode")["spec"]["replicas"]
    world.eventually(GRAPH, "chat", lambda found: found["spec"]["services"]["Decode"]["replicas"] == 3)


def warnings(kubectl: Kubectl, version: str) -> str:
    """What kubectl prints for all kinds in that version if warnings are errors; "" without one."""
    all_kinds = ",".join(f"{it.plural}.{version}.nvidia.com" for it in KINDS)
    try:
        kubectl("get", all_kinds, "--warnings-as-errors")
    except KubectlError as error:
        return str(error)
    return ""


def _has_all(printed: str, texts: list[str]) -> bool:
    return all(text in printed for text in texts)


def test_v1alpha1_is_deprecated_only_if_that_is_set(
    kinds: ControlPlane, world: World, kubectl: Kubectl, address: Front, stored: str
) -> None:
    assert ["", ""] == [warnings(kubectl, version) for version in VERSIONS], "by default"
    texts = [
        f"Warning: nvidia.com/v1alpha1 {kind.name} is deprecated; use nvidia.com/v1beta1 {kind.name}"
        for kind in KINDS
    ]
    define(kinds, webhook_at(address), stored, warns=True)
    try:
        world.until(lambda: _has_all(warnings(kubectl, "v1alpha1"), texts))
        assert "" == warnings(kubectl, "v1beta1")
    finally:
        define(kinds, webhook_at(address), stored)
    world.until(lambda: "" == warnings(kubectl, "v1alpha1"))


def test_a_change_is_watched_in_both_versions(world: World) -> None:
    world.create(LATER_GRAPH, later_graph())
    before = world.version()
    labelled = world.patch(GRAPH, "chat", {"metadata": {"labels": {"team": "a"}}})
    until = labelled["metadata"]["resourceVersion"]
    for kind in (GRAPH, LATER_GRAPH):
        changes = [change["object"] for change in world.changes(kind, since=before, until=until)]
        assert {kind.api_version} == {each["apiVersion"] for each in changes}
        assert any(each["metadata"].get("labels", {}).get("team") == "a" for each in changes)


def test_a_new_certificate_is_trusted_in_every_crd(world: World, converting: Installation) -> None:
    before = converting.bundles()
    converting.asker.delete(ServingSecret.KIND, NAMESPACE, SECRET_NAME)
    world.until(lambda: before != converting.bundles() and trust(converting))
    world.until(lambda: _is_listed(world))


def _is_listed(world: World) -> bool:
    with suppress(Refused):  # until the API server has loaded the new bundle
        return world.list(GRAPH) == world.list(LATER_GRAPH) == []
    return False


@EITHER_STORED
def test_while_no_operator_runs_the_stored_version_is_served(
    world: World, converting: Installation, stored: str, kubectl: Callable[..., str]
) -> None:
    world.create(LATER_GRAPH, later_graph())
    converting.process.kill()
    try:
        assert "chat" == world.read(OF_VERSION[stored], "chat")["metadata"]["name"]
        (other,) = {*VERSIONS} - {stored}
        with pytest.raises(KubectlError, match="conversion webhook"):
            kubectl("get", f"{GRAPHS}.{other}.nvidia.com", "chat")
    finally:
        converting.process.start()
        converting.process.says("webhooks are ready")
    assert "chat" == world.read(OF_VERSION[other], "chat")["metadata"]["name"]
