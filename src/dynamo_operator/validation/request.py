"""The rules of a DynamoGraphDeploymentRequest. Source: specification `admission` 9."""

from collections.abc import Iterator
from typing import Any

from dynamo_operator.api.request import DynamoGraphDeploymentRequest, ProfilingConfig
from dynamo_operator.kube.kind import Object
from dynamo_operator.settings import RenderSettings
from dynamo_operator.validation import Problem, ProblemKind

CONFIG = "spec.profilingConfig.config"
_OPEN_STATES = ("", "Pending")
"""In these the spec may still be changed."""


def request_problems(
    request: DynamoGraphDeploymentRequest, settings: RenderSettings
) -> tuple[Problem, ...]:
    """Everything that is wrong with a request, sorted by path."""
    return tuple(sorted(_problems(request, settings)))


def _problems(request: DynamoGraphDeploymentRequest, settings: RenderSettings) -> Iterator[Problem]:
    spec = request.spec
    profiling = spec.profiling_config if spec else ProfilingConfig(profiler_image="")
    if not profiling.profiler_image:
        message = "spec.profilingConfig.profilerImage is required"
        yield Problem("spec.profilingConfig.profilerImage", message, ProblemKind.REQUIRED)
    if profiling.config is None:
        message = f"{CONFIG} is required and must not be empty"
        yield Problem(CONFIG, message, ProblemKind.REQUIRED)
    if spec and spec.enable_gpu_discovery and settings.restricted_namespace:
        message = (
            "spec.enableGpuDiscovery can only be set to true for cluster-wide operators. "
            "Namespace-restricted operators cannot access cluster nodes for GPU discovery. Please "
            "set enableGpuDiscovery to false and provide hardware configuration "
            "(hardware.min_num_gpus_per_engine, hardware.max_num_gpus_per_engine, "
            "hardware.num_gpus_per_node) in spec.profilingConfig.config"
        )
        yield Problem("spec.enableGpuDiscovery", message, ProblemKind.FORBIDDEN)


def request_warnings(request: DynamoGraphDeploymentRequest) -> Iterator[Problem]:
    """Values of the profiler's configuration that others will take the place of."""
    if request.spec is None:
        return
    config = request.spec.profiling_config.config or {}
    for section, field, winner, value in (
        ("engine", "backend", "spec.backend", request.spec.backend),
        ("deployment", "model", "spec.model", request.spec.model),
    ):
        found = _text(config, section, field)
        if found and found != value:
            path = f"{CONFIG}.{section}.{field}"
            message = f"{path} ({found}) will be overwritten by {winner} ({value})"
            yield Problem(path, message)


def request_update_warnings(
    old: DynamoGraphDeploymentRequest, new: DynamoGraphDeploymentRequest
) -> Iterator[Problem]:
    """One warning if the change comes too late to have an effect."""
    state = old.status.state or ""
    if old.spec != new.spec and state not in _OPEN_STATES:
        message = (
            f"the request is {state} and its spec is fixed: the change is stored and has no "
            "effect; delete the request and make a new one"
        )
        yield Problem("spec", message)


def _text(config: Object, section: str, field: str) -> str:
    inner: Any = config.get(section)
    value: Any = inner.get(field) if isinstance(inner, dict) else None
    return value if isinstance(value, str) else ""
