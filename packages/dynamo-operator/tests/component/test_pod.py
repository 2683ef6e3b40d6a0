"""The template of a component's pods: their account, environment, devices, probes, and how workers end."""

from typing import Any

import pytest

from dynamo_operator.component.pod import pod_spec
from dynamo_operator.component.render import component_parts, component_plan
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from specs import a_component

SETTINGS = RenderSettings()
GRAPH = {"apiVersion": "nvidia.com/v1alpha1", "kind": "DynamoGraphDeployment", "name": "chat"}
OWNED = {"ownerReferences": [{**GRAPH, "uid": "u"}]}
ORPHANED = {"labels": {"nvidia.com/dynamo-graph-deployment-name": "chat"}}
OF_ANOTHER_GROUP = {"ownerReferences": [{**GRAPH, "apiVersion": "example.com/v1", "uid": "u"}]}


def template(facts: Facts | None = None, settings: RenderSettings = SETTINGS, **spec: Any) -> Object:
    component = a_component(metadata=spec.pop("metadata", OWNED), **spec)
    _, (workload,) = component_parts(component, facts or Facts(), settings)
    found: Object = workload["spec"]["template"]
    return found


def pod(facts: Facts | None = None, **spec: Any) -> Object:
    found: Object = template(facts, **spec)["spec"]
    return found


def main(**spec: Any) -> Object:
    found: Object = pod(**spec)["containers"][-1]
    return found


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
    container = template(settings=settings, **spec)["spec"]["containers"][-1]
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


def test_vllm_cache_root_is_the_mount_of_the_compilation_cache_unless_the_user_sets_it() -> None:
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
    found = template(annotations={"nvidia.com/restartAt": "r1"})["metadata"]["annotations"]
    assert {"nvidia.com/restartAt": "r1"} == found


TEN = {"preStop": {"sleep": {"seconds": 10}}}
AT_ONCE: Object = {"exec": {"command": ["true"]}}


def lifecycle(
    type_: str, main: Object | None = None, settings: RenderSettings | None = None, **pod: Any
) -> Any:
    """The lifecycle of the main container of such a component."""
    extra = {**pod, "mainContainer": {"image": "an-image", **(main or {})}}
    component = a_component(componentType=type_, extraPodSpec=extra)
    plan = component_plan(component, Facts(), settings or RenderSettings())
    return pod_spec(plan, None)["containers"][-1].get("lifecycle")


def test_workers_and_no_others_wait_ten_seconds_before_they_are_told_to_end() -> None:
    types = ("worker", "prefill", "decode", "frontend", "planner", "default")
    assert [TEN] * 3 + [None] * 3 == [lifecycle(each) for each in types]


def test_handlers_of_the_users_stay() -> None:
    assert lifecycle("worker", {"lifecycle": {"preStop": AT_ONCE}}) == {"preStop": AT_ONCE}
    assert lifecycle("worker", {"lifecycle": {"postStart": AT_ONCE}}) == {"postStart": AT_ONCE, **TEN}


@pytest.mark.parametrize(("grace", "seconds"), [(600, 10), (20, 10), (8, 4), (2, 1), (1, 0), (0, 0)])
def test_half_of_the_grace_period_is_left_to_running_requests(grace: int, seconds: int) -> None:
    expected = {"preStop": {"sleep": {"seconds": seconds}}} if seconds else None
    assert lifecycle("worker", terminationGracePeriodSeconds=grace) == expected


@pytest.mark.parametrize(
    "settings",
    [RenderSettings(worker_drain_period_seconds=0), RenderSettings(discovery_backend="etcd")],
    ids=["switched off", "etcd"],
)
def test_nothing_is_added_where_it_is_off_or_would_not_help(settings: RenderSettings) -> None:
    assert lifecycle("worker", settings=settings) is None


def liveness(type_: str, settings: RenderSettings, **fields: Any) -> Object:
    plan = component_plan(a_component(componentType=type_, **fields), Facts(), settings)
    found: Object = pod_spec(plan, None)["containers"][-1]["livenessProbe"]
    return found


@pytest.mark.parametrize("type_", ["worker", "prefill", "decode"])
def test_a_worker_may_miss_as_many_checks_as_the_administrator_says(type_: str) -> None:
    patient = RenderSettings(worker_liveness_failures=4)
    assert 1 == liveness(type_, RenderSettings())["failureThreshold"]
    assert 4 == liveness(type_, patient)["failureThreshold"]
    assert (
        4
        == liveness(type_, RenderSettings(probe_profile="documented", worker_liveness_failures=4))[
            "failureThreshold"
        ]
    )


def test_a_probe_of_ones_own_and_those_of_other_roles_are_left_alone() -> None:
    patient = RenderSettings(worker_liveness_failures=4)
    own = {"httpGet": {"path": "/mine", "port": 1}, "failureThreshold": 7}
    assert own == liveness("worker", patient, livenessProbe=own)
    assert liveness("frontend", RenderSettings()) == liveness("frontend", patient)
