"""Whether a graph still progresses towards its newest spec, or has stalled.

This survives a restart of the operator without constant writes: the best state so far, and when it was
reached, is in the status, and changes only when more is reached or the spec is another. Replicas do not
make it another: an adapter that scales all day would keep the deadline from ever being reached.
"""

from dataclasses import dataclass
from datetime import datetime

import msgspec

from dynamo_graphs.api import names
from dynamo_graphs.api.graph import DynamoGraphDeployment, ProgressStatus
from kube_runtime.times import rfc3339

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

    `goal` is the `goal_hash` of what is wanted.
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
        key: msgspec.structs.replace(each, replicas=None)
        for key, each in graph.spec.services.items()
    }
    spec = msgspec.structs.replace(graph.spec, services=services, replicas=None)
    return names.short_hash(f"{is_suspending} {msgspec.json.encode(spec, order='deterministic')!r}")
