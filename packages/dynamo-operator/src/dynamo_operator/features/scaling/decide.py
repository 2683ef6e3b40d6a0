"""Decide what one reconcile of an adapter writes: the replicas of its service, and its status.

The adapter takes precedence over the graph's number.
"""

from dataclasses import dataclass

from dynamo_operator import labels, names
from dynamo_operator.component.api import has_adapter
from dynamo_operator.features.scaling.api import (
    DynamoGraphDeploymentScalingAdapter,
    DynamoGraphDeploymentScalingAdapterSpec,
    DynamoGraphDeploymentScalingAdapterStatus,
)
from dynamo_operator.features.scaling.status import acting_status, held_status
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.service import base_replicas
from dynamo_operator.names import is_paused
from dynamo_operator.shared.conditions import REJECTED_RETRY_SECONDS, ScalingReason
from kube_runtime.apply.result import Blocked, controls


@dataclass(frozen=True, slots=True)
class ScalingDecision:
    """What to write for an adapter: the `replicas` of its service, unless None, then its status.

    `event` is the text of the Event about it, a warning with `is_refused`. An `is_paced` status may wait.
    """

    status: DynamoGraphDeploymentScalingAdapterStatus
    replicas: int | None = None
    event: str = ""
    is_refused: bool = False
    is_paced: bool = False
    requeue_after_seconds: float | None = None


def decide(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment | None,
    now: str,
) -> ScalingDecision:
    """Decide what to write for an adapter of a graph; None if that does not exist."""
    held: tuple[ScalingReason, str] | None  # until a change of the adapter or of the graph
    if is_paused(adapter):
        held = ScalingReason.PAUSED, f"{labels.PAUSED} is true: the operator ignores this adapter"
    elif graph is None:
        held = ScalingReason.GRAPH_NOT_FOUND, f"DynamoGraphDeployment {spec.dgd_ref.name} not found"
    elif (held := _hold(adapter, spec, graph)) is None:
        return _scale(adapter, spec, graph, now)
    return ScalingDecision(held_status(adapter, spec, graph, *held))


def _scale(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment,
    now: str,
) -> ScalingDecision:
    before, reported = base_replicas(graph, spec.dgd_ref.service_name), adapter.status.desired_replicas
    if before != spec.replicas:
        status = acting_status(adapter, spec, graph, now, is_written=True)
        return ScalingDecision(status, spec.replicas, _scaled_text(adapter, spec, before))
    # A number in the graph that our status lacks was written just before the process was stopped.
    is_scaled = reported is not None and reported != spec.replicas
    status = acting_status(adapter, spec, graph, now if is_scaled else None)
    return ScalingDecision(status, is_paced=not is_scaled)


def refused(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment,
    blocked: Blocked,
) -> ScalingDecision:
    """Decide what to write when the API server, or an admission webhook, refuses the number."""
    text = f"Failed to update DGD {blocked.message.removeprefix(f'{blocked.kind} ')}"
    status = held_status(adapter, spec, graph, ScalingReason.REJECTED, text)
    return ScalingDecision(status, event=text, is_refused=True, requeue_after_seconds=REJECTED_RETRY_SECONDS)


def _hold(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    graph: DynamoGraphDeployment,
) -> tuple[ScalingReason, str] | None:
    """Why the adapter does not act; None if it does.

    Of several adapters for one service, the one that the operator created for the graph acts.
    """
    name, key = spec.dgd_ref.name, spec.dgd_ref.service_name
    own_name = names.component_name(name, key)
    if key not in graph.spec.services:
        services = ", ".join(sorted(graph.spec.services))
        text = f"Graph {name} has no service {key} (services: {services})"
        return ScalingReason.SERVICE_NOT_FOUND, text
    if not has_adapter(graph.spec.services[key]):
        text = f"spec.services.{key}.scalingAdapter.enabled of graph {name} is not true"
        return ScalingReason.DISABLED, text
    if not controls(graph, adapter) or adapter.metadata.name != own_name:
        text = f"The adapter {own_name}, which the operator created, scales service {key} of graph {name}"
        return ScalingReason.SUPERSEDED, f"{text}; delete this one, which has no effect"
    if is_paused(graph):
        return ScalingReason.PAUSED, f"{labels.PAUSED} is true on graph {name}"
    if graph.metadata.annotations.get(labels.SUSPEND) == "true":
        return ScalingReason.SUSPENDED, f"Graph {name} is suspended; the adapter keeps its number"
    return None


def _scaled_text(
    adapter: DynamoGraphDeploymentScalingAdapter,
    spec: DynamoGraphDeploymentScalingAdapterSpec,
    before: int,
) -> str:
    """The text of the Event on the adapter and on the graph, with the author of the change."""
    text = f"Scaled service {spec.dgd_ref.service_name} from {before} to {spec.replicas} replicas"
    if adapter.status.desired_replicas == spec.replicas:
        return f"{text}: {adapter.KIND.name} {adapter.metadata.name} owns its number; scale that instead"
    author = adapter.metadata.replicas_set_by
    return f"{text}, requested by {author}" if author else text
