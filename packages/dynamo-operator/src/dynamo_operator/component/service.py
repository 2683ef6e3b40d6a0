"""A service of a graph: its replicas, by all sources that set them and as they run; its component."""

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias, TypeVar

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.component.api import (
    MAX_GROUPS,
    ComponentSpec,
    DynamoComponentDeployment,
    ResourceItem,
    Resources,
    ServiceReplicaStatus,
    is_under_factor,
    is_worker,
)
from dynamo_operator.component.objects import (
    merged_environment,
    object_metadata,
    pruned,
    service_annotations,
    service_dynamo_namespace,
    service_labels,
    variable,
)
from dynamo_operator.component.pod import HTTP_PORT
from dynamo_operator.graph.api import DynamoGraphDeployment, grove_names_of
from dynamo_operator.names import LEADER_SUFFIX, WORKER_SUFFIX, is_on_grove
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import CLIQUE_NAME
from dynamo_operator.shared.conditions import SUSPENDED
from dynamo_operator.shared.problems import MOST_REPLICAS
from kube_runtime.types.meta import Fields, Object, OwnerReference, R, condition, from_plain

S = TypeVar("S", bound=ComponentSpec)

VARIABLE = "DYN_DEPLOYMENT_CONFIG"
IN_SERVICE: Final = re.compile("[A-Za-z0-9]")
"""What the key of a service contains."""


# `DYN_DEPLOYMENT_CONFIG` is a variable of the user that acts as part of the spec, so all code that
# needs the replicas or GPUs of a service reads them here. It has no effect on Grove.
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


def most_replicas(service: ComponentSpec) -> int:
    """The most replicas that a service may have."""
    return MAX_GROUPS if service.nodes > 1 else MOST_REPLICAS


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
    # Validation reports invalid amounts.
    texts = {name: resources.get(name) for name in ("cpu", "memory", "gpu")}
    sizes: Object = {name: amount for name, amount in texts.items() if amount and isinstance(amount, str)}
    custom = _mapping(resources.get("custom"))
    if custom and all(isinstance(amount, str) for amount in custom.values()):
        sizes["custom"] = custom
    return sizes


def _mapping(value: object) -> Object:
    return value if isinstance(value, dict) else {}


def folded(value: Fields) -> Object:
    """Return the entries under lower-case names: names below a service are case-insensitive."""
    return {name.lower(): entry for name, entry in value.items()}


class ServiceObserved(msgspec.Struct, frozen=True):
    """The state of a service's workload in the API server; `desired` replicas are in its spec.

    `restart` is the id of the restart in its newest template, "" for none. With `is_ready` all its pods run
    that template, in the desired number. Unless `is_current`, the counts describe an older spec, and a
    workload with 0 replicas may be about to create some. With `has_older`, workloads of older revisions count
    as well, so that `desired` may be more or less than the service is to have.
    """

    exists: bool = False
    restart: str = ""
    is_ready: bool = False
    desired: int = 0
    replicas: int = 0
    ready: int = 0
    is_paused: bool = False
    is_current: bool = True
    has_older: bool = False


Observed: TypeAlias = Mapping[str, ServiceObserved]
"""By service; a service without a workload may be missing."""


class ServiceView(msgspec.Struct, frozen=True):
    """The live state of a service, which the object `name` runs, with the number of `desired` replicas.

    `counts` has its replicas, and the state of its pods in `reason` and `message`; `newest` those of the
    newest revision, where older ones are objects of their own. `obstacles` is why its workload is not ready.
    With `is_rolling` some replicas lack the newest spec; with `has_older` some of an older one remain.
    """

    name: str
    counts: ServiceReplicaStatus
    desired: int
    obstacles: tuple[str, ...] = ()
    exists: bool = True
    is_rolling: bool = False
    has_older: bool = False
    requeue_after_seconds: float | None = None
    newest: ServiceReplicaStatus | None = None

    @property
    def is_ready(self) -> bool:
        """Whether all desired replicas run the newest spec, and no others."""
        return not self.obstacles

    @property
    def ready_of_newest(self) -> int:
        """The least number of ready replicas of the newest spec.

        Counts do not show which replicas are ready, so those of an older spec count as ready first.
        """
        counts = self.newest or self.counts
        older = counts.replicas - counts.updated_replicas
        return min(max(0, (counts.ready or 0) - max(0, older)), counts.updated_replicas)


def effective_replicas(
    graph: DynamoGraphDeployment, adapters: Mapping[str, int], zero: Collection[str]
) -> dict[str, int | None]:
    """The replicas of each service; `adapters` are set by scaling adapters, `zero` are suspended services.

    None if no source sets a number and the operator never wrote one, so that the workload may have any.
    Once the operator has written a number it keeps setting one, or the service would keep its last size.
    While an adapter is there the number in the spec is ignored, so the two cannot compete for one service.
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
        key: replace(service, replicas=base_replicas(graph, key))
        for key, service in graph.spec.services.items()
    }
    return replace(graph, spec=replace(graph.spec, services=services))


def graph_scale(graph: DynamoGraphDeployment, observed: Observed) -> tuple[int, dict[str, int]]:
    """The factor that all services under it have reached, for the scale subresource.

    With it the larger of the present and the desired replicas of each of these services.
    """
    desired = 1 if graph.spec.replicas is None else graph.spec.replicas
    reached, covered = list[int](), dict[str, int]()
    for key, service in sorted(graph.spec.services.items()):
        if not is_under_factor(service):
            continue
        base, present = base_replicas(graph, key), observed.get(key, ServiceObserved()).replicas
        covered[key] = max(base * desired, present)
        if base:
            reached.append(present // base)
    return min(reached, default=desired), covered


def selector(graph: DynamoGraphDeployment, service: str, replicas: int) -> str:
    """The label selector, as text, of one pod for each replica of a service.

    An autoscaler computes means over pods, so only the leader of a multinode replica counts.
    """
    name, key = names.label_value(graph.metadata.name), names.label_value(service)
    selected = f"{labels.GRAPH}={name},{labels.COMPONENT}={key}"
    if graph.spec.services[service].nodes == 1:
        return selected
    if not is_on_grove(graph):
        return f"{selected},{labels.ROLE}=leader"
    cliques = _cliques(graph, service, replicas, LEADER_SUFFIX)
    return f"{selected},{CLIQUE_NAME} in ({','.join(cliques)})"


def graph_selector(graph: DynamoGraphDeployment, replicas: Mapping[str, int]) -> str:
    """The selector, as text, of one pod for each replica of services, so of no multinode worker.

    `replicas` are by service.
    """
    selected = f"{labels.GRAPH}={names.label_value(graph.metadata.name)}"
    if not replicas:
        # It contradicts itself and matches nothing: an empty selector would match every pod.
        return f"{selected},!{labels.GRAPH}"
    selected += f",{labels.COMPONENT} in ({','.join(sorted(map(names.label_value, replicas)))})"
    multinode = [key for key in sorted(replicas) if graph.spec.services[key].nodes > 1]
    if not multinode:
        return selected
    if not is_on_grove(graph):
        return f"{selected},{labels.ROLE}!=worker"
    cliques = (clique for key in multinode for clique in _cliques(graph, key, replicas[key], WORKER_SUFFIX))
    return f"{selected},{CLIQUE_NAME} notin ({','.join(cliques)})"


def _cliques(graph: DynamoGraphDeployment, service: str, replicas: int, suffix: str) -> Iterator[str]:
    """The names of the cliques with that suffix: Grove labels each pod with its clique, one per replica."""
    of_grove = grove_names_of(graph)
    group, name = of_grove.child(service), f"{of_grove.services[service]}{suffix}"
    # At most `MAX_GROUPS`, so that the selector stays short whatever number is requested.
    return (f"{group}-{index}-{name}" for index in range(min(max(1, replicas), MAX_GROUPS)))


NAMESPACE_PREFIX_VARIABLE = "DYN_NAMESPACE_PREFIX"
"""Variable of frontends: the prefix of the workers' Dynamo namespaces."""


@dataclass(frozen=True, slots=True)
class WorkerRevision:
    """The desired revision of a graph's workers, and how the other services find them.

    `suffix` distinguishes it in names; "" for the plain names of graphs without managed rollouts. `content`
    is the versioned hash to record on the components, if any. `namespace_prefix` is that of the workers'
    Dynamo namespaces; "" if frontends look in the graph's own only. `replicas` override those of the graph
    while a rollout is in progress, by service. An `is_adopted` one was created by the Go operator of the 1.x
    line: all workers have it, and only their processes append it to the Dynamo namespace.
    """

    suffix: str = ""
    content: str = ""
    namespace_prefix: str = ""
    replicas: Mapping[str, int] = field(default_factory=dict[str, int])
    is_adopted: bool = False

    def has(self, service: ComponentSpec) -> bool:
        """Whether the component of a service belongs to it."""
        return is_worker(service) if self.is_adopted else has_revisions(service)


PLAIN = WorkerRevision()
"""Workers without managed rollouts."""


def has_revisions(service: ComponentSpec) -> bool:
    """Whether the pods of a service belong to revisions."""
    # Multinode workers are replaced by their own controllers, and the Dynamo namespace that all graphs share
    # cannot be divided.
    return is_worker(service) and service.nodes == 1 and not service.global_dynamo_namespace


def worker_component_name(graph: DynamoGraphDeployment, key: str, revision: WorkerRevision) -> str:
    """The name of a service's component; it contains the revision if the service has revisions."""
    if revision.suffix and revision.has(graph.spec.services[key]):
        return names.revision_component_name(graph.metadata.name, key, revision.suffix)
    return names.component_name(graph.metadata.name, key)


_INHERITED = (labels.ENABLE_METRICS, labels.DISCOVERY_BACKEND)
"""Annotations of the graph that its components inherit."""

_FINDS_WORKERS = ("frontend", "epp")
"""Component types that look for workers by the prefix of their Dynamo namespace."""


# Nothing after this reads the graph, so the component contains everything that rendering needs,
# such as the graph's environment, feature annotations and framework.
def component_resource(
    graph: DynamoGraphDeployment, key: str, settings: RenderSettings, revision: WorkerRevision = PLAIN
) -> Object:
    """Return the component of a service. On Grove it is never applied: pods are rendered from it."""
    service = as_configured(graph, key)
    is_revised = revision is not PLAIN and revision.has(service)
    suffix = revision.suffix if is_revised else ""
    annotations = service_annotations(graph, service) | {
        name: graph.metadata.annotations[name] for name in _INHERITED if name in graph.metadata.annotations
    }
    dynamo_namespace = service_dynamo_namespace(graph, service, "" if revision.is_adopted else suffix)
    system = {
        labels.COMPONENT: names.label_value(key),
        labels.DYNAMO_NAMESPACE: dynamo_namespace,
        labels.GRAPH: names.label_value(graph.metadata.name),
    }
    spec: Object = _explicit(pruned(msgspec.to_builtins(service)))
    spec.pop("disruptionBudget", None)  # the graph has one for all revisions of the service
    spec |= {
        "serviceName": key,
        "dynamoNamespace": dynamo_namespace,
        "labels": service_labels(graph, service) | system,
    }
    if graph.spec.backend_framework:
        spec["backendFramework"] = graph.spec.backend_framework
    if annotations:
        spec["annotations"] = annotations
    if graph.spec.envs:
        spec["envs"] = pruned(merged_environment(graph.spec.envs, service.envs))
    if key in revision.replicas:
        spec["replicas"] = revision.replicas[key]
    if revision is not PLAIN and (variables := _namespace_variables(graph, service, revision)):
        spec["envs"] = merged_environment(variables, spec.get("envs", ()))
    if service.component_type == "frontend" and service.ingress is None:
        spec["ingress"] = default_ingress(graph.metadata.name, settings)
    own_annotations = {name: annotations[name] for name in graph.spec.annotations if name in annotations}
    if revision.content and is_revised:
        own_annotations[labels.WORKER_CONTENT] = revision.content
    metadata = object_metadata(
        graph.metadata.namespace,
        worker_component_name(graph, key, revision)
        if suffix
        else names.component_name(graph.metadata.name, key),
        spec["labels"] | ({labels.WORKER_HASH: suffix} if suffix else {}),
        own_annotations,
    )
    return DynamoComponentDeployment.KIND.manifest(metadata, spec=spec)


def _namespace_variables(
    graph: DynamoGraphDeployment, service: ComponentSpec, revision: WorkerRevision
) -> list[Object]:
    # They place workers in the Dynamo namespace of their revision, and let others find them there.
    variables: dict[str, str] = {}
    if revision.is_adopted and is_worker(service):
        variables = {"DYN_NAMESPACE_WORKER_SUFFIX": revision.suffix}
    elif revision.is_adopted and service.component_type in _FINDS_WORKERS:
        variables = {NAMESPACE_PREFIX_VARIABLE: service_dynamo_namespace(graph, service)}
    elif revision.suffix and has_revisions(service):
        base = names.revisions_namespace_prefix(graph.metadata.namespace, graph.metadata.name)
        variables = {"DYN_NAMESPACE": base, "DYN_NAMESPACE_WORKER_SUFFIX": revision.suffix}
    elif revision.namespace_prefix and service.component_type in _FINDS_WORKERS:
        variables = {
            "DYN_NAMESPACE": revision.namespace_prefix,
            NAMESPACE_PREFIX_VARIABLE: revision.namespace_prefix,
        }
    container = (service.extra_pod_spec or {}).get("mainContainer") or {}
    users = {entry["name"] for entry in container.get("env") or ()}
    return [variable(name, value) for name, value in variables.items() if name not in users]


def component_of(graph: DynamoGraphDeployment, desired: Object) -> DynamoComponentDeployment:
    """Convert a rendered component to the struct that its controller reads, with the graph as its owner."""
    return owned_by(graph, from_plain(desired, DynamoComponentDeployment))


def owned_by(graph: DynamoGraphDeployment, resource: R) -> R:
    """Return the object with the graph as its controlling owner."""
    owner = OwnerReference(
        kind=DynamoGraphDeployment.KIND.name,
        name=graph.metadata.name,
        uid=graph.metadata.uid,
        api_version=DynamoGraphDeployment.KIND.api_version,
        controller=True,
    )
    return replace(resource, metadata=replace(resource.metadata, owner_references=(owner,)))


def default_ingress(graph: str, settings: RenderSettings) -> Object:
    """The ingress of a frontend without one; explicit even if disabled, to record the decision."""
    tls = settings.ingress_tls_secret_name
    ingress: Object = {
        "enabled": bool(settings.virtual_service_gateway or settings.ingress_class_name),
        "host": graph,
        "useVirtualService": bool(settings.virtual_service_gateway),
        "virtualServiceGateway": settings.virtual_service_gateway,
        "hostSuffix": settings.ingress_host_suffix,
        "ingressControllerClassName": settings.ingress_class_name,
        "tls": {"secretName": tls} if tls else None,
    }
    return {name: value for name, value in ingress.items() if value}


_EXPLICIT: dict[str, Object] = {
    "ingress": {"enabled": False},
    "multinode": {"nodeCount": 2},
    "scalingAdapter": {"enabled": False},
    "tls": {"secretName": ""},
}
"""The explicit form of empty maps with these names."""
_USER_DEFINED = frozenset(("extraPodSpec", "eppConfig"))


# Server-side apply ignores an empty map: entries that the map had before would stay. So those of our types
# are dropped, or replaced by their explicit form if they have a meaning.
def _explicit(value: object) -> Any:
    if not isinstance(value, dict):
        return value
    kept = {name: child if name in _USER_DEFINED else _explicit(child) for name, child in value.items()}
    explicit = {name: _EXPLICIT.get(name, {}) if child == {} else child for name, child in kept.items()}
    return {name: child for name, child in explicit.items() if child != {}}


def component_object(
    graph: DynamoGraphDeployment, key: str, settings: RenderSettings, revision: WorkerRevision = PLAIN
) -> Object:
    """Return the component to apply: a planner with its ServiceAccount, a frontend with its port."""
    desired = component_resource(graph, key, settings, revision)
    spec: Object = desired["spec"]
    if graph.spec.services[key].component_type == "planner":
        account = {"serviceAccountName": names.PLANNER_SERVICE_ACCOUNT}
        spec["extraPodSpec"] = spec.get("extraPodSpec", {}) | account
    config = config_of(spec.get("envs", ())) if spec.get("componentType") == "frontend" else {}
    if isinstance(own := config.get(key), dict):
        changed = {**config, key: {**own, "port": HTTP_PORT}}
        text = json.dumps(changed, sort_keys=True, separators=(",", ":"))
        spec["envs"] = [
            {**entry, "value": text} if entry["name"] == VARIABLE else entry for entry in spec["envs"]
        ]
    return desired
