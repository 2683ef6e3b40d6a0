"""`profilingConfig.config` of a v1alpha1 request: free JSON, some leaves of which are fields in v1beta1."""

from typing import Final, NamedTuple

from dynamo_operator.versions.parts import renamed, reversed_names, without
from kube_runtime.types.meta import Fields, Object

_MODEL_CACHE: Final = {"pvcName": "pvcName", "modelPathInPvc": "pvcModelPath", "pvcMountPath": "pvcMountPath"}
_OPTIMIZATIONS: Final = ("latency", "throughput")
_MOST_TOKENS: Final = (1 << 31) - 1
_DEFAULTS: Final = {
    "profilingConfig.config.sla.isl": ("workload", "isl", 4000),
    "profilingConfig.config.sla.osl": ("workload", "osl", 1000),
    "profilingConfig.config.deployment.modelCache.pvcMountPath": (
        "model_cache",
        "pvcMountPath",
        "/opt/model-cache",
    ),
}
"""Leaves for which the schema of v1beta1 has a default, beside other fields: part, name, default."""


class Leaves(NamedTuple):
    """The leaves of a profiling configuration that are fields in v1beta1, by their names there."""

    sla: Object
    workload: Object
    model_cache: Object
    planner: Object


def taken_apart(config: Fields) -> tuple[Leaves, Object]:
    """The leaves, and the rest: without them, and without the objects that held nothing else."""
    sla, deployment = _object_in(config, "sla"), _object_in(config, "deployment")
    cache, planner = _object_in(deployment, "modelCache"), _object_in(config, "planner")
    targets = {name: sla[name] for name in ("ttft", "itl") if _is_number(sla.get(name))}
    if sla.get("optimizationType") in _OPTIMIZATIONS:
        targets["optimizationType"] = sla["optimizationType"]
    lengths = {name: int(sla[name]) for name in ("isl", "osl") if _is_length(sla.get(name))}
    paths = {name: cache[name] for name in _MODEL_CACHE if cache.get(name) and isinstance(cache[name], str)}
    rest = _reduced(config, "sla", without(sla, *targets, *lengths))
    rest_of_deployment = _reduced(deployment, "modelCache", without(cache, *paths))
    rest = _reduced(rest, "deployment", rest_of_deployment) if paths else rest
    rest = without(rest, "planner") if planner else rest
    return Leaves(targets, lengths, renamed(paths, _MODEL_CACHE), planner), rest


def put_together(leaves: Leaves, rest: Fields) -> Object:
    """The configuration with these leaves. Leaves that the rest has are old, and left out."""
    _, config = taken_apart(rest)
    if sla := {**leaves.sla, **leaves.workload}:
        config["sla"] = {**_object_in(config, "sla"), **sla}
    if leaves.model_cache:
        deployment = _object_in(config, "deployment")
        paths = renamed(leaves.model_cache, reversed_names(_MODEL_CACHE))
        cache = {**_object_in(deployment, "modelCache"), **paths}
        config["deployment"] = {**deployment, "modelCache": cache}
    if leaves.planner:
        config["planner"] = leaves.planner
    return config


def without_value(leaves: Leaves) -> frozenset[str]:
    """The paths in v1alpha1 of leaves that the API server will give a default in v1beta1."""
    return frozenset(
        path
        for path, (part, name, _) in _DEFAULTS.items()
        if getattr(leaves, part) and name not in getattr(leaves, part)
    )


def without_defaults(leaves: Leaves, paths: frozenset[str]) -> Leaves:
    """The leaves without those at these paths that have their default."""
    for path in paths & _DEFAULTS.keys():
        part, name, default = _DEFAULTS[path]
        fields = getattr(leaves, part)
        if fields.get(name) == default:
            leaves = leaves._replace(**{part: without(fields, name)})
    return leaves


def _object_in(source: Fields, name: str) -> Object:
    value = source.get(name)
    return value if isinstance(value, dict) else {}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_length(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _MOST_TOKENS


def _reduced(source: Fields, name: str, left: Object) -> Object:
    """The object with what is left of an object in it; one that held nothing before stays."""
    if not isinstance(source.get(name), dict):
        return {**source}
    return {**source, name: left} if left or not source[name] else without(source, name)
