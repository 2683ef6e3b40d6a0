"""The progress of a managed rollout of workers, for the graph's status, and its result, reported once.

Nothing else keeps its beginning and its end: they are taken over from the stored status for as long as that
is about the same revision. A status is written onto the version that it was computed from, so each step from
one status to the next is written by one process, once. Nothing is counted twice.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.annotations import is_paused
from dynamo_graphs.api.component import ServiceReplicaStatus
from dynamo_graphs.api.graph import DynamoGraphDeployment, RollingUpdateStatus
from dynamo_graphs.api.revision import digits
from dynamo_graphs.plan.revisions import Member, Revisions
from dynamo_graphs.plan.rollout_plan import Rollout
from dynamo_graphs.status.reasons import GraphReason
from kube_runtime.types.meta import condition

PENDING, IN_PROGRESS, COMPLETED = "Pending", "InProgress", "Completed"


def rolling_update(
    graph: DynamoGraphDeployment, rollout: Rollout, now: str
) -> RollingUpdateStatus | None:
    """`status.rollingUpdate` of a graph as it is stored; `now` is RFC 3339.

    None means: there has been no rollout.
    """
    stored = graph.status.rolling_update
    is_open = stored is not None and stored.phase in (PENDING, IN_PROGRESS)
    if not rollout.is_under_way and not is_open:
        return stored
    to = rollout.target_hash
    if stored is not None and not rollout.is_under_way and not to:
        # There are no generations any more, so nothing else could end it. It would block restarts forever.
        # The one that it went to may never have had a pod; no service is in a generation.
        return msgspec.structs.replace(
            stored, phase=COMPLETED, end_time=now, to_hash="", updated_services=()
        )
    ongoing = stored if stored is not None and is_open and stored.to_hash == to else None
    is_noted = graph.metadata.annotations.get(labels.CURRENT_WORKER_HASH, "") == to
    is_over = not rollout.is_under_way and is_noted
    is_begun = is_over or bool(rollout.revisions.new or rollout.revisions.successors)
    return RollingUpdateStatus(
        phase=COMPLETED if is_over else IN_PROGRESS if is_begun else PENDING,
        start_time=ongoing.start_time if ongoing else now,
        end_time=now if is_over else None,
        updated_services=rollout.through,
        from_hash=ongoing.from_hash if ongoing else _left(rollout.revisions, to),
        to_hash=to,
    )


def replacing(rollout: Rollout) -> dict[str, str]:
    """Why a graph is not ready while its workers are replaced: by the names of old components."""
    return {member.name: _why_still_there(member, rollout) for member in rollout.revisions.old}


def _why_still_there(old: Member, rollout: Rollout) -> str:
    scale, going = old.scale, rollout.leaving.get(old.name, 0)
    if is_paused(old.component) and (scale.replicas or scale.pods or going):
        return (
            f"it belongs to an older revision and is paused (annotation {labels.PAUSED}), so "
            "its pods stay"
        )
    if not scale.replicas and (left := max(scale.pods, going)):
        return f"its last pods are terminating ({left})"
    if not scale.replicas:
        return "it has no pods left and is deleted once all services are replaced"
    heirs = (heir.name for heir in rollout.revisions.successors if heir.service == old.service)
    generation = f"worker revision {rollout.target_hash}" if rollout.target_hash else ""
    return f"{next(heirs, generation) or 'its successor'} is replacing it"


def with_old_generations(
    services: Mapping[str, ServiceReplicaStatus], old: Sequence[Member]
) -> dict[str, ServiceReplicaStatus]:
    """The counts of services over all generations; what is updated is what the newest one has."""
    return {
        key: _sum(counts, [member for member in old if member.service == key])
        for key, counts in services.items()
    }


def _sum(new: ServiceReplicaStatus, old: Iterable[Member]) -> ServiceReplicaStatus:
    reported = (member.component.status.service for member in old)
    old_counts = [counts for counts in reported if counts is not None]
    if not old_counts:
        return new
    ready = (counts.ready_replicas for counts in (new, *old_counts))
    available = (counts.available_replicas for counts in (new, *old_counts))
    return msgspec.structs.replace(
        new,
        replicas=sum(counts.replicas for counts in (new, *old_counts)),
        ready_replicas=sum(count or 0 for count in ready),
        available_replicas=sum(count or 0 for count in available),
        component_names=tuple(counts.component_name for counts in (new, *old_counts)),
    )


def _left(revisions: Revisions, to: str) -> str:
    """The generation that is left behind: what is on record, or the newest of those that go."""
    if revisions.current != to or not revisions.old:
        return revisions.current
    newest = revisions.old[-1]
    return digits(newest.content) or newest.suffix


class RolloutResult(StrEnum):
    """How a rollout began, ended, or stood still."""

    STARTED = "started"
    COMPLETED = "completed"
    SUPERSEDED = "superseded"
    """The workers were changed again, or back, before it was complete."""
    DEADLINE_EXCEEDED = "deadline_exceeded"
    """It stalled for the whole deadline. It continues, and may be complete later."""


def rollout_results(
    before: DynamoGraphDeployment, after: DynamoGraphDeployment
) -> Iterator[RolloutResult]:
    """What a written status says of rollouts that the one before did not; nothing as a rule."""
    old, new = _open(before), _open(after)
    if old is not None and _target(old) != _target(after.status.rolling_update):
        yield RolloutResult.SUPERSEDED
    elif old is not None and new is None:
        yield RolloutResult.COMPLETED
    if new is not None and (old is None or _target(old) != _target(new)):
        yield RolloutResult.STARTED
    if new is not None and _is_late(after) and not _is_late(before):
        yield RolloutResult.DEADLINE_EXCEEDED


def _open(graph: DynamoGraphDeployment) -> RollingUpdateStatus | None:
    """The rollout in progress."""
    rollout = graph.status.rolling_update
    return rollout if rollout is not None and rollout.phase in (PENDING, IN_PROGRESS) else None


def _target(rollout: RollingUpdateStatus | None) -> str:
    """The generation that it goes to; "" is that of workers which are in none."""
    return (rollout.to_hash if rollout is not None else None) or ""


def _is_late(graph: DynamoGraphDeployment) -> bool:
    progressing = condition(graph.status.conditions, "Progressing")
    return progressing is not None and progressing.reason == GraphReason.DEADLINE_EXCEEDED
