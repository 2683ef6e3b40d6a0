"""The rules of a graph: of a component for each service, of all services together, and of its changes.

Examples of each rule, and of each change that is refused, are rows of `tests/reviews/rows.py`.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Final

import msgspec

from dynamo_operator import labels, names
from dynamo_operator.component import framework
from dynamo_operator.component.api import (
    MAX_GROUPS,
    WORKER_TYPES,
    DynamoComponentDeploymentSpec,
    IngressSpec,
    has_adapter,
    is_under_factor,
)
from dynamo_operator.component.objects import HANDLERS
from dynamo_operator.component.service import IN_SERVICE, base_replicas, most_replicas
from dynamo_operator.component.validate import (
    EPP,
    WITH_COMMAND,
    discovery_problems,
    framework_problems,
    host_problems,
    spec_problems,
)
from dynamo_operator.component.validate_experimental import experimental_update_problems
from dynamo_operator.component.validate_pod import shared_environment_problems
from dynamo_operator.features.history import MAX_HISTORY_LIMIT, parsed_history_limit
from dynamo_operator.features.picker import graph_picker_problems
from dynamo_operator.features.rollouts.revisions import MODES
from dynamo_operator.graph.api import (
    MOST_SERVICES,
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    PersistentVolumeClaimSpec,
    Restart,
    grove_names_of,
)
from dynamo_operator.graph.validate_grove import topology_problems, topology_update_problems
from dynamo_operator.names import is_on_grove
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.inert import inert_warnings
from dynamo_operator.shared.problems import (
    MOST_PROBLEMS,
    Problem,
    ProblemKind,
    Suggestions,
    first_problems,
    is_label_value,
    is_subdomain,
    key_problems,
    name_problems,
    nearest,
    not_a_label_value,
    quantity_problems,
    service_path,
    shown,
)
from kube_runtime.types.meta import Fields, Object, amount

_LONGEST_ORDER: Final = 100
"""Four times the most services that a graph may have."""

_ORDER: Final = "spec.restart.strategy.order"


# Once a graph passes, names are few and short: other rules may compare them, and repeat them in messages.
def graph_size_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Report a graph with too many services or too long names."""
    if len(graph.metadata.name) > names.SUBDOMAIN_LIMIT:
        yield Problem("metadata.name", _too_long("a name"))
    services = graph.spec.services
    if len(services) > MOST_SERVICES:
        yield Problem("spec.services", f"must have at most {MOST_SERVICES} services, got {len(services)}")
    elif any(len(name) > names.SUBDOMAIN_LIMIT for name in services):
        yield Problem("spec.services", _too_long("the name of a service"))
    strategy = graph.spec.restart.strategy if graph.spec.restart else None
    order = strategy.order if strategy else ()
    if len(order) > _LONGEST_ORDER:
        text = f"too many entries: {len(order)} (expected one for each of {len(services)} services)"
        yield Problem(_ORDER, text)
    elif any(len(name) > names.SUBDOMAIN_LIMIT for name in order):
        yield Problem(_ORDER, _too_long("the name of a service"))


def _too_long(subject: str) -> str:
    return f"{subject} must have at most {names.SUBDOMAIN_LIMIT} characters"


_COPIES: Final = 4
"""Of the largest object: what the copies of its variables may add to the work of rendering it."""


def shared_size_problems(
    variables: Sequence[Object], services: int, settings: RenderSettings
) -> Iterator[Problem]:
    """Report shared variables that are too large together, as each component has a copy of them."""
    most = _COPIES * settings.largest_object_bytes
    size = len(msgspec.json.encode(variables))
    if variables and most and size * services > most:
        total = f"{size} bytes in each of {services} services, {size * services} in total"
        yield Problem("spec.envs", f"variables are too large: {total} (limit {most})")


def graph_problems(
    graph: DynamoGraphDeployment, settings: RenderSettings, most: int = MOST_PROBLEMS
) -> tuple[Problem, ...]:
    """At most `most` problems of a graph, sorted by path; one that is too large is not validated further."""
    spec = graph.spec
    shared = shared_size_problems(spec.envs, len(spec.services), settings) if spec.envs else ()
    too_large = (*sorted(graph_size_problems(graph)), *shared)
    return too_large or first_problems(_problems(graph, settings), most)


def _problems(graph: DynamoGraphDeployment, settings: RenderSettings) -> Iterator[Problem]:
    spec = graph.spec
    if not spec.services:
        text = "spec.services must have at least one service"
        yield Problem("spec.services", text, ProblemKind.REQUIRED)
    if graph.metadata.annotations:
        yield from _annotation_problems(graph.metadata.annotations)
    if spec.labels or spec.annotations:
        yield from _metadata_problems(spec)
    if spec.envs:
        yield from shared_environment_problems(spec.envs, "spec.envs")
    if spec.pvcs:
        yield from _pvc_problems(spec.pvcs)
    if spec.priority_class_name:
        yield from name_problems(spec.priority_class_name, "spec.priorityClassName", "a PriorityClass")
    if spec.replicas is not None:
        yield from _factor_problems(graph, spec.replicas)
    if spec.restart is not None:
        yield from _restart_problems(spec.restart, sorted(spec.services))
    yield from _name_problems(graph)
    pickers = sorted(key for key, one in spec.services.items() if one.component_type == EPP)
    if pickers:
        yield from graph_picker_problems(pickers, settings)
    if is_on_grove(graph):
        yield from _grove_problems(graph)
    uses_topology = any(one.topology_constraint or one.gpu_memory_service for one in spec.services.values())
    if uses_topology or spec.topology_constraint or spec.experimental:
        yield from topology_problems(graph)
    is_exposed = settings.ingress_class_name or settings.virtual_service_gateway
    for key, service in sorted(spec.services.items()):
        path = service_path(key)
        component = framework.as_component(graph, service)
        yield from spec_problems(component, path, graph.metadata.namespace, settings)
        if is_exposed and service.component_type == "frontend" and service.ingress is None:
            # The host of the default Ingress has the graph's name, which may be too long.
            suffix = settings.ingress_host_suffix
            default = IngressSpec(host=graph.metadata.name, host_suffix=suffix)
            yield from host_problems(default, f"{path}.ingress.host")


_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def _pvc_problems(claims: Sequence[PersistentVolumeClaimSpec]) -> Iterator[Problem]:
    seen = set[str]()
    for index, claim in enumerate(claims):
        path = f"spec.pvcs[{index}]"
        if not claim.name:
            yield Problem(f"{path}.name", f"{path}.name is required", ProblemKind.REQUIRED)
        elif not is_subdomain(claim.name):
            yield Problem(f"{path}.name", f'invalid PVC name "{claim.name}"')
        elif claim.name in seen:
            yield Problem(f"{path}.name", f'duplicate PVC "{claim.name}"', ProblemKind.DUPLICATE)
        seen.add(claim.name)
        if claim.create:
            yield from _new_pvc_problems(claim, path)


def _new_pvc_problems(claim: PersistentVolumeClaimSpec, path: str) -> Iterator[Problem]:
    given = {
        "storageClass": claim.storage_class,
        "size": claim.size if claim.size is None or amount(claim.size) != 0 else None,
        "volumeAccessMode": claim.volume_access_mode,
    }
    for field, value in given.items():
        if not value:
            message = f"{path}.{field} is required when create is true"
            yield Problem(f"{path}.{field}", message, ProblemKind.REQUIRED)
    if claim.storage_class:
        yield from name_problems(claim.storage_class, f"{path}.storageClass", "a StorageClass")
    mode = claim.volume_access_mode
    if mode and mode not in _ACCESS_MODES:
        message = f'unknown access mode "{mode}" (expected one of {", ".join(_ACCESS_MODES)})'
        yield Problem(f"{path}.volumeAccessMode", message, ProblemKind.NOT_SUPPORTED)
    if given["size"]:
        yield from quantity_problems(given["size"], f"{path}.size")


# Autoscalers write `spec.replicas` through the scale subresource, which webhooks do not see.
def _factor_problems(graph: DynamoGraphDeployment, factor: int) -> Iterator[Problem]:
    for key, service in sorted(graph.spec.services.items()):
        if not is_under_factor(service):
            continue
        replicas = base_replicas(graph, key) * factor
        if replicas > (most := most_replicas(service)):
            message = f"{factor} times the replicas of {key} is {replicas} (limit {most})"
            yield Problem("spec.replicas", message)


def _restart_problems(restart: Restart, services: list[str]) -> Iterator[Problem]:
    if not restart.id:
        yield Problem("spec.restart.id", "spec.restart.id is required", ProblemKind.REQUIRED)
    strategy = restart.strategy
    if strategy is None or not strategy.order:
        return
    if strategy.type == "Parallel":
        message = f"{_ORDER} cannot be specified when strategy is parallel"
        yield Problem(_ORDER, message, ProblemKind.FORBIDDEN)
        return
    seen, suggestions = set[str](), Suggestions()
    for index, name in enumerate(strategy.order):
        if name not in services:
            message = f"{_ORDER} contains unknown service: {name}{suggestions.nearest(name, services)}"
            yield Problem(f"{_ORDER}[{index}]", message)
        elif name in seen:
            yield Problem(f"{_ORDER}[{index}]", f"{_ORDER} must be unique", ProblemKind.DUPLICATE)
        seen.add(name)
    if missing := [name for name in services if name not in seen]:
        message = f"{_ORDER} must have the same number of unique services as the deployment; missing: "
        yield Problem(_ORDER, message + ", ".join(missing))


# Valid services may still collide, because the names of their objects are derived: lower-cased, cleaned,
# with suffixes for debug copies. So the rule compares the names of all objects.
def _name_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    users: dict[str, list[str]] = defaultdict(list)
    for key, service in sorted(graph.spec.services.items()):
        if not IN_SERVICE.search(key):
            text = "invalid service name (expected at least one letter or digit)"
            yield Problem(service_path(key), text)
            continue
        component = names.component_name(graph.metadata.name, key)
        taken = {component}
        if service.annotations.get(labels.STEALING_DEBUG_MODE) == "true":
            taken |= {names.service_name(component, suffix) for suffix in ("-d", "-p")}
        if service.nodes > 1 and not is_on_grove(graph):
            replicas = min(base_replicas(graph, key), MAX_GROUPS)
            taken |= {names.group_name(component, index) for index in range(replicas)}
        for name in taken:
            users[name].append(key)
    reported: set[tuple[str, str]] = set()
    for name, keys in sorted(users.items()):
        for pair in ((keys[0], key) for key in keys[1:]):
            if pair not in reported:
                message = f'"{pair[0]}" and "{pair[1]}" would both create objects named "{name}"'
                yield Problem(service_path(pair[1]), message, ProblemKind.DUPLICATE)
            reported.add(pair)


def _grove_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    queue = graph.metadata.annotations.get(labels.KAI_QUEUE, "").strip()
    if not is_label_value(queue):
        yield Problem(f"metadata.annotations[{labels.KAI_QUEUE}]", not_a_label_value(queue))
    # A multinode service has a clique for its leader, which may have the name of another's.
    users: dict[str, str] = {}
    for key, name in sorted(grove_names_of(graph).services.items()):
        is_multinode = graph.spec.services[key].nodes > 1
        for suffix in (names.LEADER_SUFFIX, names.WORKER_SUFFIX) if is_multinode else ("",):
            user = users.setdefault(f"{name}{suffix}", key)
            if user != key:
                message = f'"{user}" and "{key}" would both create a clique "{name}{suffix}"'
                yield Problem(service_path(key), message, ProblemKind.DUPLICATE)


_PORTS: Final = {"frontend": "http"} | dict.fromkeys(WORKER_TYPES, "system")
_NUMBERS: Final = {"http": 8000, "system": 9090}
_PLANNERS: Final = frozenset(("dynamo.global_planner", "dynamo.planner", "planner_sla"))
_FLAGGED: Final = frozenset(("vllm", "sglang"))
"""Frameworks whose multinode launch consists of flags in the user's arguments."""


# The Go operator accepts such settings, so these are warnings. Each rule reports only what never works,
# because the warning stays in the status for as long as the spec has the cause (`graph/status.py`).
def graph_inoperative(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Warnings of a graph and all of its services."""
    yield from inert_warnings(graph.spec, "spec")
    for key, service in sorted(graph.spec.services.items()):
        yield from inoperative(framework.as_component(graph, service), service_path(key))
    for index, claim in enumerate(graph.spec.pvcs):
        fields = {
            "storageClass": claim.storage_class,
            "size": claim.size,
            "volumeAccessMode": claim.volume_access_mode,
            "retain": claim.retain,
        }
        for name in (name for name, value in fields.items() if value and not claim.create):
            yield Problem(f"spec.pvcs[{index}].{name}", "has no effect without create: true")
    on_grove = is_on_grove(graph)
    of_grove: dict[str, object] = {
        "spec.priorityClassName": graph.spec.priority_class_name or None,
        "spec.topologyConstraint": graph.spec.topology_constraint,
    }
    for key, service in sorted(graph.spec.services.items()):
        path = service_path(key)
        of_grove[f"{path}.minAvailable"] = service.min_available
        of_grove[f"{path}.topologyConstraint"] = service.topology_constraint
        if service.service_name and service.service_name != key:
            message = f'has no effect: the name of a service is its key, "{key}"'
            yield Problem(f"{path}.serviceName", message)
        if on_grove and service.disruption_budget:
            message = "has no effect on Grove: budgets are for components that run as a Deployment"
            yield Problem(f"{path}.disruptionBudget", message)
        is_hidden = on_grove and service.component_type != "frontend"
        if is_hidden and service.ingress and service.ingress.enabled:
            yield Problem(f"{path}.ingress", "has no effect on Grove: only frontends are exposed")
    for path, value in of_grove.items():
        if value is not None and not on_grove:
            yield Problem(path, "has an effect on Grove only")


def inoperative(spec: DynamoComponentDeploymentSpec, path: str) -> Iterator[Problem]:
    """Warnings of one component, whose spec is at `path` and has no problems."""
    written: Fields = (spec.extra_pod_spec or {}).get("mainContainer") or {}
    at = f"{path}.extraPodSpec.mainContainer"
    name = framework.framework(spec).name
    main = framework.started(spec.component_type, name, written)
    yield from inert_warnings(spec, path)
    yield from _command_warnings(spec, main, at)
    if main.get("ports"):
        yield from _port_warnings(spec, main, at)
    text = " ".join(map(str, (*(main.get("command") or ()), *(main.get("args") or ()))))
    programs = {program for option, program in pairwise(text.split()) if option == "-m"}
    has_account = (spec.extra_pod_spec or {}).get("serviceAccountName")
    if spec.component_type != "planner" and not has_account and programs & _PLANNERS:
        message = (
            'only a service with componentType "planner" gets the ServiceAccount that may scale '
            "graphs (set componentType, or serviceAccountName)"
        )
        yield Problem(f"{at}.args", message)
    entries = (*(main.get("env") or ()), *spec.envs)
    variables = {str(entry.get("name")): entry.get("value") for entry in entries}
    loads_loras = str(variables.get(framework.LORA_VARIABLE)).lower() == "true"
    is_known = "--config" not in text and "$" not in text
    if name == "vllm" and loads_loras and is_known and framework.LORA_FLAG not in text.replace("_", "-"):
        message = f"vLLM has no API for LoRAs without {framework.LORA_FLAG} (add it to args)"
        yield Problem(f"{at}.args", f"{framework.LORA_VARIABLE} is true, but {message}")
    if spec.nodes > 1:
        yield from _multinode_warnings(spec, name, main, path)
    if spec.model_ref and spec.model_ref.revision:
        yield Problem(f"{path}.modelRef.revision", "has no effect: nothing reads it")
    if spec.epp_config and spec.component_type != "epp":
        yield Problem(f"{path}.eppConfig", "has no effect without componentType: epp")
    if spec.shared_memory and spec.shared_memory.disabled and spec.shared_memory.size is not None:
        yield Problem(f"{path}.sharedMemory.size", "has no effect with disabled: true")
    sides = (spec.resources.requests, spec.resources.limits) if spec.resources else ()
    if any(side and side.gpu_type for side in sides) and not any(side and side.gpu for side in sides):
        yield Problem(f"{path}.resources", "gpuType has no effect without gpu")
    if spec.ingress and spec.ingress.enabled:
        yield from _ingress_warnings(spec.ingress, f"{path}.ingress")


def _command_warnings(spec: DynamoComponentDeploymentSpec, main: Fields, path: str) -> Iterator[Problem]:
    command, args = list(main.get("command") or ()), list(main.get("args") or ())
    has_own = spec.component_type in WITH_COMMAND
    runs_shell = framework.is_shell(command) or not (command or has_own)
    shell = " ".join(command) or "/bin/sh -c"
    if runs_shell and not args:
        missing = "no arguments" if command else "neither command nor args"
        message = f'{missing}: the container runs "{shell}" without a script and exits at once'
        yield Problem(f"{path}.args", f"{message} (expected a command, or a script in args)")
    elif runs_shell and framework.has_only_flags(args):
        message = f'"{shell}" cannot run the flag {shown(args[0])} as a script: set command'
        is_named = spec.component_type not in WORKER_TYPES or bool(command)
        hint = "" if is_named else ", or backendFramework to start its engine"
        yield Problem(f"{path}.args", f'{message}, for example ["python3", "-m", "dynamo.vllm"]{hint}')
    elif not command and spec.component_type == "frontend" and args and _is_no_file(args[0]):
        message = f'args replace "-m dynamo.frontend", and python3 finds no file {shown(args[0])}'
        yield Problem(f"{path}.args", f'{message} (expected "-m", "dynamo.frontend" first, or flags)')
    elif len(command) == 1 and framework.is_python(command[0]) and framework.has_only_flags(args):
        message = f'{command[0]} does not accept the flag {shown(args[0])}: put "-m" and the module first'
        yield Problem(f"{path}.args", message)
    elif command and not runs_shell and framework.is_python(command[0]) and spec.nodes == 1:
        for index, arg in enumerate(args):  # which no shell splits
            if framework.several_flags(arg):
                message = (
                    f"{shown(arg)} is one argument: the program receives all of it as one flag "
                    "(expected one argument per word)"
                )
                yield Problem(f"{path}.args[{index}]", message)


def _is_no_file(text: str) -> bool:
    return not text.startswith("-") and (" " in text or not ("/" in text or "." in text))


def _port_warnings(spec: DynamoComponentDeploymentSpec, main: Fields, path: str) -> Iterator[Problem]:
    name = _PORTS.get(spec.component_type or "")
    ports = main.get("ports") or ()
    if not name or not ports or any(port.get("name") == name for port in ports):
        return
    if name == "system" and _has_own_probes(spec, main):
        return  # its Service then has no port, but no client uses it
    message = f'missing port "{name}", which the default probes and the Service use'
    entry = f'{{"name": "{name}", "containerPort": {_NUMBERS[name]}}}'
    yield Problem(f"{path}.ports", f"{message} (add {entry})")


def _has_own_probes(spec: DynamoComponentDeploymentSpec, main: Fields) -> bool:
    whole = {"livenessProbe": spec.liveness_probe, "readinessProbe": spec.readiness_probe}
    return all(
        whole.get(probe) is not None
        or any((main.get(probe) or {}).get(handler) is not None for handler in HANDLERS)
        for probe in ("livenessProbe", "readinessProbe", "startupProbe")
    )


def _multinode_warnings(
    spec: DynamoComponentDeploymentSpec, name: str, main: Fields, path: str
) -> Iterator[Problem]:
    command, gpus = list(main.get("command") or ()), framework.gpus(spec)
    at = f"{path}.extraPodSpec.mainContainer"
    if name in _FLAGGED and len(command) > 2 and framework.is_shell(command[:2]):  # noqa: PLR2004  # a script
        message = "the operator appends the flags of a multinode launch to args"
        yield Problem(f"{at}.command", f"{message}: move the script from command to args")
    elif name == "vllm" and framework.mode(gpus, framework.parallelism(main)) is framework.Mode.ALONE:
        message = (
            f"each of the {spec.nodes} nodes runs a separate server: no parallel size exceeds the "
            f"{gpus} GPUs of a node (expected --tensor-parallel-size, "
            "--pipeline-parallel-size or --data-parallel-size)"
        )
        yield Problem(f"{at}.args", message)


def _ingress_warnings(ingress: IngressSpec, path: str) -> Iterator[Problem]:
    if ingress.use_virtual_service and not ingress.virtual_service_gateway:
        # Without gateways a VirtualService would apply to the whole mesh, so none is created.
        message = (
            "no VirtualService is created without a gateway: the operator's default gateway is for frontends "
            'that have no ingress of their own (expected a name, for example "istio-system/public")'
        )
        yield Problem(f"{path}.virtualServiceGateway", message)
    if not (ingress.ingress_controller_class_name or ingress.use_virtual_service):
        message = (
            "no Ingress is created without a class: the operator's default class applies only to "
            "frontends without an ingress of their own"
        )
        yield Problem(f"{path}.ingressControllerClassName", message)
    host = ingress.host or ""
    if "." in host and not ingress.host_suffix:
        first, _, rest = host.partition(".")
        message = (
            f'the host is "{ingress.host_prefix or ""}{host}.local", because "local" is appended '
            f"without hostSuffix (expected, for example, host: {first} and hostSuffix: {rest})"
        )
        yield Problem(f"{path}.host", message)
    if ingress.virtual_service_gateway and not ingress.use_virtual_service:
        yield Problem(f"{path}.virtualServiceGateway", "has no effect without useVirtualService: true")
    if ingress.tls and ingress.use_virtual_service and not ingress.ingress_controller_class_name:
        message = "has no effect on a VirtualService: the certificate belongs to its gateway"
        yield Problem(f"{path}.tls", message)


_RESERVED = frozenset(key for key in labels.LABELS if not key.startswith("app.kubernetes.io/"))
"""Labels by which the operator selects, or that identify its objects. Kubernetes' common labels are free."""


# `spec.labels` and `spec.annotations` of a graph refuse reserved keys. Those of a service are
# older, and old manifests must stay valid: there the operator's values take precedence.
def _metadata_problems(graph: DynamoGraphDeploymentSpec) -> Iterator[Problem]:
    yield from key_problems(graph.labels, graph.annotations, "spec")
    fields = {"labels": (graph.labels, _RESERVED), "annotations": (graph.annotations, labels.ANNOTATIONS)}
    for field, (given, reserved) in fields.items():
        for key in sorted(reserved & given.keys()):
            keys = ", ".join(sorted(reserved))
            message = f"reserved: the operator sets or reads it (reserved keys: {keys})"
            yield Problem(f"spec.{field}[{key}]", message, ProblemKind.FORBIDDEN)


def _annotation_problems(annotations: Mapping[str, str]) -> Iterator[Problem]:
    path = "metadata.annotations"
    if labels.DISCOVERY_BACKEND in annotations:
        yield from discovery_problems(annotations, path)
    mode = annotations.get(labels.WORKER_ROLLOUT)
    if mode is not None and mode not in MODES:
        message = f'unknown rollout mode "{mode}" (expected managed or native{nearest(mode, MODES)})'
        yield Problem(f"{path}[{labels.WORKER_ROLLOUT}]", message, ProblemKind.NOT_SUPPORTED)
    limit = annotations.get(labels.REVISION_HISTORY_LIMIT)
    if limit is not None and parsed_history_limit(limit) is None:
        message = f'invalid number "{limit}" (expected 0 to {MAX_HISTORY_LIMIT}, for example "10")'
        yield Problem(f"{path}[{labels.REVISION_HISTORY_LIMIT}]", message, ProblemKind.NOT_SUPPORTED)
    for key in (labels.PAUSED, labels.SUSPEND):
        value = annotations.get(key)
        if value not in (None, "true", "false"):
            message = f'invalid value "{value}" (expected true or false)'
            yield Problem(f"{path}[{key}]", message, ProblemKind.NOT_SUPPORTED)


ROLLING = ("Pending", "InProgress")


def may_scale(user: str, namespace: str, operator: str) -> bool:
    """Whether that user may change replicas that a scaling adapter owns.

    Only the operator may, under the user name that the API server knows it by, and the planner of the same
    namespace. An empty `operator` is unknown and matches no user.
    """
    planner = f"system:serviceaccount:{namespace}:{names.PLANNER_SERVICE_ACCOUNT}"
    return bool(user) and user in (operator, planner)


def graph_update_problems(old: DynamoGraphDeployment, new: DynamoGraphDeployment) -> Iterator[Problem]:
    """Refuse changes of immutable fields by any user."""
    yield from framework_problems(old, new)
    before, after = old.spec.services, new.spec.services
    for key in sorted(before.keys() & after.keys()):
        if (before[key].nodes > 1) != (after[key].nodes > 1):
            message = (
                f"spec.services[{key}] cannot change node topology (between single-node and "
                "multi-node) after creation"
            )
            yield Problem(f"{service_path(key)}.multinode", message, ProblemKind.FORBIDDEN)
        kind = DynamoGraphDeployment.KIND.name
        yield from experimental_update_problems(before[key], after[key], service_path(key), kind)
    yield from topology_update_problems(old, new)
    changes = {"added": after.keys() - before.keys(), "removed": before.keys() - after.keys()}
    texts = [f"services {verb}: [{' '.join(sorted(keys))}]" for verb, keys in changes.items() if keys]
    if texts:
        message = f"service topology is immutable and cannot be modified after creation: {', '.join(texts)}"
        yield Problem("spec.services", message, ProblemKind.FORBIDDEN)
    # A managed rollout in progress replaces the same pods as a restart.
    rolling = old.status.rolling_update
    restarts = [graph.spec.restart.id if graph.spec.restart else "" for graph in (old, new)]
    if restarts[1] not in ("", restarts[0]) and rolling is not None and rolling.phase in ROLLING:
        message = (
            "spec.restart.id cannot be changed while a rolling update is in progress "
            f"(status.rollingUpdate.phase is {rolling.phase}); wait until it is Completed"
        )
        yield Problem("spec.restart.id", message, ProblemKind.FORBIDDEN)


# The replicas of a service with a scaling adapter belong to the adapter, yet users apply the whole
# graph again and again. A manifest without replicas is fine. One with another number than the
# current would revert the autoscaler, so it is refused, and the message says what to do instead.
def adapter_problems(old: DynamoGraphDeployment, new: DynamoGraphDeployment) -> Iterator[Problem]:
    """Refuse changes of replicas that a scaling adapter owns; `may_scale` names the exceptions."""
    for key, service in sorted(new.spec.services.items()):
        if key not in old.spec.services or not has_adapter(service):
            continue
        if service.replicas in (None, base_replicas(old, key)):
            continue
        adapter = names.component_name(new.metadata.name, key)
        message = (
            f"spec.services[{key}].replicas cannot be modified directly when scaling adapter is "
            "enabled; scale or update the related DynamoGraphDeploymentScalingAdapter instead: "
            f"kubectl scale dgdsa/{adapter} -n {new.metadata.namespace} "
            f"--replicas={service.replicas}, or leave replicas out of the manifest"
        )
        yield Problem(f"{service_path(key)}.replicas", message, ProblemKind.FORBIDDEN)
