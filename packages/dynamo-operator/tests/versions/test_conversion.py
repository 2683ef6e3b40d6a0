"""What users see of a conversion: the fields that move, what stays as typed, and errors with a path."""

import json
from typing import Any

import pytest

from dynamo_operator.versions.conversion import ConversionError, convert, left_out
from dynamo_operator.versions.room import MOST_BYTES
from kube_runtime.types.meta import Object

OLD, NEW = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
MOUNT_B = {"name": "b", "mountPath": "/b"}
KINDS = (
    "DynamoGraphDeployment, DynamoComponentDeployment, "
    "DynamoGraphDeploymentRequest, DynamoGraphDeploymentScalingAdapter"
)


def old(spec: Object, kind: str = "DynamoGraphDeployment", **fields: Any) -> Object:
    return {"apiVersion": OLD, "kind": kind, "metadata": {"name": "chat"}, "spec": spec, **fields}


def new(spec: Object, kind: str = "DynamoGraphDeployment", **fields: Any) -> Object:
    return {"apiVersion": NEW, "kind": kind, "metadata": {"name": "chat"}, "spec": spec, **fields}


def component(**service: Any) -> Object:
    """The component of a graph with that service."""
    (found,) = convert(old({"services": {"W": service}}), NEW)["spec"]["components"]
    assert found.pop("name") == "W"
    return dict(found)


def service(**fields: Any) -> Object:
    """The service of a graph with that component."""
    found: Object = convert(new({"components": [{"name": "W", **fields}]}), OLD)["spec"]["services"]["W"]
    return found


def payload(body: Object) -> Any:
    """The saved spec of a graph."""
    return json.loads(body["metadata"]["annotations"]["nvidia.com/dgd-spec"])["spec"]


def test_a_worker_with_a_role_has_the_role_as_its_type() -> None:
    roles = {"componentType": "worker", "subComponentType": "prefill"}
    assert {"type": "prefill"} == component(**roles)
    assert roles == service(type="prefill")
    assert {"componentType": "frontend"} == service(type="frontend")


def test_what_was_typed_comes_back_where_live_fields_do_not_say_otherwise() -> None:
    main = {"name": "main", "args": [], "resources": {"limits": {"nvidia.com/gpu": 2, "memory": 8}}}
    written = {"components": [{"name": "W", "podTemplate": {"spec": {"containers": [main]}}}], "env": []}
    converted = convert(new(written), OLD)
    assert written == convert(converted, NEW)["spec"]
    converted["spec"]["services"]["W"]["resources"]["limits"]["gpu"] = "4"
    converted["spec"]["envs"] = [{"name": "A"}]
    back = convert(converted, NEW)
    assert "nvidia.com/dgd-typed" not in back["metadata"].get("annotations", {})
    (container,) = back["spec"]["components"][0]["podTemplate"]["spec"]["containers"]
    assert {**main, "resources": {"limits": {"nvidia.com/gpu": "4", "memory": 8}}} == container
    assert [{"name": "A"}] == back["spec"]["env"]


@pytest.mark.parametrize(
    "extra",
    [
        {"mainContainer": {}, "hostIPC": True},
        {"mainContainer": {"image": "", "args": []}, "tolerations": [{}]},
        {"mainContainer": {}},
    ],
)
def test_a_main_container_that_says_nothing_comes_back(extra: Object) -> None:
    document = old({"services": {"W": {"extraPodSpec": extra}}})
    assert document["spec"] == convert(convert(document, NEW), OLD)["spec"]


def size(annotations: Object) -> int:
    return sum(len(text.encode()) for item in annotations.items() for text in item)


def test_annotations_of_a_conversion_get_the_room_that_others_leave() -> None:
    """With more, an API server would fail each list of the kind."""
    claim = {"name": "c", "create": True, "size": "1Gi", "storageClass": ""}
    body = old({"services": {"W": {"envs": []}}, "pvcs": [claim]})
    both = convert(body, NEW)["metadata"]["annotations"]
    spec, typed = "nvidia.com/dgd-spec", "nvidia.com/dgd-typed"
    assert {spec, typed} == both.keys()
    free = MOST_BYTES - size(both) - len("others")
    for missing, expected in ((0, ()), (1, (typed,)), (size({typed: both[typed]}) + 1, (typed, spec))):
        count = free + missing
        others = {"others": "é" * (count // 2) + "x" * (count % 2)}
        crowded = {**body, "metadata": {"name": "chat", "annotations": others}}
        annotations = convert(crowded, NEW)["metadata"]["annotations"]
        assert expected == left_out(crowded, NEW)
        assert {**both, **others}.keys() - {*expected} == annotations.keys()
        assert size(annotations) <= MOST_BYTES


def test_a_large_graph_loses_no_empty_value() -> None:
    """One of the most bytes that the operator takes by default."""
    tolerations = [{"key": f"example.com/{number}", "value": ""} for number in range(1700)]
    spec = {"components": [{"name": "W", "podTemplate": {"spec": {"tolerations": tolerations}}}]}
    assert len(json.dumps(spec)) > 64 * 1024
    assert spec == convert(convert(new(spec), OLD), NEW)["spec"]


def test_a_mount_without_a_path_has_the_key_of_its_list() -> None:
    """Server-side apply refuses an entry without it."""
    cache = {"name": "cc", "useAsCompilationCache": True}
    mounts = component(volumeMounts=[cache], envs=[{"name": "A", "value": "1"}])["podTemplate"]["spec"]
    assert [{"name": "cc", "mountPath": ""}] == mounts["containers"][0]["volumeMounts"]


def test_an_experimental_feature_is_on_where_it_is_present() -> None:
    on = {"failover": {"enabled": True, "mode": "interPod"}, "gpuMemoryService": {"enabled": True}}
    experimental = {"failover": {"mode": "InterPod"}, "gpuMemoryService": {}}
    assert {"experimental": experimental} == component(**on)
    assert on == service(experimental=experimental)
    off = old({"services": {"W": {"failover": {"enabled": False}}}})
    assert [{"name": "W"}] == convert(off, NEW)["spec"]["components"]
    assert off == convert(convert(off, NEW), OLD)


def test_own_fields_of_a_service_and_its_main_container_become_one_container() -> None:
    made = component(
        resources={"limits": {"cpu": "1000m", "gpu": "2"}},
        envs=[{"name": "A", "value": "1"}, {"name": "B", "value": "1"}],
        envFromSecret="token",
        extraPodSpec={"mainContainer": {"image": "i", "env": [{"name": "B", "value": "2"}, {"name": "C"}]}},
    )
    assert [
        {
            "name": "main",
            "image": "i",
            "resources": {"limits": {"cpu": "1000m", "nvidia.com/gpu": "2"}},
            "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}, {"name": "C"}],
            "envFrom": [{"secretRef": {"name": "token"}}],
        }
    ] == made["podTemplate"]["spec"]["containers"]


def test_a_component_becomes_own_fields_and_a_main_container_for_the_rest() -> None:
    containers = [
        {
            "name": "main",
            "image": "i",
            "resources": {"limits": {"cpu": 2, "nvidia.com/gpu": "1"}},
            "volumeMounts": [{"name": "data", "mountPath": "/data", "readOnly": True}],
        },
        {"name": "side", "image": "s"},
    ]
    assert {
        "resources": {"limits": {"cpu": "2", "gpu": "1"}},
        "volumeMounts": [{"name": "data", "mountPoint": "/data"}],
        "extraPodSpec": {"mainContainer": {"image": "i"}, "containers": [containers[1]]},
    } == service(podTemplate={"spec": {"containers": containers}})


def test_a_cache_has_a_field_and_is_a_mount() -> None:
    cache = {"name": "c", "mountPoint": "/c", "useAsCompilationCache": True}
    plain = {"name": "p", "mountPoint": "/p"}
    made = component(volumeMounts=[plain, cache])
    assert {"pvcName": "c", "mountPath": "/c"} == made["compilationCache"]
    (main,) = made["podTemplate"]["spec"]["containers"]
    assert ["/p", "/c"] == [mount["mountPath"] for mount in main["volumeMounts"]]
    assert {"compilationCache": {"pvcName": "c", "mountPath": "/c"}} == component(volumeMounts=[cache])
    assert [cache, plain] == service(**{**made, "podTemplate": made["podTemplate"]})["volumeMounts"]


def test_other_caches_are_mounts_of_main_and_stay_while_it_mounts_them() -> None:
    caches = [
        {"name": name, "mountPoint": f"/{name}", "useAsCompilationCache": True} for name in ("a", "b", "c")
    ]
    body = old({"services": {"W": {"volumeMounts": caches}}})
    stored = convert(body, NEW)
    (component,) = stored["spec"]["components"]
    assert {"name": "W", "compilationCache": {"pvcName": "a", "mountPath": "/a"}} == component
    assert body == convert(stored, OLD)
    component["podTemplate"] = {"spec": {"containers": [{"name": "main", "volumeMounts": [MOUNT_B]}]}}
    assert caches[:2] == convert(stored, OLD)["spec"]["services"]["W"]["volumeMounts"]

    body["spec"]["services"]["W"]["envFromSecret"] = "token"
    stored = convert(body, NEW)
    del stored["spec"]["components"][0]["podTemplate"]
    assert caches[:1] == convert(stored, OLD)["spec"]["services"]["W"]["volumeMounts"]


def test_caches_stay_caches_when_a_mount_is_added() -> None:
    plain = {"name": "p", "mountPoint": "/p"}
    caches = [{"name": name, "mountPoint": f"/{name}", "useAsCompilationCache": True} for name in ("a", "b")]
    stored = convert(old({"services": {"W": {"volumeMounts": [plain, *caches]}}}), NEW)
    (main,) = stored["spec"]["components"][0]["podTemplate"]["spec"]["containers"]
    main["volumeMounts"] = [*main["volumeMounts"], {"name": "q", "mountPath": "/q"}]
    added = {"name": "q", "mountPoint": "/q"}
    assert [*caches, plain, added] == convert(stored, OLD)["spec"]["services"]["W"]["volumeMounts"]


def test_saved_resources_do_not_return_to_a_component_without_pods() -> None:
    stored = convert(old({"services": {"W": {"resources": {"limits": {"cpu": "1000m"}}}}}), NEW)
    del stored["spec"]["components"][0]["podTemplate"]
    assert {} == convert(stored, OLD)["spec"]["services"]["W"]


def test_what_the_other_version_has_no_field_for_is_saved_and_returns() -> None:
    ingress = {"enabled": True, "host": "chat"}
    body = old({"services": {"W": {"ingress": ingress, "replicas": 2}}, "pvcs": [{"name": "data"}]})
    stored = convert(body, NEW)
    assert {"services": {"W": {"ingress": ingress}}, "pvcs": [{"name": "data"}]} == payload(stored)
    assert body == convert(stored, OLD)


def test_live_fields_win_over_saved_ones() -> None:
    stored = convert(old({"services": {"W": {"resources": {"limits": {"cpu": "1000m"}}}}}), NEW)
    (main,) = stored["spec"]["components"][0]["podTemplate"]["spec"]["containers"]
    main["resources"]["limits"]["cpu"] = "3"
    assert "3" == convert(stored, OLD)["spec"]["services"]["W"]["resources"]["limits"]["cpu"]


def test_components_keep_an_order_that_is_not_sorted() -> None:
    body = new({"components": [{"name": "b"}, {"name": "a"}]})
    seen = convert(body, OLD)
    assert body == convert(seen, NEW)
    seen["spec"]["services"]["c"] = {}
    assert ["b", "a", "c"] == [one["name"] for one in convert(seen, NEW)["spec"]["components"]]


def test_disabled_shared_memory_loses_its_size_when_the_field_is_removed() -> None:
    body = old({"services": {"W": {"sharedMemory": {"disabled": True, "size": "8Gi"}}}})
    stored = convert(body, NEW)
    assert "0" == stored["spec"]["components"][0]["sharedMemorySize"]
    assert body == convert(stored, OLD)
    del stored["spec"]["components"][0]["sharedMemorySize"]
    assert {} == convert(stored, OLD)["spec"]["services"]["W"]


def test_a_component_is_named_after_the_object_and_the_service_stays_without_a_name() -> None:
    body = old({"componentType": "worker"}, "DynamoComponentDeployment")
    stored = convert(body, NEW)
    assert {"name": "chat", "type": "worker"} == stored["spec"]
    assert body == convert(stored, OLD)


def test_a_request_keeps_the_rest_of_its_profiling_configuration() -> None:
    config = {"sla": {"ttft": 200, "isl": 3000.0}, "engine": {"backend": "vllm"}, "big": 2**62 + 1}
    body = old(
        {"model": "m", "autoApply": False, "profilingConfig": {"profilerImage": "p", "config": config}},
        "DynamoGraphDeploymentRequest",
        status={"state": "Initializing"},
    )
    stored = convert(body, NEW)
    assert {
        "model": "m",
        "autoApply": False,
        "image": "p",
        "sla": {"ttft": 200},
        "workload": {"isl": 3000},
    } == stored["spec"]
    assert {"phase": "Pending"} == stored["status"]
    assert body == convert(stored, OLD)


def test_deployed_is_ready_with_a_graph_that_was_created() -> None:
    deployment = {"name": "g", "created": True}
    status = {"state": "Ready", "deployment": deployment}
    body = old({"autoApply": True}, "DynamoGraphDeploymentRequest", status=status)
    stored = convert(body, NEW)
    assert {"phase": "Deployed", "dgdName": "g"} == stored["status"]
    assert body == convert(stored, OLD)


@pytest.mark.parametrize("kind", ["DynamoGraphDeployment", "DynamoComponentDeployment"])
def test_a_part_of_an_object_stays_a_part(kind: str) -> None:
    """As in a server-side apply, whose managed fields the API server converts on their own."""
    fragment = {"apiVersion": OLD, "kind": kind, "metadata": {}, "status": {"observedGeneration": 3}}
    assert {**fragment, "apiVersion": NEW} == convert(fragment, NEW)
    assert fragment == convert({**fragment, "apiVersion": NEW}, OLD)


@pytest.mark.parametrize("text", ["not json", "[]", '{"services": 3}', "3", "", "[" * 100_000, "\ud800"])
def test_an_unreadable_annotation_is_ignored(text: str) -> None:
    names = ("nvidia.com/dgd-spec", "nvidia.com/dgd-status")
    body = new({"components": [{"name": "W"}]})
    body["metadata"]["annotations"] = dict.fromkeys(names, text)
    assert old({"services": {"W": {}}}) == convert(body, OLD)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ([], "invalid value […] (expected an object)"),
        (
            {"apiVersion": NEW, "kind": "DynamoGraphDeployment"},
            'apiVersion: invalid value "nvidia.com/v1beta1" (expected "nvidia.com/v1alpha1")',
        ),
        (old({}, "Pod"), f'kind: invalid value "Pod" (expected one of {KINDS})'),
        (old({"services": {"W": {"envs": 3}}}), "spec.services.W.envs: invalid value 3 (expected a list)"),
        (
            old({"services": {"W": {"replicas": 2.5}}}),
            "spec.services.W.replicas: invalid value 2.5 (expected an integer of 32 bits)",
        ),
        (
            old({"services": {"W": {"extraPodSpec": {"mainContainer": {"env": [{}, {"name": {}}]}}}}}),
            "spec.services.W.extraPodSpec.mainContainer.env[1].name: invalid value {…} (expected a string)",
        ),
        (
            old({"services": {"W": {"sharedMemory": {"size": "8GB"}}}}),
            'spec.services.W.sharedMemory.size: invalid value "8GB" (expected a quantity, for example "8Gi")',
        ),
        (
            old({"profilingConfig": {"config": [1]}}, "DynamoGraphDeploymentRequest"),
            "spec.profilingConfig.config: invalid value […] (expected an object)",
        ),
    ],
)
def test_an_error_names_the_path_and_what_was_expected(body: Any, message: str) -> None:
    with pytest.raises(ConversionError) as caught:
        convert(body, NEW)
    assert message == str(caught.value)


def test_two_components_of_one_name_have_no_services() -> None:
    with pytest.raises(ConversionError, match='duplicate component name "W"'):
        convert(new({"components": [{"name": "W"}, {"name": "W"}]}), OLD)


def test_an_object_that_is_nested_too_deeply_is_refused() -> None:
    deep: Any = {}
    for _ in range(10_000):
        deep = {"a": deep}
    extra = {"securityContext": deep}
    service = {
        "extraPodSpec": {"mainContainer": extra, "containers": [{"name": "sidecar-frontend", **extra}]}
    }
    body = old({"services": {"W": {**service, "autoscaling": deep}}})
    with pytest.raises(ConversionError, match="the object is nested too deeply"):
        convert(body, NEW)
