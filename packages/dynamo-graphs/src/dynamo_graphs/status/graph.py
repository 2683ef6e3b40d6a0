"""The status of a DynamoGraphDeployment, put together from its services.

It names one cause, out of many services with many pods, and keeps naming it in the same words as long as it
is the same.

Whether the graph still progresses survives a restart of the operator without constant writes: the best state
so far, and when it was reached, is in the status, and changes only when more is reached or the spec is
another. Replicas do not make it another: an adapter that scales all day would keep the deadline from ever
being reached.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

import msgspec
from msgspec import structs

from dynamo_graphs.api import names
from dynamo_graphs.api.deployment_config import as_configured
from dynamo_graphs.api.devices import gpus
from dynamo_graphs.api.framework import frameworks
from dynamo_graphs.api.graph import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentStatus,
    ProgressStatus,
)
from dynamo_graphs.plan.suspension import SuspensionReason
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.status.service import ServiceView, cause, is_updating, unexplained
from dynamo_graphs.validation import Problem
from kube_runtime.apply.result import Blocked, Obstacle
from kube_runtime.text import cut, fitted
from kube_runtime.times import rfc3339
from kube_runtime.types.meta import Condition, condition

_OBSTACLE_REASONS = {
    Obstacle.NAME_CONFLICT: GraphReason.NAME_CONFLICT,
    Obstacle.REJECTED: GraphReason.REJECTED,
    Obstacle.NOT_SERVED: GraphReason.FAILED,
    Obstacle.NOT_ALLOWED: GraphReason.NOT_ALLOWED,
    Obstacle.FORBIDDEN: GraphReason.API_FORBIDDEN,
}

_AT_ZERO = frozenset((SuspensionReason.SUSPENDING, SuspensionReason.SUSPENDED))
"""A graph that resumes is like any other that is not ready yet."""

_MESSAGE_LIMIT = 1024
"""A condition's message may have 32,768 characters; this leaves a listing readable."""


class GraphState(StrEnum):
    """`status.state`."""

    INITIALIZING = "initializing"
    PENDING = "pending"
    SUCCESSFUL = "successful"
    FAILED = "failed"


DEADLINE_SECONDS = 7800
"""What a graph has that says nothing: more than the two hours that a model may take to load."""


@dataclass(frozen=True, slots=True)
class Advance:
    """Progress of a graph, and whether its deadline has passed.

    No `progress`: nothing is left to reach. No `requeue_after_seconds`: time alone changes nothing.
    """

    progress: ProgressStatus | None = None
    is_exceeded: bool = False
    requeue_after_seconds: float | None = None


def advance(
    stored: ProgressStatus | None,
    *,
    ready: int | None,
    generation: int,
    goal: str,
    now: datetime,
    deadline_seconds: int | None,
) -> Advance:
    """The progress to store now. `ready` counts replicas of the newest spec; None once all is ready.

    `goal` is the `goal_hash` of what is desired.
    """
    if ready is None:
        return Advance()
    deadline = DEADLINE_SECONDS if deadline_seconds is None else deadline_seconds
    if stored is None or not _is_about(stored, goal, generation) or ready > stored.ready_replicas:
        time = rfc3339(now)
        return Advance(
            ProgressStatus(ready, time, generation, goal), requeue_after_seconds=float(deadline)
        )
    left = deadline - (now - datetime.fromisoformat(stored.since)).total_seconds()
    if left <= 0:
        return Advance(stored, is_exceeded=True)
    return Advance(stored, requeue_after_seconds=left)


def _is_about(stored: ProgressStatus, goal: str, generation: int) -> bool:
    """Whether it was the same that was to be reached. Older CRDs drop the hash; the generation is left."""
    if stored.spec_hash is None:
        return stored.observed_generation == generation
    return stored.spec_hash == goal


def goal_hash(graph: DynamoGraphDeployment, *, is_suspending: bool) -> str:
    """Hash of the desired state, without replica counts."""
    services = {
        key: structs.replace(service, replicas=None) for key, service in graph.spec.services.items()
    }
    spec = structs.replace(graph.spec, services=services, replicas=None)
    return names.short_hash(f"{is_suspending} {msgspec.json.encode(spec, order='deterministic')!r}")


def refused_status(
    graph: DynamoGraphDeployment, problems: Sequence[Problem]
) -> DynamoGraphDeploymentStatus:
    """The status of a graph whose spec cannot be used; service counts stay as they were."""
    begins = "Validation failed: "
    text = begins + fitted([str(problem) for problem in problems], _MESSAGE_LIMIT - len(begins))
    return stopped_status(graph, GraphState.FAILED, GraphReason.VALIDATION_FAILED, text)


def unavailable_status(
    graph: DynamoGraphDeployment, provider: str, forbidden: str = ""
) -> DynamoGraphDeploymentStatus:
    """The status of a graph whose recorded provider is not there; counts stay as they were.

    `forbidden` says what is installed and may not be used; "" means that the provider is not installed.
    """
    text = f'The workload provider "{provider}" of this graph is not available'
    text = f"{text}: {forbidden}" if forbidden else text
    return stopped_status(graph, GraphState.FAILED, GraphReason.PROVIDER_UNAVAILABLE, text)


def stopped_status(
    graph: DynamoGraphDeployment, state: GraphState, reason: GraphReason, text: str
) -> DynamoGraphDeploymentStatus:
    """The status of a graph for which nothing is done until a user acts.

    `observedGeneration` stays at the last spec that was carried out; which one was refused
    is in the conditions.
    """
    ready = ready_condition(graph, state, reason, text)
    standing = structs.replace(ready, type="Progressing", status="False")
    return structs.replace(
        graph.status, state=str(state), conditions=(ready, standing), progress=None
    )


@dataclass(frozen=True, slots=True)
class GraphStatus:
    """A status to write, and when it may be another one although nothing has changed.

    None means: never.
    """

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
    """The status after an apply. `graph` has the replicas that are wanted now; `services` are by its keys.

    `suspended` is the graph's condition of that name. None means: it never was.
    """
    is_hindered = any(not blocked_object.passes_by_itself for blocked_object in blocked)
    is_zeroed = suspended is not None and suspended.reason in _AT_ZERO and not is_hindered
    zeroed = suspended.reason if suspended and is_zeroed else None
    done = _advance(graph, services, blocked, now=now, zeroed=zeroed)
    seen = _explained(graph, services, is_overdue=done.is_exceeded)
    late = {key: view for key, view in seen.items() if not view.is_ready}
    state, reason, text = _verdict(graph, seen, late, blocked)
    if suspended and zeroed:
        state, reason, text = GraphState.PENDING, GraphReason.SUSPENDED, suspended.message
    ready = ready_condition(graph, state, reason, text)
    serving = 0 if zeroed == SuspensionReason.SUSPENDED else len(seen) - len(late)
    observed, generation = graph.status.observed_generation, graph.metadata.generation
    status = structs.replace(
        graph.status,
        state=str(state),
        conditions=(ready, _progressing(graph, seen, done, zeroed)),
        services={key: view.counts for key, view in seen.items()},
        backend_framework=frameworks(graph),
        ready_services=f"{serving}/{len(seen)}",
        gpus=sum(
            gpus(as_configured(graph, key)) * service.nodes * service.desired_replicas
            for key, service in graph.spec.services.items()
        ),
        progress=done.progress,
        # It shows that nothing blocked that spec.
        observed_generation=observed if is_hindered else generation,
    )
    times = [done.requeue_after_seconds, *(view.requeue_after_seconds for view in seen.values())]
    return GraphStatus(
        status, min((seconds for seconds in times if seconds is not None), default=None)
    )


def _advance(
    graph: DynamoGraphDeployment,
    services: Mapping[str, ServiceView],
    blocked: Sequence[Blocked],
    *,
    now: datetime,
    zeroed: str | None,
) -> Advance:
    """Progress of the graph. `zeroed` is the progress of its suspension; None if it is not suspended."""
    is_ready = not blocked and all(view.is_ready for view in services.values())
    is_arrived = is_ready if zeroed is None else zeroed == SuspensionReason.SUSPENDED
    ready = sum(view.ready_of_newest for view in services.values())
    return advance(
        graph.status.progress,
        ready=None if is_arrived else ready,
        generation=graph.metadata.generation,
        goal=goal_hash(graph, is_suspending=zeroed is not None),
        now=now,
        deadline_seconds=graph.spec.progress_deadline_seconds,
    )


def _verdict(
    graph: DynamoGraphDeployment,
    services: Mapping[str, ServiceView],
    late: Mapping[str, ServiceView],
    blocked: Sequence[Blocked],
) -> tuple[GraphState, GraphReason, str]:
    """State, and reason and message of `Ready`."""
    if hard := [
        blocked_object for blocked_object in blocked if not blocked_object.passes_by_itself
    ]:
        text = "; ".join(blocked_object.message for blocked_object in hard)
        return GraphState.FAILED, _OBSTACLE_REASONS[hard[0].obstacle], text
    waiting = GraphState.INITIALIZING if _is_new(graph, services) else GraphState.PENDING
    if blocked:
        return (
            waiting,
            GraphReason.SOME_NOT_READY,
            "; ".join(blocked_object.message for blocked_object in blocked),
        )
    if late:
        return waiting, *_why(late)
    return GraphState.SUCCESSFUL, GraphReason.ALL_READY, "All resources are ready"


def _is_new(graph: DynamoGraphDeployment, services: Mapping[str, ServiceView]) -> bool:
    """Whether nothing has been seen of any workload, now or before."""
    is_first = graph.status.state in (None, GraphState.INITIALIZING)
    return is_first and bool(services) and not any(view.exists for view in services.values())


def _why(late: Mapping[str, ServiceView]) -> tuple[GraphReason, str]:
    """Reason and message of a graph with services that are not ready."""
    reasons = {view.counts.reason for view in late.values() if view.counts.reason is not None}
    if not reasons:
        causes: dict[str, set[str]] = defaultdict(set)
        for view in late.values():
            causes[view.name].update(view.obstacles)
        lines = (f"{name}: {'; '.join(sorted(causes[name]))}" for name in sorted(causes))
        return GraphReason.SOME_NOT_READY, f"Resources not ready: {'; '.join(lines)}"
    texts = [
        f"{key}: {view.ready_of_newest}/{view.desired} ready; {view.counts.message}"
        for key, view in sorted(late.items())
    ]
    reason = GraphReason(reasons.pop()) if len(reasons) == 1 else GraphReason.MIXED
    return reason, fitted(texts, _MESSAGE_LIMIT, between=" | ")


def _explained(
    graph: DynamoGraphDeployment, services: Mapping[str, ServiceView], *, is_overdue: bool
) -> dict[str, ServiceView]:
    """The services, each with the reason and the message that its status shows.

    An update explains nothing any more once the graph `is_overdue`, or when it is over.
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
    done: Advance,
    zeroed: str | None,
) -> Condition:
    """Whether the graph comes nearer to its newest spec."""
    status, reason, text = "True", GraphReason.UPDATE_COMPLETE, "All services run the newest spec"
    if zeroed == SuspensionReason.SUSPENDED:
        text = "The graph is suspended"
    if done.progress is not None and zeroed is not None:
        status, reason = "True", GraphReason.UPDATING
        text = f"Suspending the graph, since {done.progress.since}"
    elif done.progress is not None:
        reached, desired = done.progress, sum(view.desired for view in services.values())
        status, reason = "True", GraphReason.UPDATING
        text = (
            f"{reached.ready_replicas} of {desired} replicas of the newest spec are ready, "
            f"since {reached.since}"
        )
    if done.is_exceeded:
        status, reason = "False", GraphReason.DEADLINE_EXCEEDED
        text = f"No progress within the deadline: {text}"
    generation = graph.metadata.generation
    return Condition("Progressing", status, reason, text, observed_generation=generation)


def ready_condition(
    graph: DynamoGraphDeployment, state: GraphState, reason: GraphReason, message: str
) -> Condition:
    """`Ready`, which is true in the state `successful` only."""
    text, generation = cut(message, _MESSAGE_LIMIT), graph.metadata.generation
    ready = "True" if state is GraphState.SUCCESSFUL else "False"
    return Condition("Ready", ready, reason, text, observed_generation=generation)
