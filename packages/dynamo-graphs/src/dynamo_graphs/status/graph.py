"""The status of a DynamoGraphDeployment, put together from its services.

It names one cause, out of many services with many pods, and keeps naming it in the same words as long as it
is the same.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum

import msgspec

from dynamo_graphs.api.deployment_config import as_configured
from dynamo_graphs.api.devices import gpus
from dynamo_graphs.api.framework import frameworks
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.plan.suspension import SuspensionReason
from dynamo_graphs.status.components import wanted_replicas
from dynamo_graphs.status.progress import Advance, advance, goal_hash
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.status.service import ServiceView, cause, explained, service_json, unexplained
from dynamo_graphs.validation import Problem
from kube_runtime.apply.result import Blocked, Obstacle
from kube_runtime.kind import Object
from kube_runtime.text import cut, fitted
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


class GraphState(StrEnum):
    """`status.state`."""

    INITIALIZING = "initializing"
    PENDING = "pending"
    SUCCESSFUL = "successful"
    FAILED = "failed"


def refused_status(graph: DynamoGraphDeployment, problems: Sequence[Problem]) -> Object:
    """The status of a graph whose spec cannot be used; service counts stay as they were."""
    begins = "Validation failed: "
    text = begins + fitted([str(each) for each in problems], _MESSAGE_LIMIT - len(begins))
    return stopped_status(graph, GraphState.FAILED, GraphReason.VALIDATION_FAILED, text)


def unavailable_status(graph: DynamoGraphDeployment, provider: str, forbidden: str = "") -> Object:
    """The status of a graph whose recorded provider is not there; counts stay as they were.

    `forbidden` says what is installed and may not be used; "" means that the provider is not installed.
    """
    text = f'The workload provider "{provider}" of this graph is not available'
    text = f"{text}: {forbidden}" if forbidden else text
    return stopped_status(graph, GraphState.FAILED, GraphReason.PROVIDER_UNAVAILABLE, text)


def stopped_status(
    graph: DynamoGraphDeployment, state: GraphState, reason: GraphReason, text: str
) -> Object:
    """The status of a graph for which nothing is done until a user acts.

    `observedGeneration` stays at the last spec that was carried out (specification `beyond` S6); which one
    was refused is in the conditions.
    """
    said = graph_condition(graph, state, reason, text)
    (ready,) = said["conditions"]
    standing = msgspec.structs.replace(ready, type="Progressing", status="False")
    return {**said, "conditions": [ready, standing], "progress": None}


@dataclass(frozen=True, slots=True)
class GraphStatus:
    """A status to write, and when it may be another one although nothing has changed.

    None means: never.
    """

    status: Object
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
    is_hindered = any(not each.passes_by_itself for each in blocked)
    is_zeroed = suspended is not None and suspended.reason in _AT_ZERO and not is_hindered
    zeroed = suspended.reason if suspended and is_zeroed else None
    done = _advance(graph, services, blocked, now=now, zeroed=zeroed)
    seen = _explained(graph, services, is_overdue=done.is_exceeded)
    late = {key: each for key, each in seen.items() if not each.is_ready}
    state, reason, text = _verdict(graph, seen, late, blocked)
    if suspended and zeroed:
        state, reason, text = GraphState.PENDING, GraphReason.SUSPENDED, suspended.message
    said = graph_condition(graph, state, reason, text)
    serving = 0 if zeroed == SuspensionReason.SUSPENDED else len(seen) - len(late)
    status: Object = {
        **said,
        "conditions": [*said["conditions"], _progressing(graph, seen, done, zeroed)],
        "services": {key: service_json(each.counts) for key, each in seen.items()},
        "backendFramework": frameworks(graph),
        "readyServices": f"{serving}/{len(seen)}",
        "gpus": sum(
            gpus(as_configured(graph, key)) * each.nodes * wanted_replicas(each)
            for key, each in graph.spec.services.items()
        ),
        "progress": msgspec.to_builtins(done.progress) if done.progress else None,
    }
    if not is_hindered:  # it shows that nothing blocked that spec
        status["observedGeneration"] = graph.metadata.generation
    times = [done.requeue_after_seconds, *(each.requeue_after_seconds for each in seen.values())]
    return GraphStatus(status, min((each for each in times if each is not None), default=None))


def _advance(
    graph: DynamoGraphDeployment,
    services: Mapping[str, ServiceView],
    blocked: Sequence[Blocked],
    *,
    now: datetime,
    zeroed: str | None,
) -> Advance:
    """Progress of the graph. `zeroed` is the progress of its suspension; None if it is not suspended."""
    is_ready = not blocked and all(each.is_ready for each in services.values())
    is_arrived = is_ready if zeroed is None else zeroed == SuspensionReason.SUSPENDED
    ready = sum(each.ready_of_newest for each in services.values())
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
    if hard := [each for each in blocked if not each.passes_by_itself]:
        text = "; ".join(each.message for each in hard)
        return GraphState.FAILED, _OBSTACLE_REASONS[hard[0].obstacle], text
    waiting = GraphState.INITIALIZING if _is_new(graph, services) else GraphState.PENDING
    if blocked:
        return waiting, GraphReason.SOME_NOT_READY, "; ".join(each.message for each in blocked)
    if late:
        return waiting, *_why(late)
    return GraphState.SUCCESSFUL, GraphReason.ALL_READY, "All resources are ready"


def _is_new(graph: DynamoGraphDeployment, services: Mapping[str, ServiceView]) -> bool:
    """Whether nothing has been seen of any workload, now or before."""
    is_first = graph.status.state in (None, GraphState.INITIALIZING)
    return is_first and bool(services) and not any(each.exists for each in services.values())


def _why(late: Mapping[str, ServiceView]) -> tuple[GraphReason, str]:
    """Reason and message of a graph with services that are not ready."""
    found = {each.counts.reason for each in late.values() if each.counts.reason is not None}
    if not found:
        causes: dict[str, set[str]] = defaultdict(set)
        for each in late.values():
            causes[each.name].update(each.obstacles)
        told = (f"{name}: {'; '.join(sorted(causes[name]))}" for name in sorted(causes))
        return GraphReason.SOME_NOT_READY, f"Resources not ready: {'; '.join(told)}"
    texts = [
        f"{key}: {each.ready_of_newest}/{each.wanted} ready; {each.counts.message}"
        for key, each in sorted(late.items())
    ]
    reason = GraphReason(found.pop()) if len(found) == 1 else GraphReason.MIXED
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
    found = {}
    for key, each in sorted(services.items()):
        if each.is_ready:
            found[key] = replace(each, counts=unexplained(each.counts))
            continue
        before = graph.status.services.get(key)
        was_updating = before is not None and before.reason == GraphReason.UPDATING
        is_updating = (
            each.has_older
            or (was_updating and (is_same or each.is_rolling))
            or (was_ready and each.is_rolling)
            or each.counts.reason == GraphReason.UPDATING
        )
        reason = cause(each.counts.reason, is_updating=is_updating and not is_overdue)
        message = each.counts.message or f"{each.name}: {'; '.join(each.obstacles)}"
        found[key] = replace(each, counts=explained(each.counts, reason, message))
    return found


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
        reached, wanted = done.progress, sum(each.wanted for each in services.values())
        status, reason = "True", GraphReason.UPDATING
        text = (
            f"{reached.ready_replicas} of {wanted} replicas of the newest spec are ready, "
            f"since {reached.since}"
        )
    if done.is_exceeded:
        status, reason = "False", GraphReason.DEADLINE_EXCEEDED
        text = f"No progress within the deadline: {text}"
    generation = graph.metadata.generation
    return Condition("Progressing", status, reason, text, observed_generation=generation)


# A condition's message may have 32,768 characters; this leaves a listing readable.
_MESSAGE_LIMIT = 1024


def graph_condition(
    graph: DynamoGraphDeployment, state: GraphState, reason: GraphReason, message: str
) -> Object:
    """The part of the status that says how the graph is: its state and `Ready`."""
    generation = graph.metadata.generation
    text = cut(message, _MESSAGE_LIMIT)
    ready = "True" if state is GraphState.SUCCESSFUL else "False"
    return {
        "state": str(state),
        "conditions": [Condition("Ready", ready, reason, text, observed_generation=generation)],
    }
