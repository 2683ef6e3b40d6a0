"""The rules of a graph: those of a component for each service, and those of all services together.

Valid services may still collide, because the names of their objects are derived: lower-cased, cleaned, with
suffixes for debug copies. So the rules compare the names of all objects.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec

from dynamo_operator import labels, names
from dynamo_operator.component.api import MAX_GROUPS, IngressSpec, is_under_factor
from dynamo_operator.component.framework import as_component
from dynamo_operator.component.validate import (
    graph_annotation_problems,
    graph_metadata_problems,
    host_problems,
    spec_problems,
)
from dynamo_operator.component.validate_pod import quantity_problems, shared_environment_problems
from dynamo_operator.features.picker import TYPE as PICKER
from dynamo_operator.features.picker import graph_picker_problems
from dynamo_operator.graph.api import (
    MOST_SERVICES,
    DynamoGraphDeployment,
    PersistentVolumeClaimSpec,
    Restart,
    grove_names_of,
)
from dynamo_operator.graph.replicas import base_replicas
from dynamo_operator.names import LEADER_SUFFIX, SUBDOMAIN_LIMIT, WORKER_SUFFIX, is_on_grove
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.problems import (
    MOST_PROBLEMS,
    MOST_REPLICAS,
    Problem,
    ProblemKind,
    Suggestions,
    first_problems,
    is_label_value,
    is_subdomain,
    name_problems,
    not_a_label_value,
    service_path,
)
from kube_runtime.kind import Object
from kube_runtime.quantity import amount

_LONGEST_ORDER: Final = 100
"""Four times the most services that a graph may have."""


_SERVICES: Final = "spec.services"
_ORDER: Final = "spec.restart.strategy.order"


def graph_size_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Report a graph with too many services or too long names."""
    if len(graph.metadata.name) > SUBDOMAIN_LIMIT:
        yield Problem("metadata.name", _too_long("a name", SUBDOMAIN_LIMIT))
    services = graph.spec.services
    if len(services) > MOST_SERVICES:
        message = f"must have at most {MOST_SERVICES} services, got {len(services)}"
        yield Problem(_SERVICES, message)
    elif any(len(name) > SUBDOMAIN_LIMIT for name in services):
        yield Problem(_SERVICES, _too_long("the name of a service", SUBDOMAIN_LIMIT))
    strategy = graph.spec.restart.strategy if graph.spec.restart else None
    order = strategy.order if strategy else ()
    if len(order) > _LONGEST_ORDER:
        yield Problem(
            _ORDER,
            f"too many entries: {len(order)} (expected one for each of {len(services)} services)",
        )
    elif any(len(name) > SUBDOMAIN_LIMIT for name in order):
        yield Problem(_ORDER, _too_long("the name of a service", SUBDOMAIN_LIMIT))


def _too_long(subject: str, limit: int) -> str:
    return f"{subject} must have at most {limit} characters"


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
        text = f"variables are too large: {total} (limit {most})"
        yield Problem("spec.envs", text)


def graph_problems(
    graph: DynamoGraphDeployment,
    settings: RenderSettings,
    most: int = MOST_PROBLEMS,
) -> tuple[Problem, ...]:
    """The problems of a graph, sorted by path; no more than `most`.

    A graph that is too large is not validated further.
    """
    spec = graph.spec
    shared = shared_size_problems(spec.envs, len(spec.services), settings) if spec.envs else ()
    too_large = (*sorted(graph_size_problems(graph)), *shared)
    return too_large or first_problems(_problems(graph, settings), most)


def _problems(graph: DynamoGraphDeployment, settings: RenderSettings) -> Iterator[Problem]:
    spec = graph.spec
    if not spec.services:
        message = "spec.services must have at least one service"
        yield Problem("spec.services", message, ProblemKind.REQUIRED)
    if graph.metadata.annotations:
        yield from graph_annotation_problems(graph.metadata.annotations)
    if spec.labels or spec.annotations:
        yield from graph_metadata_problems(spec)
    if spec.envs:
        yield from shared_environment_problems(spec.envs, "spec.envs")
    if spec.pvcs:
        yield from _pvc_problems(spec.pvcs)
    if spec.replicas is not None:
        yield from _factor_problems(graph, spec.replicas)
    if spec.restart is not None:
        yield from _restart_problems(spec.restart, sorted(spec.services))
    yield from _name_problems(graph)
    pickers = sorted(key for key, one in spec.services.items() if one.component_type == PICKER)
    if pickers:
        yield from graph_picker_problems(pickers, settings)
    if is_on_grove(graph):
        yield from _grove_problems(graph)
    is_exposed = settings.ingress_class_name or settings.virtual_service_gateway
    for key, service in sorted(spec.services.items()):
        path = service_path(key)
        component = as_component(graph, service)
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
            message = f'duplicate PVC "{claim.name}"'
            yield Problem(f"{path}.name", message, ProblemKind.DUPLICATE)
        seen.add(claim.name)
        if claim.create:
            yield from _new_pvc_problems(claim, path)


def _new_pvc_problems(claim: PersistentVolumeClaimSpec, path: str) -> Iterator[Problem]:
    """Problems of a PVC that the operator creates."""
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
    """Report services with too many replicas once `spec.replicas` multiplies them."""
    for key, service in sorted(graph.spec.services.items()):
        if not is_under_factor(service):
            continue
        replicas = base_replicas(graph, key) * factor
        most = MAX_GROUPS if service.nodes > 1 else MOST_REPLICAS
        if replicas > most:
            message = f"{factor} times the replicas of {key} is {replicas} (limit {most})"
            yield Problem("spec.replicas", message)


def _restart_problems(restart: Restart, services: list[str]) -> Iterator[Problem]:
    if not restart.id:
        yield Problem("spec.restart.id", "spec.restart.id is required", ProblemKind.REQUIRED)
    order = restart.strategy.order if restart.strategy else ()
    path = "spec.restart.strategy.order"
    if not order:
        return
    if restart.strategy and restart.strategy.type == "Parallel":
        message = f"{path} cannot be specified when strategy is parallel"
        yield Problem(path, message, ProblemKind.FORBIDDEN)
        return
    seen = set[str]()
    suggestions = Suggestions()
    for index, name in enumerate(order):
        if name not in services:
            message = (
                f"{path} contains unknown service: {name}{suggestions.nearest(name, services)}"
            )
            yield Problem(f"{path}[{index}]", message)
        elif name in seen:
            message = f"{path} must be unique"
            yield Problem(f"{path}[{index}]", message, ProblemKind.DUPLICATE)
        seen.add(name)
    missing = [name for name in services if name not in seen]
    if missing:
        message = (
            f"{path} must have the same number of unique services as the deployment; missing: "
            f"{', '.join(missing)}"
        )
        yield Problem(path, message)


def _name_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Report services whose objects would have the same name, and keys that yield no name."""
    users: dict[str, list[str]] = defaultdict(list)
    for key, service in sorted(graph.spec.services.items()):
        if not any(letter.isascii() and letter.isalnum() for letter in key):
            message = "invalid service name (expected at least one letter or digit)"
            yield Problem(service_path(key), message)
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
    """Problems of a graph that runs on Grove."""
    queue = graph.metadata.annotations.get(labels.KAI_QUEUE, "").strip()
    if not is_label_value(queue):
        path = f"metadata.annotations[{labels.KAI_QUEUE}]"
        yield Problem(path, not_a_label_value(queue))
    # A multinode service has a clique for its leader, which may have the name of another's.
    users: dict[str, str] = {}
    for key, name in sorted(grove_names_of(graph).services.items()):
        is_multinode = graph.spec.services[key].nodes > 1
        for suffix in (LEADER_SUFFIX, WORKER_SUFFIX) if is_multinode else ("",):
            user = users.setdefault(f"{name}{suffix}", key)
            if user != key:
                message = f'"{user}" and "{key}" would both create a clique "{name}{suffix}"'
                yield Problem(service_path(key), message, ProblemKind.DUPLICATE)
