"""DynamoGraphDeploymentRequest in both versions: the spec. The status is in `request_status`."""

from typing import Final

from dynamo_operator.versions import common_fields as common
from dynamo_operator.versions import preserved, request_status, v1alpha1, v1beta1
from dynamo_operator.versions.preserved import Payload
from dynamo_operator.versions.profiling_config import Leaves, put_together, taken_apart
from dynamo_operator.versions.shapes import invalid
from kube_runtime.types.meta import Fields, Object

_KEYS: Final = preserved.keys_of(
    "dgdr",
    "config-map-ref",
    "output-pvc",
    "enable-gpu-discovery",
    "deployment-overrides",
    "profiling-config",
    "status-backend",
    "profiling-results",
    "deployment-status",
    "profiling-job-name",
)
_POD_FIELDS: Final = ("tolerations", "nodeSelector")
_CONVERTED: Final = frozenset({"profilerImage", "config", "resources", *_POD_FIELDS})
"""Fields of `profilingConfig` that v1beta1 has a place for."""
_TARGETS: Final = ("ttft", "itl", "optimizationType")
_LENGTHS: Final = ("isl", "osl")
_LOADS: Final = ("concurrency", "requestRate")


def to_v1beta1(request: Fields) -> Object:
    """The request in v1beta1, without apiVersion and kind."""
    metadata, spec = request.get("metadata", {}), request.get("spec", {})
    earlier = preserved.saved_spec(metadata, _KEYS, v1beta1.REQUEST_SPEC)
    earlier_status = preserved.saved_status(metadata, _KEYS, v1beta1.REQUEST_STATUS)
    status, saved_status = request_status.to_v1beta1(request.get("status", {}), earlier_status)
    converted, saved = _spec_to_v1beta1(spec, earlier.spec if earlier else {})
    payload = Payload(saved) if saved else None
    metadata = preserved.with_payloads(metadata, _KEYS, spec=payload, status=saved_status)
    return {"metadata": metadata, "spec": converted, "status": status}


def to_v1alpha1(request: Fields) -> Object:
    """The request in v1alpha1, without apiVersion and kind."""
    metadata, spec = request.get("metadata", {}), request.get("spec", {})
    saved = preserved.saved_spec(metadata, _KEYS, v1alpha1.REQUEST_SPEC)
    saved_status = preserved.saved_status(metadata, _KEYS, v1alpha1.REQUEST_STATUS)
    status, remaining_status = request_status.to_v1alpha1(request.get("status", {}), saved_status)
    converted = _spec_to_v1alpha1(spec, saved.spec if saved else {})
    remainder = _remainder(spec)
    payload = Payload(remainder) if remainder else None
    metadata = preserved.with_payloads(metadata, _KEYS, spec=payload, status=remaining_status)
    return {"metadata": metadata, "spec": converted, "status": status}


def _spec_to_v1beta1(request: Fields, earlier: Fields) -> tuple[Object, Object]:
    profiling = request.get("profilingConfig", {})
    config = profiling.get("config")
    if not isinstance(config, dict | None):
        raise invalid(config, "an object").within("spec", "profilingConfig", "config")
    leaves, rest = taken_apart(config or {})
    spec: Object = {name: request[name] for name in common.REQUEST if name in request}
    spec["autoApply"] = request.get("autoApply", False)
    image = profiling.get("profilerImage") or request.get("deploymentOverrides", {}).get("workersImage")
    features = {"planner": leaves.planner, "mocker": {"enabled": True} if request.get("useMocker") else None}
    if not features["mocker"]:
        features["mocker"] = earlier.get("features", {}).get("mocker")
    earlier_overrides = earlier.get("overrides", {})
    overrides = {
        "profilingJob": _job(profiling, earlier_overrides.get("profilingJob")),
        "dgd": earlier_overrides.get("dgd"),
    }
    parts = {
        "image": image,
        "sla": {**leaves.sla, **_some(earlier.get("sla", {}), "e2eLatency")},
        "workload": {**leaves.workload, **_some(earlier.get("workload", {}), *_LOADS)},
        "modelCache": leaves.model_cache,
        "features": {name: feature for name, feature in features.items() if feature},
        "overrides": {name: override for name, override in overrides.items() if override is not None},
    }
    spec.update({name: part for name, part in parts.items() if part})
    spec.update(_some(earlier, "hardware", "searchStrategy"))
    return spec, _saved(request, config, rest)


def _saved(request: Fields, config: Object | None, rest: Object) -> Object:
    saved = _some(request, "enableGpuDiscovery")
    profiling = {
        name: value for name, value in request.get("profilingConfig", {}).items() if name not in _CONVERTED
    }
    if rest or config == {}:
        profiling["config"] = rest
    if profiling:
        saved["profilingConfig"] = profiling
    if overrides := request.get("deploymentOverrides"):
        saved["deploymentOverrides"] = overrides
    return saved


def _job(profiling: Fields, earlier: Object | None) -> Object | None:
    """The Job of a profiling configuration; its first container is the profiler."""
    pod_fields = _some(profiling, *_POD_FIELDS)
    resources = profiling.get("resources")
    if not pod_fields and not resources:
        return earlier
    job = earlier or {}
    template = job.get("template", {})
    spec = {**template.get("spec", {}), **pod_fields}
    if resources:
        first, *others = spec.get("containers") or [{}]
        spec["containers"] = [{**first, "resources": resources}, *others]
    return {**job, "template": {**template, "spec": spec}}


def _spec_to_v1alpha1(request: Fields, saved: Fields) -> Object:
    spec: Object = {name: request[name] for name in common.REQUEST if name in request}
    spec["autoApply"] = request.get("autoApply", True)
    if request.get("features", {}).get("mocker", {}).get("enabled"):
        spec["useMocker"] = True
    saved_profiling = saved.get("profilingConfig", {})
    profiling: Object = {name: value for name, value in saved_profiling.items() if name not in _CONVERTED}
    if "image" in request:
        profiling["profilerImage"] = request["image"]
    pod = request.get("overrides", {}).get("profilingJob", {}).get("template", {}).get("spec", {})
    profiling.update(_some(pod, *_POD_FIELDS))
    if pod.get("containers") and "resources" in pod["containers"][0]:
        profiling["resources"] = pod["containers"][0]["resources"]
    saved_config = saved_profiling.get("config")
    planner = request.get("features", {}).get("planner")
    leaves = Leaves(
        _some(request.get("sla", {}), *_TARGETS),
        _some(request.get("workload", {}), *_LENGTHS),
        request.get("modelCache", {}),
        planner if isinstance(planner, dict) else {},
    )
    config = put_together(leaves, saved_config if isinstance(saved_config, dict) else {})
    if config or saved_config == {}:
        profiling["config"] = config
    if profiling:
        spec["profilingConfig"] = profiling
    spec.update(_some(saved, "enableGpuDiscovery", "deploymentOverrides"))
    return spec


def _remainder(request: Fields) -> Object:
    """The part of a v1beta1 request that v1alpha1 cannot hold."""
    mocker = request.get("features", {}).get("mocker")
    overrides = request.get("overrides", {})
    job = _job_remainder(overrides["profilingJob"]) if "profilingJob" in overrides else None
    parts = {
        "workload": _some(request.get("workload", {}), *_LOADS),
        "sla": _some(request.get("sla", {}), "e2eLatency"),
        "overrides": {**_some(overrides, "dgd"), **({"profilingJob": job} if job else {})},
        "features": {"mocker": mocker} if mocker is not None and not mocker.get("enabled") else {},
    }
    some = {name: part for name, part in parts.items() if part}
    return {**some, **_some(request, "hardware", "searchStrategy")}


def _job_remainder(job: Object) -> Object:
    template = job.get("template", {})
    spec = {name: value for name, value in template.get("spec", {}).items() if name not in _POD_FIELDS}
    if spec.get("containers"):
        first, *others = spec["containers"]
        first = {name: value for name, value in first.items() if name != "resources"}
        spec["containers"] = [first, *others]
        if not first and not others:
            del spec["containers"]
    template = {**template, "spec": spec} if spec else _without(template, "spec")
    return {**job, "template": template} if template else _without(job, "template")


def _some(source: Fields, *names: str) -> Object:
    return {name: source[name] for name in names if name in source}


def _without(source: Fields, dropped: str) -> Object:
    return {name: value for name, value in source.items() if name != dropped}
