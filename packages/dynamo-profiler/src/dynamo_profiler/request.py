"""The spec of a request in v1beta1, as the configuration of this profiler.

Dynamo 1.x hands its profiler the whole spec. What is left out has the defaults of that profiler, which
differ from those of a configuration.
"""

from collections.abc import Iterable
from typing import Any, Final

from dynamo_profiler import Refusal
from kube_runtime.types.meta import Fields, Object

_TARGETS: Final = {"isl": 4000, "osl": 1000, "ttft": 2000, "itl": 30}
"""Tokens and milliseconds. Source: the schema of v1beta1, and the profiler of Dynamo 1.x."""

_BACKEND: Final = "vllm"
"""The backend of a request that leaves the choice to the profiler."""

_CACHE: Final = {"pvcName": "pvcName", "pvcModelPath": "pvcPath", "pvcMountPath": "mountPath"}


def is_mocked(spec: object) -> bool:
    """Whether the graph of the request gets simulated engines. Raises: Refusal."""
    return _section(_section(_mapping(spec), "features"), "mocker").get("enabled") is True


def configuration_of(spec: object, namespace: str = "default") -> Object:
    """The configuration, to be read by `read_configuration`.

    `rapid` predicts and `thorough` measures, in graphs in the namespace. A concurrency is a rate at which
    as many requests are answered at once if they take as long as their limits allow.

    Raises:
        Refusal: the spec names alternatives together, or has a section of the wrong form.
    """
    spec = _mapping(spec)
    hardware, workload, sla, cache, features = (
        _section(spec, name) for name in ("hardware", "workload", "sla", "modelCache", "features")
    )
    backend, is_thorough = spec.get("backend") or "auto", spec.get("searchStrategy") == "thorough"
    if is_thorough and backend == "auto":
        raise Refusal(
            'spec.searchStrategy "thorough" is incompatible with spec.backend "auto": set spec.backend to a '
            "specific backend (sglang, trtllm, or vllm)"
        )
    targets = _targets(workload, sla)
    mocker, planner = _section(features, "mocker"), features.get("planner")
    configuration: Object = {
        "deployment": {
            "model": spec.get("model"),
            "namespace": namespace,
            "modelCache": {_CACHE[name]: value for name, value in cache.items() if name in _CACHE},
        },
        "engine": {"backend": _BACKEND if backend == "auto" else backend},
        "sla": targets,
        "hardware": _present(gpuType=hardware.get("gpuSku"), numGpusPerNode=hardware.get("numGpusPerNode")),
        "analytic": _present(maxGpus=hardware.get("totalGpus"), requestsPerSecond=_rate(workload, targets)),
        "sweep": {"useAiConfigurator": not is_thorough},
    }
    measured = {"online": {"useMocker": mocker.get("enabled", False)}} if is_thorough else {}
    return configuration | measured | _present(planner=planner)


def _targets(workload: Fields, sla: Fields) -> Object:
    """Lengths and limits. That of whole requests is divided into those of the first and the other tokens."""
    given = {**_some(workload, ("isl", "osl")), **_some(sla, ("ttft", "itl"))}
    whole = sla.get("e2eLatency")
    targets = {**_TARGETS, **given}
    if whole is None:
        return targets
    _alternatives("sla", sla, ("e2eLatency",), ("ttft", "itl"))
    if not _is_number(whole) or not _is_number(targets["osl"]):
        return {**targets, "ttft": whole, "itl": whole}  # reading the configuration names what is wrong
    first = min(_TARGETS["ttft"], whole / 2)
    return {**targets, "ttft": first, "itl": (whole - first) / max(targets["osl"] - 1, 1)}


def _rate(workload: Fields, targets: Fields) -> object:
    _alternatives("workload", workload, ("concurrency",), ("requestRate",))
    at_once = workload.get("concurrency")
    if at_once is None or not all(map(_is_number, (at_once, *targets.values()))):
        return workload.get("requestRate") if at_once is None else at_once
    milliseconds = targets["ttft"] + (targets["osl"] - 1) * targets["itl"]
    return at_once * 1000 / milliseconds if milliseconds > 0 else at_once


def _alternatives(section: str, given: Fields, one: Iterable[str], other: Iterable[str]) -> None:
    first, second = _some(given, one), _some(given, other)
    if first and second:
        names = " and ".join(f"spec.{section}.{name}" for name in (*first, *second))
        raise Refusal(f"{names} exclude each other: set one of them")


def _mapping(spec: object) -> Fields:
    if not isinstance(spec, dict):
        raise Refusal("the spec of a request must be a mapping")
    return spec


def _section(parent: Fields, name: str) -> Object:
    value = parent.get(name)
    if not isinstance(value, dict | None):
        raise Refusal(f"spec.{name} must be a mapping")
    return value or {}


def _some(given: Fields, names: Iterable[str]) -> Object:
    return {name: given[name] for name in names if given.get(name) is not None}


def _present(**values: Any) -> Object:
    return {name: value for name, value in values.items() if value is not None}


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
