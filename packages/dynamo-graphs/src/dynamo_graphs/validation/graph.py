"""The rules of a graph: those of a component for each service, and those of all services together.

Valid services may still collide, because the names of their objects are derived: lower-cased, cleaned, with
suffixes for debug copies. So the rules compare the names of all objects.
"""

from collections import defaultdict
from collections.abc import Iterator

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.annotations import is_on_grove
from dynamo_graphs.api.component import ComponentSpec, IngressSpec, is_under_factor
from dynamo_graphs.api.deployment_config import base_replicas
from dynamo_graphs.api.framework import as_component
from dynamo_graphs.api.graph import DynamoGraphDeployment, PersistentVolumeClaimSpec, Restart
from dynamo_graphs.api.names import LEADER_SUFFIX, WORKER_SUFFIX, grove_names_of
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.validation import Problem, ProblemKind, service_path
from dynamo_graphs.validation.annotations import graph_annotation_problems, graph_metadata_problems
from dynamo_graphs.validation.bounds import (
    MOST_PROBLEMS,
    MOST_REPLICAS,
    first_problems,
    graph_size_problems,
    shared_size_problems,
)
from dynamo_graphs.validation.component import host_problems, spec_problems
from dynamo_graphs.validation.endpoint_picker import graph_picker_problems
from dynamo_graphs.validation.environment import shared_environment_problems
from dynamo_graphs.validation.multinode import MAX_GROUPS
from dynamo_graphs.validation.quantities import quantity_problems
from dynamo_graphs.validation.syntax import (
    Suggestions,
    is_label_value,
    is_subdomain,
    name_problems,
    not_a_label_value,
)
from kube_runtime.quantity import amount


def graph_problems(
    graph: DynamoGraphDeployment,
    settings: RenderSettings,
    most: int = MOST_PROBLEMS,
) -> tuple[Problem, ...]:
    """The problems of a graph, sorted by path; no more than `most`.

    A graph that is too large is not validated further.
    """
    variables, services = graph.spec.envs, len(graph.spec.services)
    shared = shared_size_problems(variables, services, settings)
    too_large = (*sorted(graph_size_problems(graph)), *shared)
    return too_large or first_problems(_problems(graph, settings), most)


def _problems(graph: DynamoGraphDeployment, settings: RenderSettings) -> Iterator[Problem]:
    spec = graph.spec
    if not spec.services:
        message = "spec.services must have at least one service"
        yield Problem("spec.services", message, ProblemKind.REQUIRED)
    yield from graph_annotation_problems(graph.metadata.annotations)
    yield from graph_metadata_problems(spec)
    yield from shared_environment_problems(spec.envs, "spec.envs")
    yield from _pvc_problems(graph)
    yield from _factor_problems(graph)
    yield from _restart_problems(spec.restart, sorted(spec.services))
    yield from _name_problems(graph)
    yield from graph_picker_problems(graph, settings)
    if is_on_grove(graph):
        yield from _grove_problems(graph)
    for key, service in sorted(spec.services.items()):
        path = service_path(key)
        component = as_component(graph, service)
        yield from spec_problems(component, path, graph.metadata.namespace, settings)
        yield from _default_ingress_problems(graph, service, path, settings)


_ACCESS_MODES = ("ReadWriteOnce", "ReadOnlyMany", "ReadWriteMany", "ReadWriteOncePod")


def _pvc_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    seen: set[str] = set()
    for index, claim in enumerate(graph.spec.pvcs):
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


def _factor_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Report services with too many replicas once `spec.replicas` multiplies them.

    Autoscalers write `spec.replicas` through the scale subresource, which webhooks do not see.
    """
    factor = graph.spec.replicas
    for key, service in sorted(graph.spec.services.items()):
        if factor is None or not is_under_factor(service):
            continue
        replicas = base_replicas(graph, key) * factor
        most = MAX_GROUPS if service.nodes > 1 else MOST_REPLICAS
        if replicas > most:
            message = f"{factor} times the replicas of {key} is {replicas} (limit {most})"
            yield Problem("spec.replicas", message)


def _restart_problems(restart: Restart | None, services: list[str]) -> Iterator[Problem]:
    if restart is None:
        return
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
        for name in _names(graph, key, service):
            users[name].append(key)
    reported: set[tuple[str, str]] = set()
    for name, keys in sorted(users.items()):
        for pair in ((keys[0], key) for key in keys[1:]):
            if pair not in reported:
                message = f'"{pair[0]}" and "{pair[1]}" would both create objects named "{name}"'
                yield Problem(service_path(pair[1]), message, ProblemKind.DUPLICATE)
            reported.add(pair)


def _names(graph: DynamoGraphDeployment, key: str, service: ComponentSpec) -> set[str]:
    """The names of the objects of a service."""
    component = names.component_name(graph.metadata.name, key)
    taken = {component, names.service_name(component)}
    if service.annotations.get(labels.STEALING_DEBUG_MODE) == "true":
        taken |= {names.service_name(component, suffix) for suffix in ("-d", "-p")}
        taken.add(names.debug_workload_name(component))
    if service.nodes > 1 and not is_on_grove(graph):
        replicas = min(base_replicas(graph, key), MAX_GROUPS)
        taken |= {names.group_name(component, index) for index in range(replicas)}
    return taken


def _default_ingress_problems(
    graph: DynamoGraphDeployment, service: ComponentSpec, path: str, settings: RenderSettings
) -> Iterator[Problem]:
    """Report a graph whose name is too long for the host of its frontend's default Ingress."""
    is_default = service.component_type == "frontend" and service.ingress is None
    if is_default and (settings.ingress_class_name or settings.virtual_service_gateway):
        ingress = IngressSpec(host=graph.metadata.name, host_suffix=settings.ingress_host_suffix)
        yield from host_problems(ingress, f"{path}.ingress.host")


def _grove_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Problems of a graph that runs on Grove."""
    queue = graph.metadata.annotations.get(labels.KAI_QUEUE, "").strip()
    if not is_label_value(queue):
        path = f"metadata.annotations[{labels.KAI_QUEUE}]"
        yield Problem(path, not_a_label_value(queue))
    yield from _clique_problems(graph)


def _clique_problems(graph: DynamoGraphDeployment) -> Iterator[Problem]:
    """Report services whose cliques would have the same name: a multinode `w`, and `w-ldr`."""
    users: dict[str, str] = {}
    for key, name in sorted(grove_names_of(graph).services.items()):
        is_multinode = graph.spec.services[key].nodes > 1
        for suffix in (LEADER_SUFFIX, WORKER_SUFFIX) if is_multinode else ("",):
            user = users.setdefault(f"{name}{suffix}", key)
            if user != key:
                message = f'"{user}" and "{key}" would both create a clique "{name}{suffix}"'
                yield Problem(service_path(key), message, ProblemKind.DUPLICATE)
