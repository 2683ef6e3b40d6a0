"""The result of a managed rollout, reported once: from the status that was written and the one before it.

A status is written onto the version that it was computed from, so each step from one status to the next is
written by one process, once. Nothing is counted twice.
"""

from collections.abc import Iterator
from enum import StrEnum

from dynamo_graphs.api.graph import DynamoGraphDeployment, RollingUpdateStatus
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.status.rollout import IN_PROGRESS, PENDING
from kube_runtime.types.meta import condition


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
) -> tuple[RolloutResult, ...]:
    """What a written status says of rollouts that the one before did not; empty as a rule."""
    return tuple(_results(before, after))


def _results(
    before: DynamoGraphDeployment, after: DynamoGraphDeployment
) -> Iterator[RolloutResult]:
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
    found = graph.status.rolling_update
    return found if found is not None and found.phase in (PENDING, IN_PROGRESS) else None


def _target(found: RollingUpdateStatus | None) -> str:
    """The generation that it goes to; "" is that of workers which are in none."""
    return (found.to_hash if found is not None else None) or ""


def _is_late(graph: DynamoGraphDeployment) -> bool:
    found = condition(graph.status.conditions, "Progressing")
    return found is not None and found.reason == GraphReason.DEADLINE_EXCEEDED
