"""The status of a scaling adapter: whether it acts, and the replicas that it reports to autoscalers.

An autoscaler computes from these numbers. So `replicas` is the observed number, never the requested one, and
absent until it is known.
"""

from msgspec.structs import replace

from dynamo_operator.features.scaling.api import (
    DynamoGraphDeploymentScalingAdapter,
    DynamoGraphDeploymentScalingAdapterSpec,
    DynamoGraphDeploymentScalingAdapterStatus,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.service import selector
from dynamo_operator.names import is_paused
from dynamo_operator.shared.conditions import ScalingReason
from kube_runtime.types.meta import new_condition


def held_status(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment | None,
    reason: ScalingReason,
    message: str,
) -> DynamoGraphDeploymentScalingAdapterStatus:
    """The status of an adapter that does not act; it keeps the last scaling."""
    state = "Unknown" if reason is ScalingReason.PAUSED else "False"
    ready = new_condition(adapter, "Ready", state, reason, message)
    if is_paused(adapter):
        return adapter.status.with_conditions([ready])
    status = _observed(adapter, spec, graph).with_conditions([ready])
    if reason is ScalingReason.REJECTED:  # the newest spec was not applied
        return replace(status, observed_generation=adapter.status.observed_generation)
    return status


def acting_status(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment,
    scaled_at: str | None = None,
    *,
    is_written: bool = False,
) -> DynamoGraphDeploymentScalingAdapterStatus:
    """The status of an adapter whose replicas are in the graph's spec; with `is_written` they get there now.

    `scaled_at` is when they were written; None if they were there before.
    """
    status = _observed(adapter, spec, graph)
    key, desired, present = spec.dgd_ref.service_name, spec.replicas, status.replicas
    service = f"Service {key} of graph {graph.metadata.name}"
    # A status from before the change may name the same number by chance.
    is_current = not is_written and graph.status.observed_generation >= graph.metadata.generation
    if is_current and present == desired:
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
