"""The replicas of each service: desired, by all sources that set them, and as they run now.

Highest precedence first: a suspended graph, the service's scaling adapter, the graph's factor on the number
in the spec. The number in the spec is ignored while an adapter is there, so the two cannot compete for one
service.
"""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.component.api import (
    MAX_GROUPS,
    BlockedPod,
    ComponentSpec,
    DynamoComponentDeployment,
    ResourceItem,
    Resources,
    ServiceReplicaStatus,
    is_under_factor,
)
from dynamo_operator.component.pods import ServiceView, ready_replicas
from dynamo_operator.graph.api import DynamoGraphDeployment, grove_names_of
from dynamo_operator.names import LEADER_SUFFIX, WORKER_SUFFIX, is_on_grove
from dynamo_operator.shared.cluster import CLIQUE_NAME
from dynamo_operator.shared.conditions import SUSPENDED, Stated
from kube_runtime.kind import Fields, Object
from kube_runtime.types.meta import condition

S = TypeVar("S", bound=ComponentSpec)

VARIABLE = "DYN_DEPLOYMENT_CONFIG"


# It is an environment variable of the user that acts as part of the spec, so all code that needs
# the replicas or GPUs of a service reads them here. It has no effect on Grove.
def as_configured(graph: DynamoGraphDeployment, service: str) -> ComponentSpec:
    """Return a service with the replicas and resources from the variable; `replicas` in the spec wins."""
    spec = graph.spec.services[service]
    variables = (*graph.spec.envs, *spec.envs)
    if is_on_grove(graph) or all(variable.get("name") != VARIABLE for variable in variables):
        return spec
    return configured(spec, config_of(variables), service)


def configured(spec: S, config: Object, service: str) -> S:
    """Return the spec with replicas and resources from `config`; `replicas` in the spec wins."""
    arguments = folded(_mapping(folded(_mapping(config.get(service))).get("serviceargs")))
    workers = arguments.get("workers")
    if spec.replicas is None and isinstance(workers, int) and not isinstance(workers, bool):
        spec = replace(spec, replicas=workers)
    if sizes := _sizes(folded(_mapping(arguments.get("resources")))):
        old = spec.resources or Resources()
        requests = replace(old.requests or ResourceItem(), **sizes)
        limits = replace(old.limits or ResourceItem(), **sizes)
        spec = replace(spec, resources=replace(old, requests=requests, limits=limits))
    return spec


def base_replicas(graph: DynamoGraphDeployment, service: str) -> int:
    """The replicas that the user sets for a service: by its field, else by the variable, else 1."""
    return as_configured(graph, service).desired_replicas


def config_of(environment: Iterable[Object]) -> Object:
    """Return the value of the last such variable, by service; {} if it is missing or unreadable."""
    texts = [variable.get("value") for variable in environment if variable.get("name") == VARIABLE]
    try:
        return _mapping(json.loads(texts[-1])) if texts and texts[-1] else {}
    except (ValueError, RecursionError):
        return {}  # validation has reported it


def _sizes(resources: Object) -> Object:
    """The valid amounts; validation reports the others."""
    texts = {name: resources.get(name) for name in ("cpu", "memory", "gpu")}
    sizes: Object = {
        name: amount for name, amount in texts.items() if amount and isinstance(amount, str)
    }
    custom = _mapping(resources.get("custom"))
    if custom and all(isinstance(amount, str) for amount in custom.values()):
        sizes["custom"] = custom
    return sizes


def _mapping(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def folded(value: Fields) -> Object:
    """Return the entries under lower-case names: names below a service are case-insensitive."""
    return {name.lower(): entry for name, entry in value.items()}


@dataclass(frozen=True, slots=True)
class ServiceObserved:
    """The state of a service's workload in the API server.

    `restart` is the id of the restart in its newest template, "" for none. `is_ready` is true if all its
    pods run that template, in the desired number. `desired` replicas are in its spec, `replicas` exist,
    `ready` are ready. `is_paused` is true if its component is paused. `is_current` is true if the counts
    describe the newest spec; otherwise a workload with 0 replicas may be about to create some.
    """

    exists: bool = False
    restart: str = ""
    is_ready: bool = False
    desired: int = 0
    replicas: int = 0
    ready: int = 0
    is_paused: bool = False
    is_current: bool = True


Observed: TypeAlias = Mapping[str, ServiceObserved]
"""By service; a service without a workload may be missing."""


def effective_replicas(
    graph: DynamoGraphDeployment, adapters: Mapping[str, int], zero: Collection[str]
) -> dict[str, int | None]:
    """The replicas of each service; `adapters` are set by scaling adapters, `zero` are suspended services.

    None if no source sets a number and the operator never wrote one, so that the workload may have any.
    Once the operator has written a number it keeps setting one, or the service would keep its last size.
    """
    factor, replicas = graph.spec.replicas, dict[str, int | None]()
    was_suspended = condition(graph.status.conditions, SUSPENDED) is not None
    for key, service in graph.spec.services.items():
        if key in zero:
            replicas[key] = 0
        elif key in adapters:
            replicas[key] = adapters[key]
        elif factor is not None and is_under_factor(service):
            replicas[key] = base_replicas(graph, key) * factor
        else:
            replicas[key] = base_replicas(graph, key) if was_suspended else service.replicas
    return replicas


def sized(graph: DynamoGraphDeployment) -> DynamoGraphDeployment:
    """Return the graph with replicas set in every service, also where the user leaves them out."""
    services = {
        key: msgspec.structs.replace(service, replicas=base_replicas(graph, key))
        for key, service in graph.spec.services.items()
    }
    spec = msgspec.structs.replace(graph.spec, services=services)
    return msgspec.structs.replace(graph, spec=spec)


@dataclass(frozen=True, slots=True)
class GraphScale:
    """The state of a graph's scale subresource.

    `replicas` is the factor that the services have reached. `covered` are the services that it
    multiplies, each with the larger of its present and its desired replicas.
    """

    replicas: int
    covered: Mapping[str, int]


def graph_scale(graph: DynamoGraphDeployment, observed: Observed) -> GraphScale:
    """Compute the factor that all services under it have reached."""
    desired = 1 if graph.spec.replicas is None else graph.spec.replicas
    reached, covered = [], {}
    for key, service in sorted(graph.spec.services.items()):
        if not is_under_factor(service):
            continue
        base, present = base_replicas(graph, key), observed.get(key, ServiceObserved()).replicas
        covered[key] = max(base * desired, present)
        if base:
            reached.append(present // base)
    return GraphScale(min(reached, default=desired), covered)


def selector(graph: DynamoGraphDeployment, service: str, replicas: int) -> str:
    """The label selector, as text, of one pod for each replica of a service.

    An autoscaler computes means over pods, so only the leader of a multinode replica counts.
    """
    terms = [
        f"{labels.GRAPH}={names.label_value(graph.metadata.name)}",
        f"{labels.COMPONENT}={names.label_value(service)}",
    ]
    if graph.spec.services[service].nodes > 1 and is_on_grove(graph):
        cliques = _cliques(graph, service, replicas, LEADER_SUFFIX)
        terms.append(f"{CLIQUE_NAME} in ({','.join(cliques)})")
    elif graph.spec.services[service].nodes > 1:
        terms.append(f"{labels.ROLE}=leader")
    return ",".join(terms)


def graph_selector(graph: DynamoGraphDeployment, replicas: Mapping[str, int]) -> str:
    """The label selector, as text, of one pod for each replica of several services.

    `replicas` are by service. The selector excludes the workers of multinode replicas. Without services it
    contradicts itself and matches nothing, because an empty selector would match every pod.
    """
    graph_label = f"{labels.GRAPH}={names.label_value(graph.metadata.name)}"
    if not replicas:
        return f"{graph_label},!{labels.GRAPH}"
    values = ",".join(sorted(names.label_value(key) for key in replicas))
    terms = [graph_label, f"{labels.COMPONENT} in ({values})"]
    multinode = [key for key in sorted(replicas) if graph.spec.services[key].nodes > 1]
    if multinode and is_on_grove(graph):
        cliques = (
            clique
            for key in multinode
            for clique in _cliques(graph, key, replicas[key], WORKER_SUFFIX)
        )
        terms.append(f"{CLIQUE_NAME} notin ({','.join(cliques)})")
    elif multinode:
        terms.append(f"{labels.ROLE}!=worker")
    return ",".join(terms)


def _cliques(
    graph: DynamoGraphDeployment, service: str, replicas: int, suffix: str
) -> Iterator[str]:
    """The names of the cliques with that suffix: Grove labels each pod with its clique, one per replica.

    At least one and at most `MAX_GROUPS`, so that the selector stays short whatever number is requested.
    """
    gang = grove_names_of(graph)
    group, name = gang.child(service), f"{gang.services[service]}{suffix}"
    return (f"{group}-{index}-{name}" for index in range(min(max(1, replicas), MAX_GROUPS)))


@dataclass(frozen=True, slots=True)
class Service:
    """One row: the desired replicas of a service, and what the status reports.

    None means unknown; for `ready`, that its workload has no such count.
    """

    name: str
    desired: int
    ready: int | None = None
    updated: int | None = None
    ready_of_newest: int = 0
    reason: str = ""
    message: str = ""
    blocked_pods: tuple[BlockedPod, ...] = ()


def services(stated: Stated) -> list[Service]:
    """The services of a graph or component, by name; other kinds have none."""
    match stated:
        case DynamoGraphDeployment():
            return _of_graph(stated)
        case DynamoComponentDeployment(spec=spec, status=status):
            desired = spec.desired_replicas
            return [_service(spec.service_name or stated.metadata.name, desired, status.service)]
        case _:
            return []


def _of_graph(graph: DynamoGraphDeployment) -> list[Service]:
    # The operator copies the replicas of scaling adapters into the spec, so adapters are not read here.
    suspended = condition(graph.status.conditions, SUSPENDED)
    is_at_zero = suspended is not None and suspended.status == "True"
    replicas = effective_replicas(graph, {}, graph.spec.services if is_at_zero else ())
    return [
        _service(
            key,
            base_replicas(graph, key) if desired is None else desired,
            graph.status.services.get(key),
        )
        for key, desired in sorted(replicas.items())
    ]


def _service(name: str, desired: int, counts: ServiceReplicaStatus | None) -> Service:
    if counts is None:
        return Service(name, desired)
    return Service(
        name,
        desired,
        ready=ready_replicas(counts),
        updated=counts.updated_replicas,
        ready_of_newest=ServiceView(name, counts, desired).ready_of_newest,
        reason=counts.reason or "",
        message=counts.message or "",
        blocked_pods=counts.blocked_pods,
    )
