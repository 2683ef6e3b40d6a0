"""DynamoGraphDeploymentRequest in both versions: the spec. The status is in `request_status`."""

from typing import Final

from dynamo_operator.versions import common_fields as common
from dynamo_operator.versions import preserved, request_status, v1alpha1, v1beta1
from dynamo_operator.versions.parts import present, some, without
from dynamo_operator.versions.preserved import Payload
from dynamo_operator.versions.profiling_config import (
    Leaves,
    put_together,
    taken_apart,
    without_defaults,
    without_value,
)
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
_PROFILER: Final = {"name": "profiler"}
"""The container of a Job to which `profilingConfig.resources` belong, unless v1beta1 names it otherwise."""
_CONVERTED: Final = frozenset({"profilerImage", "config", "resources", *_POD_FIELDS})
"""Fields of `profilingConfig` that v1beta1 has a place for."""
_TARGETS: Final = ("ttft", "itl", "optimizationType")
_LENGTHS: Final = ("isl", "osl")
_LOADS: Final = ("concurrency", "requestRate")
_ONLY_V1BETA1: Final = ("hardware", "searchStrategy")


def to_v1beta1(request: Fields) -> Object:
    """The request in v1beta1, without apiVersion and kind."""
    metadata, spec = request.get("metadata", {}), request.get("spec", {})
    earlier = preserved.saved_spec(metadata, _KEYS, v1beta1.REQUEST_SPEC)
    earlier_status = preserved.saved_status(metadata, _KEYS, v1beta1.REQUEST_STATUS)
    status, saved_status = request_status.to_v1beta1(request.get("status", {}), earlier_status)
    converted, payload = _spec_to_v1beta1(spec, earlier.spec if earlier else {})
    metadata = preserved.with_payloads(metadata, _KEYS, spec=payload, status=saved_status)
    return {"metadata": metadata, "spec": converted, "status": status}


def to_v1alpha1(request: Fields) -> Object:
    """The request in v1alpha1, without apiVersion and kind."""
    metadata, spec = request.get("metadata", {}), request.get("spec", {})
    saved = preserved.saved_spec(metadata, _KEYS, v1alpha1.REQUEST_SPEC)
    saved_status = preserved.saved_status(metadata, _KEYS, v1alpha1.REQUEST_STATUS)
    status, remaining_status = request_status.to_v1alpha1(request.get("status", {}), saved_status)
    converted = _spec_to_v1alpha1(spec, saved or Payload({}))
    remainder = _remainder(spec)
    payload = Payload(remainder) if remainder else None
    metadata = preserved.with_payloads(metadata, _KEYS, spec=payload, status=remaining_status)
    return {"metadata": metadata, "spec": converted, "status": status}


def preserved_spec(metadata: Fields) -> Object:
    """What a request in v1alpha1 preserves of one in v1beta1: a sparse spec of v1beta1."""
    earlier = preserved.saved_spec({**metadata}, _KEYS, v1beta1.REQUEST_SPEC)
    return earlier.spec if earlier else {}


def _spec_to_v1beta1(request: Fields, earlier: Fields) -> tuple[Object, Payload | None]:
    profiling = request.get("profilingConfig", {})
    config = profiling.get("config")
    if not isinstance(config, dict | None):
        raise invalid(config, "an object").within("spec", "profilingConfig", "config")
    leaves, rest = taken_apart(config or {})
    overrides = earlier.get("overrides", {})
    mocker = {"enabled": True} if request.get("useMocker") else _unused(earlier)
    spec = {
        **some(request, common.REQUEST),
        "autoApply": request.get("autoApply", False),
        **present(
            image=profiling.get("profilerImage")
            or request.get("deploymentOverrides", {}).get("workersImage"),
            sla={**leaves.sla, **some(earlier.get("sla", {}), ["e2eLatency"])},
            workload={**leaves.workload, **some(earlier.get("workload", {}), _LOADS)},
            modelCache=leaves.model_cache,
            features={**present(planner=leaves.planner), **_given(mocker=mocker)},
            overrides={
                **present(profilingJob=_job(profiling, overrides.get("profilingJob", {}))),
                **some(overrides, ["dgd"]),
            },
        ),
        **some(earlier, _ONLY_V1BETA1),
    }
    profiling_rest = without(profiling, *_CONVERTED)
    if rest or config == {}:
        profiling_rest["config"] = rest
    saved = {
        **some(request, ["enableGpuDiscovery", *([] if request.get("useMocker") else ["useMocker"])]),
        **present(profilingConfig=profiling_rest, deploymentOverrides=request.get("deploymentOverrides")),
    }
    empty_paths = without_value(leaves)
    return spec, Payload(saved, empty_paths) if saved or empty_paths else None


def _unused(request: Fields) -> Object | None:
    """The mocker of a v1beta1 request that is not used."""
    mocker: Object | None = request.get("features", {}).get("mocker")
    return None if mocker is None or mocker.get("enabled") else mocker


def _job(profiling: Fields, earlier: Fields) -> Object:
    """The Job of a profiling configuration; its first container is the profiler."""
    resources, job = profiling.get("resources"), _job_remainder(earlier)
    template = job.get("template", {})
    spec = {**template.get("spec", {}), **some(profiling, _POD_FIELDS)}
    # The API server refuses each write of a pod without a list of containers, and of one without a name.
    if resources or "containers" in spec:
        first, *others = spec.get("containers") or [{}]
        spec["containers"] = [{**_PROFILER, **first, **present(resources=resources)}, *others]
    elif spec:
        spec["containers"] = []
    return {**job, **present(template={**template, **present(spec=spec)})}


def _spec_to_v1alpha1(request: Fields, payload: Payload) -> Object:
    saved = payload.spec
    features, saved_profiling = request.get("features", {}), saved.get("profilingConfig", {})
    planner, saved_config = features.get("planner"), saved_profiling.get("config")
    pod = request.get("overrides", {}).get("profilingJob", {}).get("template", {}).get("spec", {})
    (profiler, *_) = pod.get("containers") or [{}]
    leaves = Leaves(
        some(request.get("sla", {}), _TARGETS),
        some(request.get("workload", {}), _LENGTHS),
        request.get("modelCache", {}),
        planner if isinstance(planner, dict) else {},
    )
    leaves = without_defaults(leaves, payload.empty_paths)
    config = put_together(leaves, saved_config if isinstance(saved_config, dict) else {})
    profiling = {
        **without(saved_profiling, *_CONVERTED),
        **present(profilerImage=request.get("image")),
        **some(pod, _POD_FIELDS),
        **some(profiler, ["resources"]),
        **({"config": config} if config or saved_config == {} else {}),
    }
    return {
        **some(request, common.REQUEST),
        "autoApply": request.get("autoApply", True),
        **some(saved, ("enableGpuDiscovery", "deploymentOverrides", "useMocker")),
        **present(useMocker=features.get("mocker", {}).get("enabled"), profilingConfig=profiling),
    }


def _remainder(request: Fields) -> Object:
    """The part of a v1beta1 request that v1alpha1 cannot hold."""
    overrides = request.get("overrides", {})
    job = _job_remainder(overrides.get("profilingJob", {}))
    return {
        **present(
            workload=some(request.get("workload", {}), _LOADS),
            sla=some(request.get("sla", {}), ["e2eLatency"]),
            overrides={**present(profilingJob=job), **some(overrides, ["dgd"])},
            features=_given(mocker=_unused(request)),
        ),
        **some(request, _ONLY_V1BETA1),
    }


def _job_remainder(job: Fields) -> Object:
    """A Job without what `profilingConfig` has fields for."""
    template = job.get("template", {})
    spec = without(template.get("spec", {}), *_POD_FIELDS)
    if "containers" in spec:
        first, *others = spec.pop("containers") or [{}]
        rest = without(first, "resources")
        if others or rest not in ({}, _PROFILER if first.get("resources") else {}):
            spec["containers"] = [rest, *others]
    template = {**without(template, "spec"), **present(spec=spec)}
    return {**without(job, "template"), **present(template=template)}


def _given(**fields: object) -> Object:
    return {name: value for name, value in fields.items() if value is not None}
