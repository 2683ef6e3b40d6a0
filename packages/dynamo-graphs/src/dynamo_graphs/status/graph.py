"""The status of a DynamoGraphDeployment, put together from its services.

It names one cause out of many services with many pods, in the same words as long as the cause is the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

from msgspec import structs

from dynamo_graphs.api.deployment_config import as_configured
from dynamo_graphs.api.devices import gpus
from dynamo_graphs.api.framework import frameworks
from dynamo_graphs.api.graph import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentStatus,
)
from dynamo_graphs.plan.suspension import SuspensionReason
from dynamo_graphs.status.conditions import MESSAGE_LIMIT, new_condition
from dynamo_graphs.status.progress import GraphProgress, goal_hash, graph_progress
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.status.service import ServiceView, cause, is_updating, unexplained
from kube_runtime.apply.result import Blocked, Obstacle
from kube_runtime.text import fitted
from kube_runtime.types.meta import Condition, condition

_OBSTACLE_REASONS = {
    Obstacle.NAME_CONFLICT: GraphReason.NAME_CONFLICT,
    Obstacle.REJECTED: GraphReason.REJECTED,
    Obstacle.NOT_SERVED: GraphReason.FAILED,
    Obstacle.NOT_ALLOWED: GraphReason.NOT_ALLOWED,
    Obstacle.FORBIDDEN: GraphReason.API_FORBIDDEN,
}

_AT_ZERO = frozenset((SuspensionReason.SUSPENDING, SuspensionReason.SUSPENDED))
"""Without `RESUMING`: a graph that resumes is like any other that is not ready yet."""


class GraphState(StrEnum):
    """`status.state`."""

    INITIALIZING = "initializing"
    PENDING = "pending"
    SUCCESSFUL = "successful"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class GraphStatus:
    """A status to write, and when it may differ without a change of any object; None means never."""

    status: DynamoGraphDeploymentStatus
    requeue_after_seconds: float | None = None


def graph_status(
    graph: DynamoGraphDeployment,
    services: Mapping[str, ServiceView],
    blocked: Sequence[Blocked],
    *,
    now: datetime,
    suspended: Condition | None = None,
) -> GraphStatus:
    """The status after an apply.

    `graph` has the desired replicas in its spec, and `services` are by its keys. `suspended` is its condition
    `Suspended`; None if it was never suspended.
    """
    is_blocked = any(not obstacle.passes_by_itself for obstacle in blocked)
    is_suspended = suspended is not None and suspended.reason in _AT_ZERO and not is_blocked
    suspension = suspended.reason if suspended and is_suspended else None
    progress = _progress(graph, services, blocked, now=now, suspension=suspension)
    views = _explained(graph, services, is_overdue=progress.is_overdue)
    unready = {key: view for key, view in views.items() if not view.is_ready}
    state, reason, text = _state_and_reason(graph, views, unready, blocked)
    if suspended and suspension:
        state, reason, text = GraphState.PENDING, GraphReason.SUSPENDED, suspended.message
    ready = ready_condition(graph, state, reason, text)
    serving = 0 if suspension == SuspensionReason.SUSPENDED else len(views) - len(unready)
    observed, generation = graph.status.observed_generation, graph.metadata.generation
    status = structs.replace(
        graph.status,
        state=str(state),
        conditions=(ready, _progressing(graph, views, progress, suspension)),
        services={key: view.counts for key, view in views.items()},
        backend_framework=frameworks(graph),
        ready_services=f"{serving}/{len(views)}",
        gpus=sum(
            gpus(as_configured(graph, key)) * service.nodes * service.desired_replicas
            for key, service in graph.spec.services.items()
        ),
        progress=progress.stored,
        # The newest spec that was applied without an obstacle.
        observed_generation=observed if is_blocked else generation,
    )
    times = [
        progress.requeue_after_seconds,
        *(view.requeue_after_seconds for view in views.values()),
    ]
    return GraphStatus(
        status, min((seconds for seconds in times if seconds is not None), default=None)
    )


def _progress(
    graph: DynamoGraphDeployment,
    services: Mapping[str, ServiceView],
    blocked: Sequence[Blocked],
    *,
    now: datetime,
    suspension: str | None,
) -> GraphProgress:
    """The progress of the graph. `suspension` is the reason of `Suspended`; None if it is not suspended."""
    is_ready = not blocked and all(view.is_ready for view in services.values())
    is_done = is_ready if suspension is None else suspension == SuspensionReason.SUSPENDED
    ready = sum(view.ready_of_newest for view in services.values())
    return graph_progress(
        graph.status.progress,
        ready=None if is_done else ready,
        generation=graph.metadata.generation,
        goal=goal_hash(graph, is_suspending=suspension is not None),
        now=now,
        deadline_seconds=graph.spec.progress_deadline_seconds,
    )


def _state_and_reason(
    graph: DynamoGraphDeployment,
    views: Mapping[str, ServiceView],
    unready: Mapping[str, ServiceView],
    blocked: Sequence[Blocked],
) -> tuple[GraphState, GraphReason, str]:
    """`status.state`, and reason and message of `Ready`."""
    if lasting := [obstacle for obstacle in blocked if not obstacle.passes_by_itself]:
        text = "; ".join(obstacle.message for obstacle in lasting)
        return GraphState.FAILED, _OBSTACLE_REASONS[lasting[0].obstacle], text
    waiting = GraphState.INITIALIZING if _is_new(graph, views) else GraphState.PENDING
    if blocked:
        text = "; ".join(obstacle.message for obstacle in blocked)
        return waiting, GraphReason.SOME_NOT_READY, text
    if unready:
        return waiting, *_unready_reason(unready)
    return GraphState.SUCCESSFUL, GraphReason.ALL_READY, "All resources are ready"


def _is_new(graph: DynamoGraphDeployment, services: Mapping[str, ServiceView]) -> bool:
    """Whether no workload exists, and none ever did."""
    is_first = graph.status.state in (None, GraphState.INITIALIZING)
    return is_first and bool(services) and not any(view.exists for view in services.values())


def _unready_reason(unready: Mapping[str, ServiceView]) -> tuple[GraphReason, str]:
    """Reason and message of a graph with services that are not ready."""
    reasons = {view.counts.reason for view in unready.values() if view.counts.reason is not None}
    if not reasons:
        causes: dict[str, set[str]] = defaultdict(set)
        for view in unready.values():
            causes[view.name].update(view.obstacles)
        lines = (f"{name}: {'; '.join(sorted(causes[name]))}" for name in sorted(causes))
        return GraphReason.SOME_NOT_READY, f"Resources not ready: {'; '.join(lines)}"
    texts = [
        f"{key}: {view.ready_of_newest}/{view.desired} ready; {view.counts.message}"
        for key, view in sorted(unready.items())
    ]
    reason = GraphReason(reasons.pop()) if len(reasons) == 1 else GraphReason.MIXED
    return reason, fitted(texts, MESSAGE_LIMIT, between=" | ")


def _explained(
    graph: DynamoGraphDeployment, services: Mapping[str, ServiceView], *, is_overdue: bool
) -> dict[str, ServiceView]:
    """The services, each with the reason and the message that its status shows.

    `updating` hides the pods' own reason during a rollout, but not once the graph `is_overdue`.
    """
    is_same = graph.status.observed_generation == graph.metadata.generation
    ready = condition(graph.status.conditions, "Ready")
    was_ready = ready is not None and ready.status == "True"
    views = {}
    for key, view in sorted(services.items()):
        if view.is_ready:
            views[key] = replace(view, counts=unexplained(view.counts))
            continue
        updates = view.counts.reason == GraphReason.UPDATING or is_updating(
            graph.status.services.get(key),
            is_same=is_same,
            was_ready=was_ready,
            is_rolling=view.is_rolling,
            has_older=view.has_older,
        )
        reason = cause(view.counts.reason, updates=updates and not is_overdue)
        message = view.counts.message or f"{view.name}: {'; '.join(view.obstacles)}"
        counts = structs.replace(view.counts, reason=reason, message=message)
        views[key] = replace(view, counts=counts)
    return views


def _progressing(
    graph: DynamoGraphDeployment,
    services: Mapping[str, ServiceView],
    progress: GraphProgress,
    suspension: str | None,
) -> Condition:
    """`Progressing`: the progress of the graph towards its newest spec."""
    reached = progress.stored
    if reached is None:
        is_suspended = suspension == SuspensionReason.SUSPENDED
        text = "The graph is suspended" if is_suspended else "All services run the newest spec"
        return new_condition(graph, "Progressing", "True", GraphReason.UPDATE_COMPLETE, text)
    if suspension is not None:
        text = f"Suspending the graph, since {reached.since}"
    else:
        desired = sum(view.desired for view in services.values())
        text = (
            f"{reached.ready_replicas} of {desired} replicas of the newest spec are ready, "
            f"since {reached.since}"
        )
    if progress.is_overdue:
        text, reason = f"No progress within the deadline: {text}", GraphReason.DEADLINE_EXCEEDED
        return new_condition(graph, "Progressing", "False", reason, text)
    return new_condition(graph, "Progressing", "True", GraphReason.UPDATING, text)


def ready_condition(
    graph: DynamoGraphDeployment, state: GraphState, reason: GraphReason, message: str
) -> Condition:
    """`Ready`, which is true in the state `successful` only."""
    ready = "True" if state is GraphState.SUCCESSFUL else "False"
    return new_condition(graph, "Ready", ready, reason, message)
