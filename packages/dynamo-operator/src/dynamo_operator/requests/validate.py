"""The rules of a DynamoGraphDeploymentRequest.

The spec is immutable once profiling starts: a changed spec would not match the generated graph.
"""

from collections.abc import Iterator
from contextlib import suppress

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.component.validate_pod import placeholder_problems
from dynamo_operator.documents import DEPTH_LIMIT, is_deep
from dynamo_operator.requests.api import OWN_VARIABLES, DeploymentOverrides, is_variable
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec as RequestSpec
from dynamo_operator.requests.extras import SAVED, extras_in, extras_of, is_switched_on
from dynamo_operator.requests.render import OUTPUT_FOLDER, profiler_config_bytes, section_of
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.problems import MOST_PROBLEMS, Problem, ProblemKind, first_problems, name_problems
from kube_runtime.types.meta import Object, from_json

PROFILING = "spec.profilingConfig"
CONFIG = f"{PROFILING}.config"
_CHANGEABLE = ("", "Pending", "Failed")
"""States in which the spec may change; a failed request then restarts."""

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
_SECTIONS = ("deployment", "engine", "hardware", "planner", "sla", "sweep")
"""Sections that every profiler reads as objects."""

_JSON_TYPES: dict[type, str] = {
    bool: "boolean",
    int: "number",
    float: "number",
    str: "string",
    list: "array",
    dict: "object",
}
_ARGUMENT_LIMIT_BYTES = 128 * 1024 - 1
"""Of one argument, or one variable with its name. Source: MAX_ARG_STRLEN of Linux, less the final NUL."""

_SPEC_LIMIT_BYTES = 200_000
"""Of the spec as JSON. The object has it twice, with a graph of up to 900,000 bytes and ConfigMaps of up to
250,000, and may have 1.5 MiB. Source: etcd's default limit of a request."""


def request_problems(
    request: Request, settings: RenderSettings, most: int = MOST_PROBLEMS
) -> tuple[Problem, ...]:
    """The problems of a request, sorted by path; no more than `most`."""
    return first_problems(_problems(request, settings), most)


def request_update_problems(old: Request, new: Request) -> Iterator[Problem]:
    """Refuse a change of the spec once profiling has started, except back to the accepted spec."""
    state = old.status.state or ""
    extras = extras_of(new.metadata)
    is_same = old.spec == new.spec and extras_of(old.metadata) == extras
    if is_same or state in _CHANGEABLE or is_switched_on(replace(old, spec=new.spec, metadata=new.metadata)):
        return
    accepted = None  # none yet, or a user has edited the status
    with suppress(msgspec.ValidationError):
        accepted = from_json(old.status.accepted_spec, RequestSpec)
    if new.spec is None or new.spec != accepted or extras != extras_in(old.status.accepted_spec):
        message = (
            f"spec cannot be modified in state '{state}': DynamoGraphDeploymentRequest is immutable once "
            "profiling starts. Create a new resource with a different name instead"
        )
        yield Problem("spec", message, ProblemKind.FORBIDDEN)


def request_warnings(request: Request) -> Iterator[Problem]:
    """Warn of a choice that profilers of Dynamo 0.9 cannot make, and of values that are overwritten."""
    if request.spec is None:
        return
    if request.spec.backend == "auto" and SAVED not in request.metadata.annotations:
        message = "requires a profiler of Dynamo 1.x: that of this operator needs vllm, sglang or trtllm"
        yield Problem("spec.backend", f'"auto" {message}')
    config = request.spec.profiling_config.config or {}
    for section, field, winner, value in (
        ("engine", "backend", "spec.backend", request.spec.backend),
        ("deployment", "model", "spec.model", request.spec.model),
    ):
        given = section_of(config, section).get(field)
        if isinstance(given, str) and given not in ("", value):
            path = f"{CONFIG}.{section}.{field}"
            yield Problem(path, f"{path} ({given}) will be overwritten by {winner} ({value})")
    for field in ("output_dir", "outputDir"):
        given = config.get(field)
        if isinstance(given, str) and given not in ("", OUTPUT_FOLDER):
            path, folder = f"{CONFIG}.{field}", f"{OUTPUT_FOLDER}, from which the operator reads results"
            yield Problem(path, f"{path} ({given}) will be overwritten by {folder}")


def request_image_problems(request: Request) -> Iterator[Problem]:
    """Report images that are placeholders."""
    if request.spec is None:
        return
    yield from placeholder_problems(
        request.spec.profiling_config.profiler_image, f"{PROFILING}.profilerImage"
    )
    if overrides := request.spec.deployment_overrides:
        path = "spec.deploymentOverrides.workersImage"
        yield from placeholder_problems(overrides.workers_image, path)


def _problems(request: Request, settings: RenderSettings) -> Iterator[Problem]:
    spec = request.spec
    if spec is None:
        yield Problem("spec", "spec is required", ProblemKind.REQUIRED)
        return
    profiling = spec.profiling_config
    # v1beta1 has a default, and in v1alpha1 the API server requires it.
    if not profiling.profiler_image and SAVED not in request.metadata.annotations:
        message = f"{PROFILING}.profilerImage is required"
        yield Problem(f"{PROFILING}.profilerImage", message, ProblemKind.REQUIRED)
    yield from _config_problems(profiling.config or {})
    yield from _reference_problems(spec)
    if name := extras_of(request.metadata).overrides.graph_name:
        yield from name_problems(name, "spec.overrides.dgd.metadata.name", "a graph")
    for path, message in _forbidden(request.metadata.namespace, spec, settings):
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    yield from _size_problems(spec, request.metadata.namespace)


def _config_problems(config: Object) -> Iterator[Problem]:
    if is_deep(config):
        yield Problem(CONFIG, f"{CONFIG} must not nest deeper than {DEPTH_LIMIT} levels")
    for name in _SECTIONS:
        yield from _type_problems(dict, f"{CONFIG}.{name}", config.get(name))
    deployment = section_of(config, "deployment")
    cache, variables = section_of(deployment, "modelCache"), deployment.get("envs")
    yield from _type_problems(dict, f"{CONFIG}.deployment.modelCache", deployment.get("modelCache"))
    path = f"{CONFIG}.deployment.envs"
    yield from _type_problems(list, path, variables)
    for index, variable in enumerate(variables if isinstance(variables, list) else ()):
        if not is_variable(variable):
            text = 'must be an environment variable, for example {"name": "HF_HOME", "value": "/cache"}'
            yield Problem(f"{path}[{index}]", f"{path}[{index}] {text}")
    for name in ("pvcName", "mountPath"):
        yield from _type_problems(str, f"{CONFIG}.deployment.modelCache.{name}", cache.get(name))
    if isinstance(claim := cache.get("pvcName"), str) and claim:
        yield from name_problems(claim, f"{CONFIG}.deployment.modelCache.pvcName", "a PVC")


def _reference_problems(spec: RequestSpec) -> Iterator[Problem]:
    profiling = spec.profiling_config
    overrides = spec.deployment_overrides or DeploymentOverrides()
    references = (
        (f"{PROFILING}.outputPVC", "a PVC", profiling.output_pvc),
        (f"{PROFILING}.serviceAccountName", "a ServiceAccount", profiling.service_account_name),
        (f"{PROFILING}.priorityClassName", "a PriorityClass", profiling.priority_class_name),
        (f"{PROFILING}.runtimeClassName", "a RuntimeClass", profiling.runtime_class_name),
        ("spec.deploymentOverrides.name", "a graph", overrides.name),
        ("spec.deploymentOverrides.namespace", "a namespace", overrides.namespace),
    )
    if base := profiling.config_map_ref:
        yield from name_problems(base.name, f"{PROFILING}.configMapRef.name", "a ConfigMap")
    for path, kind, name in references:
        if name:
            yield from name_problems(name, path, kind)
    for index, secret in enumerate(profiling.image_pull_secrets):
        path = f"{PROFILING}.imagePullSecrets[{index}].name"
        yield from name_problems(str(secret.get("name", "")), path, "a Secret")


def _type_problems(form: type, path: str, value: object) -> Iterator[Problem]:
    if value is not None and not isinstance(value, form):
        expected = "an object" if form is dict else f"a {_JSON_TYPES[form]}"
        given = _JSON_TYPES.get(type(value), type(value).__name__)
        yield Problem(path, f"{path} must be {expected}, got {given}")


def _forbidden(namespace: str, spec: RequestSpec, settings: RenderSettings) -> Iterator[tuple[str, str]]:
    """What belongs to the operator, and what an operator of one namespace cannot do: path and message."""
    profiling = spec.profiling_config
    for at, variable in enumerate(profiling.env):
        if variable.get("name") in OWN_VARIABLES:
            reserved = ", ".join(OWN_VARIABLES)
            message = f"reserved: the operator sets {variable['name']} (reserved names: {reserved})"
            yield f"{PROFILING}.env[{at}].name", message
    for name in profiling.labels:
        if is_own_label(name):
            reserved = ", ".join((*_OWN_LABELS, f"{_OWN_LABEL_PREFIX}*"))
            message = f"reserved: the operator or the Job controller sets it (reserved keys: {reserved})"
            yield f"{PROFILING}.labels[{name}]", message
    account, only = profiling.service_account_name, settings.restricted_namespace
    if account and f"{namespace}/{account}" == settings.operator_account:
        message = f'"{account}" is the operator\'s own ServiceAccount, which no pod may use'
        yield f"{PROFILING}.serviceAccountName", message
    if not only:
        own, _, _ = settings.operator_account.partition("/")
        if own and namespace == own:  # profiling runs the user's image
            message = "is the operator's own: create the request in another one"
            yield "metadata.namespace", f"metadata.namespace {namespace} {message}"
        return
    if spec.enable_gpu_discovery:
        message = (
            "spec.enableGpuDiscovery can only be set to true for cluster-wide operators. "
            "Namespace-restricted operators cannot access cluster nodes for GPU discovery. Please "
            "set enableGpuDiscovery to false and provide hardware configuration "
            "(hardware.min_num_gpus_per_engine, hardware.max_num_gpus_per_engine, "
            "hardware.num_gpus_per_node) in spec.profilingConfig.config"
        )
        yield "spec.enableGpuDiscovery", message
    overrides = spec.deployment_overrides
    if overrides is not None and overrides.namespace not in (None, "", only):
        path = "spec.deploymentOverrides.namespace"
        yield path, f"{path} is {overrides.namespace}, but this operator works in namespace {only} only"


def is_own_label(name: str) -> bool:
    """Whether the operator or the Job controller sets the label of a profiling pod."""
    return name in _OWN_LABELS or name.startswith(_OWN_LABEL_PREFIX)


def _size_problems(spec: RequestSpec, namespace: str) -> Iterator[Problem]:
    # Without this check the API server would accept the Job, and the kubelet would fail to start the
    # container without naming the field.
    is_too_large, config_bytes = False, profiler_config_bytes(spec, namespace)
    if config_bytes > _ARGUMENT_LIMIT_BYTES:
        is_too_large = True
        message = (
            f"{CONFIG} has {config_bytes} bytes, but the profiler receives it as one argument "
            f"(limit {_ARGUMENT_LIMIT_BYTES}): move large values into the ConfigMap of "
            f"{PROFILING}.configMapRef"
        )
        yield Problem(CONFIG, message)
    for at, variable in enumerate(spec.profiling_config.env):
        size = sum(len(str(variable.get(field, "")).encode()) for field in ("name", "value")) + 1
        if size > _ARGUMENT_LIMIT_BYTES:
            is_too_large = True
            path = f"{PROFILING}.env[{at}].value"
            message = f"{path} makes a variable of {size} bytes (limit {_ARGUMENT_LIMIT_BYTES})"
            yield Problem(path, message)
    size = len(msgspec.json.encode(spec))
    if size > _SPEC_LIMIT_BYTES and not is_too_large:
        message = (
            f"the spec has {size} bytes as JSON (limit {_SPEC_LIMIT_BYTES}, so that results fit "
            "beside it): move large values into ConfigMaps and reference them in "
            f"{PROFILING}.configMapRef or {PROFILING}.envFrom"
        )
        yield Problem("spec", f"spec: {message}")
