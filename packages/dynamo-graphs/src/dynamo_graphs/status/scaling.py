"""The status of a scaling adapter: what it may do, and the result.

An autoscaler computes from these numbers, so `replicas` is what the graph has observed, not what was
requested, and absent while nothing was observed.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum

from msgspec.structs import replace

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.annotations import is_on_grove
from dynamo_graphs.api.component import has_adapter
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.names import LEADER_SUFFIX, WORKER_SUFFIX, grove_names_of
from dynamo_graphs.api.scaling import (
    DynamoGraphDeploymentScalingAdapter,
    DynamoGraphDeploymentScalingAdapterSpec,
    DynamoGraphDeploymentScalingAdapterStatus,
)
from dynamo_graphs.types.grove import CLIQUE_NAME
from dynamo_graphs.validation.multinode import MAX_GROUPS
from kube_runtime.apply.result import controls
from kube_runtime.text import cut
from kube_runtime.types.meta import Condition, Resource

_MESSAGE_LIMIT = 1024


class ScalingReason(StrEnum):
    """Reasons of an adapter's `Ready`."""

    SCALED = "scaled"
    SCALING = "scaling"
    GRAPH_NOT_FOUND = "dgd_not_found"
    SERVICE_NOT_FOUND = "service_not_found"
    DISABLED = "disabled"
    SUPERSEDED = "superseded"
    SUSPENDED = "suspended"
    PAUSED = "paused"
    REJECTED = "rejected_by_api_server"
    DECODE_FAILED = "decode_failed"
    TOO_LARGE = "too_large"


@dataclass(frozen=True, slots=True)
class ScalingHold:
    """Why an adapter does not change the graph now."""

    reason: ScalingReason
    message: str


def hold(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment | None,
) -> ScalingHold | None:
    """What keeps the adapter from acting. None means: nothing.

    Of several adapters for one service, the one that the graph made acts.
    """
    name, key = spec.dgd_ref.name, spec.dgd_ref.service_name
    cause: tuple[ScalingReason, str] | None = None
    if _says(adapter, labels.PAUSED):
        cause = ScalingReason.PAUSED, f"{labels.PAUSED} is true: the operator ignores this adapter"
    elif graph is None:
        cause = ScalingReason.GRAPH_NOT_FOUND, f"DynamoGraphDeployment {name} not found"
    elif key not in graph.spec.services:
        services = ", ".join(sorted(graph.spec.services))
        text = f"Graph {name} has no service {key} (services: {services})"
        cause = ScalingReason.SERVICE_NOT_FOUND, text
    elif not has_adapter(graph.spec.services[key]):
        text = f"spec.services.{key}.scalingAdapter.enabled of graph {name} is not true"
        cause = ScalingReason.DISABLED, text
    elif not is_made_by(graph, adapter):
        rightful = names.component_name(name, key)
        text = f"Service {key} of graph {name} is scaled by the adapter {rightful} that the operator makes"
        cause = ScalingReason.SUPERSEDED, f"{text}; delete this one, which has no effect"
    elif _says(graph, labels.PAUSED):
        cause = ScalingReason.PAUSED, f"{labels.PAUSED} is true on graph {name}"
    elif _says(graph, labels.SUSPEND):
        cause = ScalingReason.SUSPENDED, f"Graph {name} is suspended; the adapter keeps its number"
    return ScalingHold(*cause) if cause else None


def is_made_by(graph: DynamoGraphDeployment, adapter: DynamoGraphDeploymentScalingAdapter) -> bool:
    """Whether it is the adapter that the operator made for the service that it names."""
    if adapter.spec is None or not controls(graph, adapter):
        return False
    key = adapter.spec.dgd_ref.service_name
    return adapter.metadata.name == names.component_name(graph.metadata.name, key)


def _says(resource: Resource, annotation: str) -> bool:
    return resource.metadata.annotations.get(annotation) == "true"


def held_status(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment | None,
    why: ScalingHold,
) -> DynamoGraphDeploymentScalingAdapterStatus:
    """The status of an adapter that does not act; what it did last stays there."""
    is_paused = why.reason is ScalingReason.PAUSED
    ready = _condition(adapter, "Unknown" if is_paused else "False", why)
    if _says(adapter, labels.PAUSED):
        return adapter.status.with_conditions([ready])
    status = _observed(adapter, spec, graph).with_conditions([ready])
    if why.reason is ScalingReason.REJECTED:  # nothing came of that spec
        return replace(status, observed_generation=adapter.status.observed_generation)
    return status


def acting_status(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment,
    scaled_at: str | None,
) -> DynamoGraphDeploymentScalingAdapterStatus:
    """The status of an adapter whose replicas are in the graph.

    `scaled_at` is when it was written there. None means: earlier.
    """
    status = _observed(adapter, spec, graph)
    key, desired, present = spec.dgd_ref.service_name, spec.replicas, status.replicas
    whole = f"Service {key} of graph {graph.metadata.name}"
    # A status from before the change may name the same number by chance.
    if graph.status.observed_generation >= graph.metadata.generation and present == desired:
        why = ScalingHold(ScalingReason.SCALED, f"{whole} has {_replicas(desired)}")
        ready = _condition(adapter, "True", why)
    else:
        # No count here: it is in `replicas`, and each new text would be one more write.
        why = ScalingHold(ScalingReason.SCALING, f"{whole} is scaling to {_replicas(desired)}")
        ready = _condition(adapter, "False", why)
    return replace(
        status,
        conditions=(ready,),
        desired_replicas=desired,
        last_scale_time=scaled_at or status.last_scale_time,
    )


def _observed(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment | None,
) -> DynamoGraphDeploymentScalingAdapterStatus:
    """What is true whether the adapter acts or not."""
    key = spec.dgd_ref.service_name
    service = graph.status.services.get(key) if graph else None
    present = service.replicas if service else None
    status = replace(
        adapter.status, observed_generation=adapter.metadata.generation, replicas=present
    )
    if graph and key in graph.spec.services:
        most = max(spec.replicas, present or 0)
        return replace(status, selector=selector(graph, key, most))
    return status


def selector(graph: DynamoGraphDeployment, service: str, replicas: int) -> str:
    """The label selector of a service's pods as text: one pod for each of so many replicas.

    An autoscaler takes means over pods, so of a replica that spans several nodes only the leader counts.
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
    """The label selector of the pods of several services as text: one pod for each of their replicas.

    `replicas` is how many of them there are, by service. The services differ, so of those that span several
    nodes the pods are left out that do not lead. Without services it contradicts itself and finds nothing;
    an empty one would select every pod for readers that follow the rules of Kubernetes.
    """
    named = f"{labels.GRAPH}={names.label_value(graph.metadata.name)}"
    if not replicas:
        return f"{named},!{labels.GRAPH}"
    values = ",".join(sorted(names.label_value(key) for key in replicas))
    terms = [named, f"{labels.COMPONENT} in ({values})"]
    spread = [key for key in sorted(replicas) if graph.spec.services[key].nodes > 1]
    if spread and is_on_grove(graph):
        cliques = (
            clique
            for key in spread
            for clique in _cliques(graph, key, replicas[key], WORKER_SUFFIX)
        )
        terms.append(f"{CLIQUE_NAME} notin ({','.join(cliques)})")
    elif spread:
        terms.append(f"{labels.ROLE}!=worker")
    return ",".join(terms)


def _cliques(
    graph: DynamoGraphDeployment, service: str, replicas: int, suffix: str
) -> Iterator[str]:
    """Grove labels a pod with its clique, whose name has the number of the replica; 0 always counts.

    A selector has to stay readable, whatever number is requested: no more replicas are named than a
    service over several nodes may have.
    """
    gang = grove_names_of(graph)
    group, name = gang.child(service), f"{gang.services[service]}{suffix}"
    return (f"{group}-{index}-{name}" for index in range(min(max(1, replicas), MAX_GROUPS)))


def _condition(
    adapter: DynamoGraphDeploymentScalingAdapter, status: str, why: ScalingHold
) -> Condition:
    generation, text = adapter.metadata.generation, cut(why.message, _MESSAGE_LIMIT)
    return Condition("Ready", status, why.reason, text, observed_generation=generation)


def _replicas(number: int) -> str:
    return "1 replica" if number == 1 else f"{number} replicas"
