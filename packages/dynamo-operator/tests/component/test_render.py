"""What a component becomes: Services, an Ingress, a Deployment."""

from typing import Any

import pytest

from dynamo_operator import labels
from dynamo_operator.component.render import component_parts, component_shared_objects
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, registry_of_credential, registry_of_image
from kube_runtime.types.meta import Object
from specs import a_component

SETTINGS = RenderSettings()
GRAPH = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "name": "chat"}
OWNED = {"ownerReferences": [{**GRAPH, "uid": "u"}]}
ORPHANED = {"labels": {"nvidia.com/dynamo-graph-deployment-name": "chat"}}
OF_ANOTHER_GROUP = {"ownerReferences": [{**GRAPH, "apiVersion": "example.com/v1", "uid": "u"}]}


def objects(facts: Facts | None = None, **spec: Any) -> dict[tuple[str, str], Object]:
    component = a_component(metadata=spec.pop("metadata", OWNED), **spec)
    around, workloads = component_parts(component, facts or Facts(), SETTINGS)
    return {(each["kind"], each["metadata"]["name"]): each for each in (*around, *workloads)}


def pod(facts: Facts | None = None, **spec: Any) -> Object:
    found: Object = objects(facts, **spec)["Deployment", "w"]["spec"]["template"]["spec"]
    return found


def main(**spec: Any) -> Object:
    found: Object = pod(**spec)["containers"][-1]
    return found


def test_labels_of_the_user_take_no_pod_from_its_selectors() -> None:
    theirs = dict.fromkeys(labels.SELECTING, "theirs")
    rendered = objects(labels=theirs, extraPodMetadata={"labels": theirs})
    deployment = rendered["Deployment", "w"]["spec"]
    of_pods = deployment["template"]["metadata"]["labels"].items()
    assert deployment["selector"]["matchLabels"].items() <= of_pods
    assert rendered["Service", "w"]["spec"]["selector"].items() <= of_pods
    assert "theirs" not in dict(of_pods).values()


def test_a_pvc_with_the_name_of_a_volume_of_the_role_is_the_only_volume_of_that_name() -> None:
    mounts = [{"name": "hf-cache", "mountPoint": "/models"}]
    epp: Object = {"config": {"plugins": []}}
    volumes = pod(componentType="epp", eppConfig=epp, volumeMounts=mounts)["volumes"]
    [cache] = [volume for volume in volumes if volume["name"] == "hf-cache"]
    assert {"claimName": "hf-cache"} == cache["persistentVolumeClaim"]


@pytest.mark.parametrize(
    ("metadata", "annotations", "facts", "account"),
    [
        (OWNED, {}, Facts(), "chat-k8s-service-discovery"),
        (ORPHANED, {}, Facts(), "chat-k8s-service-discovery"),
        (OF_ANOTHER_GROUP, {}, Facts(), "default"),
        (OWNED, {"nvidia.com/dynamo-discovery-backend": "etcd"}, Facts(), "default"),
        ({}, {}, Facts(), "default"),
        ({}, {}, Facts(component_service_account="builder"), "builder"),
    ],
)
def test_pods_have_an_account(
    metadata: Object, annotations: dict[str, str], facts: Facts, account: str
) -> None:
    found = pod(facts, metadata=metadata, annotations=annotations)
    assert account == found["serviceAccountName"]


def test_an_account_counts_under_its_old_name_too() -> None:
    user = {"mainContainer": {"image": "i"}, "serviceAccount": "mine"}
    found = pod(extraPodSpec=user)
    assert ("mine", False) == (found["serviceAccountName"], "serviceAccount" in found)
    both = pod(extraPodSpec={**user, "serviceAccountName": "newer"})
    assert "newer" == both["serviceAccountName"]


def environment(settings: RenderSettings = SETTINGS, **spec: Any) -> dict[str, str]:
    """The variables with values of the main container."""
    component = a_component(metadata=OWNED, **spec)
    _, (workload,) = component_parts(component, Facts(), settings)
    container = workload["spec"]["template"]["spec"]["containers"][-1]
    return {each["name"]: each.get("value", "") for each in container["env"]}


EVENTS = {"DYN_EVENT_PLANE", "DYN_LOCAL_INDEXER"}


def test_with_an_address_of_nats_nothing_is_said_about_events() -> None:
    own = [{"name": "NATS_SERVER", "value": "nats://mine:4222"}]
    assert not EVENTS & environment(RenderSettings(nats_address="nats://n:4222")).keys()
    assert not EVENTS & environment(envs=own).keys()
    assert not EVENTS & environment(extraPodSpec={"mainContainer": {"image": "i", "env": own}}).keys()


def test_the_users_event_plane_wins() -> None:
    own = [{"name": "DYN_EVENT_PLANE", "value": "nats"}]
    found = environment(envs=own)
    assert ("nats", "true") == (found["DYN_EVENT_PLANE"], found["DYN_LOCAL_INDEXER"])


def test_the_cache_of_vllm_is_told_where_it_is_unless_the_user_said_so() -> None:
    mounts = [{"name": "c", "useAsCompilationCache": True}]
    found = main(backendFramework="vllm", volumeMounts=mounts)
    assert {"name": "VLLM_CACHE_ROOT", "value": "/root/.cache/vllm"} == found["env"][-1]
    own = [{"name": "VLLM_CACHE_ROOT", "value": "/own"}]
    found = main(backendFramework="vllm", volumeMounts=mounts, envs=own)
    assert own == [entry for entry in found["env"] if entry["name"] == "VLLM_CACHE_ROOT"]


@pytest.mark.parametrize(
    ("resources", "gpus"),
    [
        ({"requests": {"gpu": "2"}}, ("2", "2")),
        ({"limits": {"gpu": "2"}}, (None, "2")),
        ({"requests": {"gpu": "2"}, "limits": {"gpu": "2"}}, (None, "2")),
        ({"requests": {"gpu": "2"}, "limits": {"gpu": "2000m"}}, (None, "2000m")),
        ({"requests": {"custom": {"nvidia.com/gpu": "3"}}}, ("3", "3")),
    ],
)
def test_a_device_under_requests_is_also_a_limit(resources: Object, gpus: Any) -> None:
    found = main(resources=resources)["resources"]
    sides = (found.get("requests", {}), found["limits"])
    assert gpus == tuple(side.get("nvidia.com/gpu") for side in sides)


def test_a_restart_reaches_the_pods() -> None:
    deployment = objects(annotations={"nvidia.com/restartAt": "r1"})["Deployment", "w"]
    found = deployment["spec"]["template"]["metadata"]["annotations"]
    assert {"nvidia.com/restartAt": "r1"} == found


@pytest.mark.parametrize(
    ("surge", "rendered"), [("2", 2), ("0", 0), ("30%", "30%"), ("", "25%"), (None, "25%")]
)
def test_bounds_of_an_update_are_numbers_or_percentages(surge: str | None, rendered: Any) -> None:
    key = "nvidia.com/deployment-rolling-update-max-surge"
    annotations = {} if surge is None else {key: surge}
    strategy = objects(annotations=annotations)["Deployment", "w"]["spec"]["strategy"]
    assert rendered == strategy["rollingUpdate"]["maxSurge"]


def test_components_of_one_model_share_its_service() -> None:
    model = {"name": "acme/chat-7b"}
    one = component_shared_objects(a_component("a", modelRef=model))
    other = component_shared_objects(a_component("b", modelRef=model))
    assert one == other
    assert ["dynamo-model-8a58cea0"] == [each["metadata"]["name"] for each in one]


def test_each_replica_has_two_objects() -> None:
    component = a_component("c", replicas=3, multinode={"nodeCount": 2})
    _, workloads = component_parts(component, Facts(), SETTINGS)
    groups = [(each["kind"], each["metadata"]["name"]) for each in workloads]
    assert ["PodGroup", "LeaderWorkerSet"] * 3 == [kind for kind, _ in groups]
    assert ["c-0", "c-0", "c-1", "c-1", "c-2", "c-2"] == [name for _, name in groups]


@pytest.mark.parametrize(
    ("image", "registry"),
    [
        ("nvcr.io/nvidia/vllm:1", "nvcr.io"),
        ("registry.example.com:5000/a/b@sha256:0", "registry.example.com:5000"),
        ("localhost/a", "localhost"),
        ("localhost:5000/a", "localhost:5000"),
        ("NVCR.io/a", "nvcr.io"),
        ("busybox", "docker.io"),
        ("busybox:1.37", "docker.io"),
        ("library/busybox", "docker.io"),
        ("docker.io/lib/y:1", "docker.io"),
        ("index.docker.io/lib/y", "docker.io"),
    ],
)
def test_an_image_names_its_registry(image: str, registry: str) -> None:
    assert registry == registry_of_image(image)


@pytest.mark.parametrize(
    ("server", "registry"),
    [
        ("nvcr.io", "nvcr.io"),
        ("https://index.docker.io/v1/", "docker.io"),
        ("registry-1.docker.io", "docker.io"),
        ("registry.example.com:5000/path", "registry.example.com:5000"),
        ("http://localhost:5000", "localhost:5000"),
    ],
)
def test_a_credential_is_for_one_registry(server: str, registry: str) -> None:
    assert registry == registry_of_credential(server)
