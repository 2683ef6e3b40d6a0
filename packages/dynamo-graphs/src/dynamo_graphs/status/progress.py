"""The progress of a graph towards its newest spec, and its progress deadline.

The status records the most ready replicas so far and since when; it changes only when more become ready or
the spec changes. So it survives a restart of the operator without constant writes. A change of replicas does
not restart the clock: an adapter that scales all day would postpone the deadline forever.
"""

from dataclasses import dataclass
from datetime import datetime

import msgspec
from msgspec import structs

from dynamo_graphs.api import names
from dynamo_graphs.api.graph import DynamoGraphDeployment, ProgressStatus
from kube_runtime.times import rfc3339, seconds_between

DEADLINE_SECONDS = 7800
"""The default deadline: more than the two hours that a model may take to load."""


@dataclass(frozen=True, slots=True)
class GraphProgress:
    """Progress of a graph, and whether its deadline has passed.

    `stored` goes into the status; None once the graph is ready. `requeue_after_seconds` is the time until the
    deadline; None if none is running.
    """

    stored: ProgressStatus | None = None
    is_overdue: bool = False
    requeue_after_seconds: float | None = None


def graph_progress(
    stored: ProgressStatus | None,
    *,
    ready: int | None,
    generation: int,
    goal: str,
    now: datetime,
    deadline_seconds: int | None,
) -> GraphProgress:
    """The progress from now on.

    `stored` is that in the status. `ready` counts replicas of the newest spec; None once the graph is ready.
    `goal` is the `goal_hash` of the desired state.
    """
    if ready is None:
        return GraphProgress()
    deadline = DEADLINE_SECONDS if deadline_seconds is None else deadline_seconds
    passed = seconds_between(stored.since, now) if stored else None
    if (
        stored is None
        or passed is None
        or not _is_about(stored, goal, generation)
        or ready > stored.ready_replicas
    ):
        time = rfc3339(now)
        return GraphProgress(
            ProgressStatus(ready, time, generation, goal), requeue_after_seconds=float(deadline)
        )
    left = deadline - passed
    if left <= 0:
        return GraphProgress(stored, is_overdue=True)
    return GraphProgress(stored, requeue_after_seconds=left)


def _is_about(stored: ProgressStatus, goal: str, generation: int) -> bool:
    """Whether the goal is still the same. Older CRDs drop the hash, so then the generation decides."""
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
