"""The rules of a component: alone, over several nodes, and against its previous state."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from itertools import chain
from typing import Final, TypeAlias

import msgspec

from dynamo_operator import labels
from dynamo_operator.component.api import (
    MAX_GROUPS,
    ComponentSpec,
    DisruptionBudget,
    DynamoComponentDeployment,
    DynamoComponentDeploymentSpec,
    IngressSpec,
    Resources,
    ingress_host,
)
from dynamo_operator.component.framework import GPU, framework, gpus
from dynamo_operator.component.validate_experimental import (
    experimental_problems,
    experimental_update_problems,
)
from dynamo_operator.component.validate_pod import (
    ENVIRONMENT,
    POD,
    PROBE,
    Shape,
    account_problems,
    environment_problems,
    pod_problems,
    probe_problems,
    shape_problems,
    volume_problems,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from dynamo_operator.shared.problems import (
    MOST_PROBLEMS,
    MOST_REPLICAS,
    Problem,
    ProblemKind,
    component_path,
    first_problems,
    is_label_value,
    is_qualified_name,
    is_subdomain,
    key_problems,
    name_problems,
    nearest,
    not_a_label_value,
    quantity_problems,
)
from kube_runtime.crd import INT_OR_PERCENT_PATTERN
from kube_runtime.types.meta import Fields, Resource, amount

EPP: Final = "epp"
"""The type of an endpoint picker."""

MAX_NODES = 1000
"""Most nodes of a replica: command lines name each of them."""

MAX_GROUPS_BYTES = 128 * 1024 * 1024
"""Most bytes of the pod templates of all groups, which etcd stores and the operator caches."""

_TEMPLATES = 2
"""Pod templates of one group: the leader's and the workers'."""

WITH_COMMAND = ("frontend", "epp")
"""Component types that start without a command and arguments of the user."""


# The operator wraps the user's command in a multinode launch, and guesses nothing: the number of
# processes, the SSH keys and the command must be set.
def multinode_problems(
    spec: ComponentSpec, path: str, framework: str, settings: RenderSettings
) -> Iterator[Problem]:
    """Problems of a component that spans several nodes, whose spec is at `path`."""
    if spec.nodes > MAX_NODES:
        message = f"a component spans at most {MAX_NODES} nodes"
        yield Problem(f"{path}.multinode.nodeCount", message)
    if spec.replicas is not None and spec.replicas > MAX_GROUPS:
        message = f"a multinode component has at most {MAX_GROUPS} replicas"
        yield Problem(f"{path}.replicas", message)
    replicas = min(spec.replicas or 0, MAX_GROUPS)
    size = len(msgspec.json.encode(spec)) * _TEMPLATES if replicas > 1 else 0
    if size * replicas > MAX_GROUPS_BYTES:
        message = (
            f"{replicas} multinode replicas with templates of {size} bytes take {size * replicas} "
            f"bytes (limit {MAX_GROUPS_BYTES}): move large values into a ConfigMap"
        )
        yield Problem(f"{path}.replicas", message)
    main: Fields = (spec.extra_pod_spec or {}).get("mainContainer") or {}
    command: Sequence[str] = main.get("command") or ()
    has_program = bool(command) or spec.component_type in WITH_COMMAND
    # A shell expects a script in args; any other program may start without arguments.
    is_shell = len(command) > 1 and command[-1].startswith("-") and command[-1].endswith("c")
    if not main.get("args") and (is_shell or not has_program):
        message = "missing command: a multinode component has no default"
        yield Problem(f"{path}.extraPodSpec.mainContainer.args", message, ProblemKind.REQUIRED)
    if framework != "trtllm":
        return
    if not gpus(spec):
        message = "missing GPUs: multinode TensorRT-LLM starts one process per GPU"
        yield Problem(f"{path}.resources.limits.gpu", message, ProblemKind.REQUIRED)
    if not settings.mpi_secret_name:
        message = (
            "multinode TensorRT-LLM requires SSH keys, but the operator's setting "
            "--mpi-run-ssh-secret-name is empty"
        )
        yield Problem(f"{path}.multinode.nodeCount", message, ProblemKind.NOT_SUPPORTED)


def lacks_orchestrator(spec: ComponentSpec, facts: Facts) -> bool:
    """Whether the component spans several nodes and the cluster has no orchestrator for that.

    Not a user's mistake: installing LeaderWorkerSet and Volcano resolves it.
    """
    return spec.nodes > 1 and not facts.lws_served


_BACKENDS = ("etcd", "kubernetes")
_RECREATE = "Recreate"
_STRATEGIES = (_RECREATE, "RollingUpdate")
_NUMBER_OR_PERCENT = re.compile(r"(?P<number>\d{1,9})(?P<percent>%)?", re.ASCII)


def metadata_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Problems of a component's labels and annotations."""
    yield from key_problems(spec.labels, spec.annotations, path)
    yield from discovery_problems(spec.annotations, f"{path}.annotations")
    extra = spec.extra_pod_metadata
    if extra is not None:
        yield from key_problems(extra.labels, extra.annotations, f"{path}.extraPodMetadata")
    if spec.annotations.get(labels.STRATEGY) != _RECREATE:  # which uses no bounds
        yield from _update_problems(spec.annotations, extra.annotations if extra else {}, path)


def discovery_problems(annotations: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Report an unknown discovery backend."""
    value = annotations.get(labels.DISCOVERY_BACKEND)
    if value is not None and value not in _BACKENDS:
        expected = f"etcd or kubernetes{nearest(value, _BACKENDS)}"
        message = f'unknown discovery backend "{value}" (expected {expected})'
        yield Problem(f"{path}[{labels.DISCOVERY_BACKEND}]", message, ProblemKind.NOT_SUPPORTED)


def update_warnings(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Warn of an unknown rollout strategy, and of annotations without effect on the chosen one."""
    strategy = spec.annotations.get(labels.STRATEGY)
    at = f"{path}.annotations[{labels.STRATEGY}]"
    if not strategy:
        return
    if strategy not in _STRATEGIES:
        expected = f"{' or '.join(_STRATEGIES)}{nearest(strategy, _STRATEGIES)}"
        yield Problem(at, f'unknown strategy "{strategy}", using RollingUpdate (expected {expected})')
    elif strategy == _RECREATE and spec.nodes > 1:
        yield Problem(at, "has no effect on a multinode component")
    elif strategy == _RECREATE:
        extra = spec.extra_pod_metadata.annotations if spec.extra_pod_metadata else {}
        places = (("annotations", spec.annotations), ("extraPodMetadata.annotations", extra))
        for place, given in places:
            for key in (labels.MAX_SURGE, labels.MAX_UNAVAILABLE):
                if key in given:
                    yield Problem(f"{path}.{place}[{key}]", "has no effect with Recreate")


def _update_problems(own: Mapping[str, str], extra: Mapping[str, str], path: str) -> Iterator[Problem]:
    """Problems of maxSurge and maxUnavailable; those of `extraPodMetadata` have precedence."""
    amounts = []
    for key in (labels.MAX_SURGE, labels.MAX_UNAVAILABLE):
        text = extra[key] if key in extra else own.get(key)
        place = "extraPodMetadata.annotations" if key in extra else "annotations"
        at = f"{path}.{place}[{key}]"
        match = _NUMBER_OR_PERCENT.fullmatch(text or "25%")
        if match is None:
            yield Problem(at, f'invalid bound "{text}" (expected a number or a percentage, for example 25%)')
            return
        number = int(match["number"])
        if key == labels.MAX_UNAVAILABLE and match["percent"] and number > 100:  # noqa: PLR2004
            yield Problem(at, "must not be more than 100%")
        amounts.append(number)
    if not any(amounts):
        at = f"{path}.annotations[{labels.MAX_UNAVAILABLE}]"
        yield Problem(at, "maxSurge and maxUnavailable must not both be 0: no pod could be replaced")


_LARGEST_BOUND = 2**31 - 1
_BOUND = re.compile(INT_OR_PERCENT_PATTERN, re.ASCII)


# The rules report all problems at once, and a component that passes renders without an exception. The
# API server has more rules, for pods above all; the status quotes what it refuses
# (`Obstacle.REJECTED`).
def component_problems(
    component: DynamoComponentDeployment, settings: RenderSettings, most: int = MOST_PROBLEMS
) -> tuple[Problem, ...]:
    """The problems of a component, sorted by path; no more than `most`."""
    own: Iterable[Problem] = spec_problems(component.spec, "spec", component.metadata.namespace, settings)
    owners = component.metadata.owner_references
    has_graph = any(owner.kind == DynamoGraphDeployment.KIND.name for owner in owners)
    if component.spec.component_type == EPP and not has_graph:
        text = "an endpoint picker must belong to a graph, which provides its pool and configuration"
        own = chain(own, [Problem("spec.componentType", text, ProblemKind.NOT_SUPPORTED)])
    return first_problems(own, most)


def spec_problems(
    spec: DynamoComponentDeploymentSpec, path: str, namespace: str, settings: RenderSettings
) -> Iterator[Problem]:
    """Problems of a component's spec, which is at `path`, in that namespace."""
    shapes: dict[str, tuple[object, Shape]] = {
        "extraPodSpec": (spec.extra_pod_spec, POD),
        "envs": (spec.envs, ENVIRONMENT),
        "livenessProbe": (spec.liveness_probe, PROBE),
        "readinessProbe": (spec.readiness_probe, PROBE),
    }
    wrong_types = [
        problem
        for field, (value, shape) in shapes.items()
        for problem in shape_problems(value, shape, f"{path}.{field}")
    ]
    yield from wrong_types
    if spec.replicas is not None and spec.replicas < 0:
        yield Problem(f"{path}.replicas", f"{component_path(path)}.replicas must be non-negative")
    elif spec.replicas is not None and spec.replicas > MOST_REPLICAS:
        yield Problem(f"{path}.replicas", f"must be between 0 and {MOST_REPLICAS}")
    if spec.model_ref is not None and not spec.model_ref.name:
        yield Problem(f"{path}.modelRef.name", "missing name", ProblemKind.REQUIRED)
    if spec.env_from_secret:
        yield from name_problems(spec.env_from_secret, f"{path}.envFromSecret", "a Secret")
    types = {"componentType": spec.component_type, "subComponentType": spec.sub_component_type}
    for field, value in types.items():
        if value and not is_label_value(value):
            yield Problem(f"{path}.{field}", not_a_label_value(value))
    if spec.disruption_budget is not None:
        at = f"{path}.disruptionBudget"
        yield from _disruption_problems(spec.disruption_budget, at, nodes=spec.nodes)
    if spec.component_type == EPP:
        yield from picker_problems(spec, path)
    if spec.labels or spec.annotations or spec.extra_pod_metadata:
        yield from metadata_problems(spec, path)
    if spec.ingress and spec.ingress.enabled:
        yield from _ingress_problems(spec.ingress, path)
    if not wrong_types:
        yield from _typed_problems(spec, path, namespace, settings)


def _typed_problems(
    spec: DynamoComponentDeploymentSpec, path: str, namespace: str, settings: RenderSettings
) -> Iterator[Problem]:
    """Problems of what is plain JSON in a component's spec, once its types are right."""
    pod = spec.extra_pod_spec or {}
    backend = framework(spec)
    if backend.problem:
        yield Problem(f"{path}.extraPodSpec.mainContainer.command", backend.problem)
    yield from pod_problems(spec, pod, f"{path}.extraPodSpec")
    yield from account_problems(spec, pod, namespace, f"{path}.extraPodSpec", settings)
    yield from volume_problems(spec, pod, path, backend.name)
    if spec.nodes > 1:
        yield from multinode_problems(spec, path, backend.name, settings)
    resources: Fields = (pod.get("mainContainer") or {}).get("resources") or {}
    at = f"{path}.extraPodSpec.mainContainer.resources"
    yield from resource_problems(resources, at, spec.resources, f"{path}.resources")
    declared = {claim.get("name") for claim in pod.get("resourceClaims") or ()}
    short = spec.resources.claims if spec.resources else ()
    for place, claims in ((f"{path}.resources", short), (at, resources.get("claims") or ())):
        for index, claim in enumerate(claims):
            name = claim.get("name")
            if not name or name not in declared:
                message = f'"{name or ""}" not found in extraPodSpec.resourceClaims'
                yield Problem(f"{place}.claims[{index}].name", message)
    if spec.envs:
        yield from environment_problems(spec.envs, f"{path}.envs")
    for field, probe in (("livenessProbe", spec.liveness_probe), ("readinessProbe", spec.readiness_probe)):
        if probe is not None:
            yield from probe_problems(probe, f"{path}.{field}")
    if spec.gpu_memory_service or spec.failover or spec.checkpoint or spec.frontend_sidecar:
        yield from experimental_problems(spec, path)


def _ingress_problems(ingress: IngressSpec, component: str) -> Iterator[Problem]:
    path = f"{component}.ingress"
    if not ingress.host:
        message = f"{component_path(component)}.ingress.host is required when ingress is enabled"
        yield Problem(f"{path}.host", message, ProblemKind.REQUIRED)
    else:
        yield from host_problems(ingress, f"{path}.host")
    if name := ingress.ingress_controller_class_name:
        yield from name_problems(name, f"{path}.ingressControllerClassName", "an IngressClass")
    if ingress.tls is not None and ingress.tls.secret_name:
        yield from name_problems(ingress.tls.secret_name, f"{path}.tls.secretName", "a Secret")
    if ingress.use_virtual_service and ingress.virtual_service_gateway:
        for name in ingress.virtual_service_gateway.split("/", 1):  # NAME, or NAMESPACE/NAME
            yield from name_problems(name, f"{path}.virtualServiceGateway", "a Gateway")
    yield from key_problems(ingress.labels, ingress.annotations, path)


def host_problems(ingress: IngressSpec, path: str) -> Iterator[Problem]:
    """Report a host that is invalid once prefix and suffix are added."""
    host = ingress_host(ingress)
    if not is_subdomain(host.removeprefix("*.")):
        yield Problem(path, f'invalid host name "{host}"')


def _disruption_problems(budget: DisruptionBudget, path: str, *, nodes: int) -> Iterator[Problem]:
    """Problems of the disruption budget of a component that spans that many nodes."""
    bounds = {"minAvailable": budget.min_available, "maxUnavailable": budget.max_unavailable}
    given = {field: bound for field, bound in bounds.items() if bound is not None}
    if len(given) > 1:
        message = "minAvailable and maxUnavailable must not both be set"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    for field, bound in given.items():
        if not _is_bound(bound):
            expected = "expected a number of pods or a percentage, for example 25%"
            yield Problem(f"{path}.{field}", f'invalid bound "{str(bound)[:60]}" ({expected})')
    if given and nodes > 1:
        message = "budgets apply to single-node components only; the pods of a multinode group are one unit"
        yield Problem(path, message, ProblemKind.FORBIDDEN)


def _is_bound(bound: int | str) -> bool:
    if isinstance(bound, str):
        if len(bound) > len(str(_LARGEST_BOUND)) or not _BOUND.fullmatch(bound):
            return False
        return bound.endswith("%") or int(bound) <= _LARGEST_BOUND
    return 0 <= bound <= _LARGEST_BOUND


_FRAMEWORK = "spec.backendFramework"
_WithFramework: TypeAlias = DynamoGraphDeployment | DynamoComponentDeployment


def framework_problems(old: _WithFramework, new: _WithFramework) -> Iterator[Problem]:
    """Refuse a change of the framework."""
    if (old.spec.backend_framework or "") != (new.spec.backend_framework or ""):
        message = f"{_FRAMEWORK} is immutable and cannot be changed after creation"
        yield Problem(_FRAMEWORK, message, ProblemKind.FORBIDDEN)


def component_update_problems(
    old: DynamoComponentDeployment, new: DynamoComponentDeployment
) -> Iterator[Problem]:
    """Refuse changes of a component's immutable fields."""
    yield from framework_problems(old, new)
    yield from experimental_update_problems(old.spec, new.spec, "spec", DynamoComponentDeployment.KIND.name)


def framework_warnings(old: _WithFramework, new: _WithFramework) -> Iterator[Problem]:
    """Warn what a refused change of the framework would break."""
    if any(framework_problems(old, new)):
        yield Problem(_FRAMEWORK, f"Changing {_FRAMEWORK} may cause unexpected behavior")


_PART_OF_A_GRAPH: Final = 8


def most_bytes(type_: type[Resource], settings: RenderSettings) -> int:
    """Most bytes of an object of that kind; 0 means no limit.

    A component may have an eighth more than a graph. The operator adds labels and owners to what the graph
    specifies, and a valid graph must not lead to a component that is too large.
    """
    most = settings.largest_object_bytes
    return most + most // _PART_OF_A_GRAPH if type_ is DynamoComponentDeployment else most


def picker_problems(spec: ComponentSpec, path: str) -> Iterator[Problem]:
    """Problems of an endpoint picker, whose spec is at `path`."""
    if spec.nodes > 1:
        message = (
            f"{component_path(path)}: EPP component cannot be multinode (multinode field must be nil or "
            "nodeCount must be 1)"
        )
        yield Problem(f"{path}.multinode.nodeCount", message, ProblemKind.FORBIDDEN)
    if spec.replicas not in (None, 1):
        message = f"EPP component must have exactly 1 replica (found {spec.replicas} replicas)"
        yield Problem(f"{path}.replicas", f"{component_path(path)}: {message}")
    path, words = f"{path}.eppConfig", f"{component_path(path)}.eppConfig"
    config = spec.epp_config
    if config is None:
        yield Problem(path, f"{words} is required for EPP components", ProblemKind.REQUIRED)
        return
    reference = config.config_map_ref
    if reference is None and config.config is None:
        message = (
            f"{words}: either configMapRef or config must be specified (no default configuration provided)"
        )
        yield Problem(path, message, ProblemKind.REQUIRED)
    if reference is None:
        return
    if config.config is not None:
        message = f"{words}: configMapRef and config are mutually exclusive, only one can be specified"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
    name, key = reference.get("name"), reference.get("key")
    at = f"{path}.configMapRef"
    if not name:
        yield Problem(f"{at}.name", f"{words}.configMapRef.name is required", ProblemKind.REQUIRED)
    elif not isinstance(name, str):
        yield Problem(f"{at}.name", "expected a string")
    else:
        yield from name_problems(name, f"{at}.name", "a ConfigMap")
    if key is not None and not isinstance(key, str):
        yield Problem(f"{at}.key", "expected a string")


_NATIVE = frozenset(("cpu", "memory", "ephemeral-storage"))
_KNOWN_RESOURCES = _NATIVE | {GPU}


def resource_problems(
    container: Fields, container_path: str, component: Resources | None, path: str
) -> Iterator[Problem]:
    """Problems of the container's resources, with the component's short form merged over them."""
    short = component or Resources()
    sides = (("requests", short.requests, short.limits), ("limits", short.limits, short.requests))
    amounts: dict[str, dict[str, tuple[str, Decimal]]] = {"requests": {}, "limits": {}}
    for side, item, other in sides:
        written = {
            name: (f"{container_path}.{side}[{name}]", value)
            for name, value in (container.get(side) or {}).items()
            if value is not None
        }
        if item is not None:
            gpu = item.gpu_type or (other.gpu_type if other else None) or GPU
            fields = {"cpu": ("cpu", item.cpu), "memory": ("memory", item.memory)}
            fields |= {gpu: ("gpu", item.gpu)}
            fields |= {name: (f"custom[{name}]", value) for name, value in item.custom.items()}
            written |= {
                name: (f"{path}.{side}.{field}", value) for name, (field, value) in fields.items() if value
            }
        for name, (at, value) in written.items():
            is_extended = name.startswith("hugepages-") or "/" in name
            if name not in _KNOWN_RESOURCES and not (is_extended and is_qualified_name(name)):
                message = (
                    f'unknown resource "{name}" (expected cpu, memory, ephemeral-storage, '
                    "hugepages-<size> or a name with a domain such as nvidia.com/gpu)"
                )
                yield Problem(at, message, ProblemKind.NOT_SUPPORTED)
            problems = list(quantity_problems(value, at))
            yield from problems
            number = amount(value) if isinstance(value, str | int) else None
            if number is None:
                continue
            amounts[side][name] = (at, number)
            if not problems and "/" in name and number != number.to_integral_value():
                yield Problem(at, f'invalid quantity "{value}" of {name} (expected a whole number)')
    requests, limits = amounts["requests"], amounts["limits"]
    for name in sorted(requests.keys() & limits.keys()):
        (at, request), (_, limit) = requests[name], limits[name]
        if name not in _NATIVE and "kubernetes.io/" not in name and request != limit:
            message = f"request and limit of {name} must be equal, because it cannot be overcommitted"
            yield Problem(at, message)
        elif request > limit:
            yield Problem(at, f"the request of {name} must not exceed its limit")
