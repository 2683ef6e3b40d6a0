"""The status of a scaling adapter: whether it acts, and the replicas that it reports to autoscalers.

An autoscaler computes from these numbers. So `replicas` is the observed number, never the requested one, and
absent until it is known.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.component.api import has_adapter
from dynamo_operator.features.scaling.api import (
    DynamoGraphDeploymentScalingAdapter,
    DynamoGraphDeploymentScalingAdapterSpec,
    DynamoGraphDeploymentScalingAdapterStatus,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.service import selector
from dynamo_operator.names import is_paused
from dynamo_operator.shared.conditions import ScalingReason
from kube_runtime.apply.result import controls
from kube_runtime.types.meta import new_condition


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
    """Why the adapter does not act; None if it does.

    Of several adapters for one service, the one that the operator created for the graph acts.
    """
    name, key = spec.dgd_ref.name, spec.dgd_ref.service_name
    own_name = names.component_name(name, key)
    cause: tuple[ScalingReason, str] | None = None
    if is_paused(adapter):
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
    elif not controls(graph, adapter) or adapter.metadata.name != own_name:
        text = f"The adapter {own_name}, which the operator created, scales service {key} of graph {name}"
        cause = ScalingReason.SUPERSEDED, f"{text}; delete this one, which has no effect"
    elif is_paused(graph):
        cause = ScalingReason.PAUSED, f"{labels.PAUSED} is true on graph {name}"
    elif graph.metadata.annotations.get(labels.SUSPEND) == "true":
        cause = ScalingReason.SUSPENDED, f"Graph {name} is suspended; the adapter keeps its number"
    return ScalingHold(*cause) if cause else None


def held_status(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment | None,
    why: ScalingHold,
) -> DynamoGraphDeploymentScalingAdapterStatus:
    """The status of an adapter that does not act; it keeps the last scaling."""
    state = "Unknown" if why.reason is ScalingReason.PAUSED else "False"
    ready = new_condition(adapter, "Ready", state, why.reason, why.message)
    if is_paused(adapter):
        return adapter.status.with_conditions([ready])
    status = _observed(adapter, spec, graph).with_conditions([ready])
    if why.reason is ScalingReason.REJECTED:  # the newest spec was not applied
        return replace(status, observed_generation=adapter.status.observed_generation)
    return status


def acting_status(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment,
    scaled_at: str | None,
) -> DynamoGraphDeploymentScalingAdapterStatus:
    """The status of an adapter whose replicas are in the graph's spec.

    `scaled_at` is when this reconcile wrote them; None if they were there before.
    """
    status = _observed(adapter, spec, graph)
    key, desired, present = spec.dgd_ref.service_name, spec.replicas, status.replicas
    service = f"Service {key} of graph {graph.metadata.name}"
    # A status from before the change may name the same number by chance.
    if graph.status.observed_generation >= graph.metadata.generation and present == desired:
        state, reason = "True", ScalingReason.SCALED
        text = f"{service} has {_replicas(desired)}"
    else:
        state, reason = "False", ScalingReason.SCALING
        # No count here: it is in `replicas`, and each new text would be one more write.
        text = f"{service} is scaling to {_replicas(desired)}"
    ready = new_condition(adapter, "Ready", state, reason, text)
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
    """The status with the observed replicas and the selector, whether the adapter acts or not."""
    key = spec.dgd_ref.service_name
    service = graph.status.services.get(key) if graph else None
    present = service.replicas if service else None
    status = replace(adapter.status, observed_generation=adapter.metadata.generation, replicas=present)
    if graph and key in graph.spec.services:
        largest = max(spec.replicas, present or 0)
        return replace(status, selector=selector(graph, key, largest))
    return status


def _replicas(number: int) -> str:
    return "1 replica" if number == 1 else f"{number} replicas"
