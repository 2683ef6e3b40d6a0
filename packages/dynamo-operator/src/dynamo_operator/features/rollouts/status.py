"""The progress of a managed rollout of workers in the graph's status, and its results for the metrics.

Only the status records when a rollout started: it is taken over as long as the target revision is the same.
A status is written onto the resource version that it was computed from, so each transition happens once and
no result is counted twice.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum

import msgspec

from dynamo_operator import labels
from dynamo_operator.component.api import ServiceReplicaStatus
from dynamo_operator.features.rollouts.plan import Rollout
from dynamo_operator.features.rollouts.revisions import Member, digits
from dynamo_operator.graph.api import DynamoGraphDeployment, RollingUpdateStatus
from dynamo_operator.shared.conditions import GraphReason
from kube_runtime.types.meta import condition

PENDING, IN_PROGRESS, COMPLETED = "Pending", "InProgress", "Completed"


def rolling_update(graph: DynamoGraphDeployment, rollout: Rollout, now: str) -> RollingUpdateStatus | None:
    """`status.rollingUpdate` of the stored graph; None if there has been no rollout. `now` is RFC 3339."""
    stored = graph.status.rolling_update
    is_open = stored is not None and stored.phase in (PENDING, IN_PROGRESS)
    if not rollout.revisions.is_rolling_out and not is_open:
        return stored
    to = rollout.target_hash
    if stored is not None and not rollout.revisions.is_rolling_out and not to:
        # No revisions are left that could complete it, and an open rollout blocks restarts forever. Its
        # target may never have had a pod, so no service counts as updated.
        return msgspec.structs.replace(stored, phase=COMPLETED, end_time=now, to_hash="", updated_services=())
    ongoing = stored if stored is not None and is_open and stored.to_hash == to else None
    is_recorded = rollout.is_recorded(graph.metadata.annotations)
    is_over = not rollout.revisions.is_rolling_out and is_recorded
    revisions = rollout.revisions
    has_started = is_over or bool(revisions.new or revisions.successors)
    replaced = revisions.current
    if revisions.current == to and revisions.old:
        newest = revisions.old[-1]
        replaced = digits(newest.content) or newest.suffix
    return RollingUpdateStatus(
        phase=COMPLETED if is_over else IN_PROGRESS if has_started else PENDING,
        start_time=ongoing.start_time if ongoing else now,
        end_time=now if is_over else None,
        updated_services=rollout.through,
        from_hash=ongoing.from_hash if ongoing else replaced,
        to_hash=to,
    )


def why_it_remains(old: Member, rollout: Rollout) -> str:
    """Why a component of an older revision still exists."""
    scale, leaving = old.scale, rollout.leaving.get(old.name, 0)
    if old.component.metadata.is_true(labels.PAUSED) and (scale.replicas or scale.pods or leaving):
        return f"it belongs to an older revision and is paused (annotation {labels.PAUSED}), so its pods stay"
    if not scale.replicas and (left := max(scale.pods, leaving)):
        return f"its last pods are terminating ({left})"
    if not scale.replicas:
        return "it has no pods left and is deleted once all services are replaced"
    successors = (member.name for member in rollout.revisions.successors if member.service == old.service)
    revision = f"worker revision {rollout.target_hash}" if rollout.target_hash else ""
    return f"{next(successors, revision) or 'its successor'} is replacing it"


def with_old_revisions(new: ServiceReplicaStatus, old: Sequence[Member]) -> ServiceReplicaStatus:
    """The counts of a service over all revisions; only replicas of the newest count as updated."""
    reported = (member.component.status.service for member in old)
    old_counts = [counts for counts in reported if counts is not None]
    if not old_counts:
        return new
    every = (new, *old_counts)
    return msgspec.structs.replace(
        new,
        replicas=sum(counts.replicas for counts in every),
        ready_replicas=sum(counts.ready_replicas or 0 for counts in every),
        available_replicas=sum(counts.available_replicas or 0 for counts in every),
        component_names=tuple(counts.component_name for counts in every),
    )


class RolloutResult(StrEnum):
    """How a rollout started, ended, or stalled."""

    STARTED = "started"
    COMPLETED = "completed"
    SUPERSEDED = "superseded"
    """The workers were changed again, or back, before it completed."""
    DEADLINE_EXCEEDED = "deadline_exceeded"
    """It made no progress within the deadline. It continues, and may still complete."""


def rollout_results(before: DynamoGraphDeployment, after: DynamoGraphDeployment) -> Iterator[RolloutResult]:
    """The rollout results between two statuses of a graph; usually none."""
    old, new = _open(before), _open(after)
    if old is not None and _target(old) != _target(after.status.rolling_update):
        yield RolloutResult.SUPERSEDED
    elif old is not None and new is None:
        yield RolloutResult.COMPLETED
    if new is not None and (old is None or _target(old) != _target(new)):
        yield RolloutResult.STARTED
    if new is not None and _is_overdue(after) and not _is_overdue(before):
        yield RolloutResult.DEADLINE_EXCEEDED


def _open(graph: DynamoGraphDeployment) -> RollingUpdateStatus | None:
    rollout = graph.status.rolling_update
    return rollout if rollout is not None and rollout.phase in (PENDING, IN_PROGRESS) else None


def _target(rollout: RollingUpdateStatus | None) -> str:
    """The target revision; "" is that of workers without a revision."""
    return (rollout.to_hash if rollout is not None else None) or ""


def _is_overdue(graph: DynamoGraphDeployment) -> bool:
    progressing = condition(graph.status.conditions, "Progressing")
    return progressing is not None and progressing.reason == GraphReason.DEADLINE_EXCEEDED
