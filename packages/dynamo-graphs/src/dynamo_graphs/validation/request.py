"""The rules of a DynamoGraphDeploymentRequest.

Before anything has started everything may be changed; afterwards a changed spec would not match the graph
that was found, so the change is refused.
"""

from collections.abc import Iterator
from itertools import chain

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.profiling import OWN_VARIABLES
from dynamo_graphs.api.request import (
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    ProfilingConfig,
)
from dynamo_graphs.files.yaml_reader import DEPTH_LIMIT, is_deep
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.bounds import MOST_PROBLEMS, first_problems
from kube_runtime.kind import Object

PROFILING = "spec.profilingConfig"
CONFIG = f"{PROFILING}.config"
_CHANGEABLE = ("", "Pending", "Failed")
"""In these states the spec may be changed; a failed request then restarts."""

_OWN_LABELS = (
    labels.PROFILING_APP,
    labels.PROFILING_JOB,
    labels.MANAGED_BY,
    labels.REQUEST,
    labels.REQUEST_NAMESPACE,
    "controller-uid",
    "job-name",
)
_OWN_LABEL_PREFIX = "batch.kubernetes.io/"
_OUTPUT_FOLDER = "/data"
_SECTIONS = ("deployment", "engine", "hardware", "planner", "sla", "sweep")
"""Sections that every profiler reads as mappings."""

_ARGUMENT_LIMIT_BYTES = 128 * 1024 - 1
"""Of one argument, or of one variable with its name. Source: Linux, MAX_ARG_STRLEN, without the end mark."""

_SPEC_LIMIT_BYTES = 200_000
"""Of the spec as JSON. It is stored twice, beside a graph of 900,000 bytes and ConfigMaps of 250,000, in an
object of at most 1.5 MiB. Source: etcd's default limit of a request."""


def request_problems(
    request: DynamoGraphDeploymentRequest,
    settings: RenderSettings,
    config_bytes: int,
    most: int = MOST_PROBLEMS,
) -> tuple[Problem, ...]:
    """Problems of a request, sorted by path: everything, but for more than `most` problems.

    `config_bytes` is the size of the profiler's configuration as it is handed over.
    """
    sizes = _size_problems(request.spec, config_bytes) if request.spec is not None else ()
    return first_problems(chain(_problems(request, settings), sizes), most)


def request_update_problems(
    old: DynamoGraphDeploymentRequest, new: DynamoGraphDeploymentRequest
) -> Iterator[Problem]:
    """One problem if the spec is changed although it is fixed.

    The way back is open: the spec that the request is carried out by may always be restored.
    """
    state = old.status.state or ""
    if old.spec == new.spec or state in _CHANGEABLE:
        return
    if not _is_accepted(new.spec, old.status.accepted_spec):
        message = (
            f"spec cannot be modified in state '{state}': DynamoGraphDeploymentRequest is immutable once "
            "profiling starts. Create a new resource with a different name instead"
        )
        yield Problem("spec", message, ProblemKind.FORBIDDEN)


def request_warnings(request: DynamoGraphDeploymentRequest) -> Iterator[Problem]:
    """Values of the profiler's configuration that others will take the place of."""
    if request.spec is None:
        return
    config = request.spec.profiling_config.config or {}
    for section, field, winner, value in (
        ("engine", "backend", "spec.backend", request.spec.backend),
        ("deployment", "model", "spec.model", request.spec.model),
    ):
        given = _text(config.get(section), field)
        if given and given != value:
            yield _overwritten(f"{section}.{field}", given, f"{winner} ({value})")
    for field in ("output_dir", "outputDir"):
        given = _text(config, field)
        if given and given != _OUTPUT_FOLDER:
            winner = f"{_OUTPUT_FOLDER}, from which the operator reads results"
            yield _overwritten(field, given, winner)


def _is_accepted(spec: DynamoGraphDeploymentRequestSpec | None, accepted: Object | None) -> bool:
    try:
        return msgspec.convert(accepted, DynamoGraphDeploymentRequestSpec) == spec
    except msgspec.ValidationError:  # there is none yet, or a user changed it
        return False


def _problems(request: DynamoGraphDeploymentRequest, settings: RenderSettings) -> Iterator[Problem]:
    spec = request.spec
    if spec is None:
        yield Problem("spec", "spec is required", ProblemKind.REQUIRED)
        return
    profiling = spec.profiling_config
    if not profiling.profiler_image:
        message = f"{PROFILING}.profilerImage is required"
        yield Problem(f"{PROFILING}.profilerImage", message, ProblemKind.REQUIRED)
    yield from _sections(profiling.config or {})
    yield from _overrides(request.metadata.namespace, profiling, settings)
    yield from _own_namespace(request.metadata.namespace, settings)
    if settings.restricted_namespace:
        yield from _restricted(spec, settings.restricted_namespace)


def _sections(config: Object) -> Iterator[Problem]:
    """Every part of the configuration that has not the form in which it is read."""
    if is_deep(config):
        yield Problem(CONFIG, f"{CONFIG} must not nest deeper than {DEPTH_LIMIT} levels")
    for name in _SECTIONS:
        yield from _is_of(dict, f"{CONFIG}.{name}", config.get(name))
    deployment: object = config.get("deployment")
    cache: object = deployment.get("modelCache") if isinstance(deployment, dict) else None
    yield from _is_of(dict, f"{CONFIG}.deployment.modelCache", cache)
    if isinstance(cache, dict):
        for name in ("pvcName", "mountPath"):
            yield from _is_of(str, f"{CONFIG}.deployment.modelCache.{name}", cache.get(name))


def _is_of(form: type, path: str, value: object) -> Iterator[Problem]:
    if value is not None and not isinstance(value, form):
        expected = "an object" if form is dict else f"a {_kind(form())}"
        yield Problem(path, f"{path} must be {expected}, got {_kind(value)}")


def _overrides(
    namespace: str, profiling: ProfilingConfig, settings: RenderSettings
) -> Iterator[Problem]:
    """What the Job may not be given by a user."""
    for at, variable in enumerate(profiling.env):
        if variable.get("name") in OWN_VARIABLES:
            reserved = ", ".join(OWN_VARIABLES)
            message = f"{variable['name']} is set by the operator; it keeps {reserved}"
            yield Problem(f"{PROFILING}.env[{at}].name", message, ProblemKind.FORBIDDEN)
    for name in profiling.labels:
        if name in _OWN_LABELS or name.startswith(_OWN_LABEL_PREFIX):
            reserved = ", ".join((*_OWN_LABELS, f"{_OWN_LABEL_PREFIX}*"))
            message = f"the operator or the Job controller sets them; they keep {reserved}"
            yield Problem(f"{PROFILING}.labels[{name}]", message, ProblemKind.FORBIDDEN)
    account = profiling.service_account_name
    if account and f"{namespace}/{account}" == settings.operator_account:
        message = f'"{account}" is the operator\'s own ServiceAccount, which no pod may use'
        yield Problem(f"{PROFILING}.serviceAccountName", message, ProblemKind.FORBIDDEN)


def _own_namespace(namespace: str, settings: RenderSettings) -> Iterator[Problem]:
    """Profiling runs an image of the user's choice; not beside an operator that may do everything."""
    own, _, _ = settings.operator_account.partition("/")
    if own and namespace == own and not settings.restricted_namespace:
        message = f"metadata.namespace {namespace} is the operator's own: create the request in another one"
        yield Problem("metadata.namespace", message, ProblemKind.FORBIDDEN)


def _restricted(spec: DynamoGraphDeploymentRequestSpec, namespace: str) -> Iterator[Problem]:
    """What an operator of one namespace cannot do."""
    if spec.enable_gpu_discovery:
        message = (
            "spec.enableGpuDiscovery can only be set to true for cluster-wide operators. "
            "Namespace-restricted operators cannot access cluster nodes for GPU discovery. Please "
            "set enableGpuDiscovery to false and provide hardware configuration "
            "(hardware.min_num_gpus_per_engine, hardware.max_num_gpus_per_engine, "
            "hardware.num_gpus_per_node) in spec.profilingConfig.config"
        )
        yield Problem("spec.enableGpuDiscovery", message, ProblemKind.FORBIDDEN)
    overrides = spec.deployment_overrides
    if overrides is not None and overrides.namespace not in (None, "", namespace):
        path = "spec.deploymentOverrides.namespace"
        message = f"{path} is {overrides.namespace}, but this operator works in namespace {namespace} only"
        yield Problem(path, message, ProblemKind.FORBIDDEN)


def _overwritten(field: str, given: str, winner: str) -> Problem:
    path = f"{CONFIG}.{field}"
    return Problem(path, f"{path} ({given}) will be overwritten by {winner}")


def _kind(value: object) -> str:
    names = {
        bool: "boolean",
        int: "number",
        float: "number",
        str: "string",
        list: "array",
        dict: "object",
    }
    return names.get(type(value), type(value).__name__)


def _text(section: object, field: str) -> str:
    value: object = section.get(field) if isinstance(section, dict) else None
    return value if isinstance(value, str) else ""


def _size_problems(spec: DynamoGraphDeploymentRequestSpec, config_bytes: int) -> Iterator[Problem]:
    """What is too large to be stored, or for the Job to start.

    `config_bytes` is the size of the configuration as the profiler gets it. No other check is as early: the
    API server accepts the Job, and hours later the kubelet fails to start the container and names no field.
    """
    problems = [*_arguments(spec, config_bytes)]
    yield from problems
    size = len(msgspec.json.encode(spec))
    if size > _SPEC_LIMIT_BYTES and not problems:
        message = (
            f"the spec has {size} bytes as JSON (limit {_SPEC_LIMIT_BYTES}, so that results fit "
            "beside it): move large values into ConfigMaps and reference them in "
            f"{PROFILING}.configMapRef or {PROFILING}.envFrom"
        )
        yield Problem("spec", f"spec: {message}")


def _arguments(spec: DynamoGraphDeploymentRequestSpec, config_bytes: int) -> Iterator[Problem]:
    if config_bytes > _ARGUMENT_LIMIT_BYTES:
        message = (
            f"{CONFIG} has {config_bytes} bytes, but the profiler receives it as one argument "
            f"(limit {_ARGUMENT_LIMIT_BYTES}): move large values into the ConfigMap of "
            f"{PROFILING}.configMapRef"
        )
        yield Problem(CONFIG, message)
    for at, variable in enumerate(spec.profiling_config.env):
        size = sum(len(str(variable.get(field, "")).encode()) for field in ("name", "value")) + 1
        if size > _ARGUMENT_LIMIT_BYTES:
            path = f"{PROFILING}.env[{at}].value"
            message = f"{path} makes a variable of {size} bytes (limit {_ARGUMENT_LIMIT_BYTES})"
            yield Problem(path, message)
