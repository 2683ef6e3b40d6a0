"""What has just happened to a graph, as events: recorded once, when its status was written.

Events are for what an engineer on call searches for later: a restart, a rollout or a pause that began or
ended, and a stalled graph. That a pod is ready is in the status, without an event.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.status.reasons import GraphReason
from kube_runtime.types.meta import Condition, condition


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """The reason and the message of an event, and whether it is a warning."""

    reason: str
    message: str
    is_warning: bool = False


def status_events(
    before: DynamoGraphDeployment, after: DynamoGraphDeployment
) -> tuple[StatusEvent, ...]:
    """What changed from one status of a graph to the next; empty when nothing of note did."""
    return (
        *_restart(before, after),
        *_rolling_update(before, after),
        *_conditions(before, after),
        *_standstill(before, after),
    )


def _restart(before: DynamoGraphDeployment, after: DynamoGraphDeployment) -> Iterator[StatusEvent]:
    old, new = before.status.restart, after.status.restart
    if new is None:
        return
    was = (old.observed_id, old.phase) if old else (None, None)
    if was == (new.observed_id, new.phase):
        return
    if new.phase == "Restarting":
        yield StatusEvent("RestartStarted", f'Restart "{new.observed_id}" started')
    elif new.phase == "Superseded":
        text = f'Restart "{new.observed_id}" is superseded by the rolling update of the workers'
        yield StatusEvent("RestartSuperseded", text, is_warning=True)
    elif new.phase == "Completed" and was[1] == "Restarting":
        yield StatusEvent("RestartCompleted", f'Restart "{new.observed_id}" completed')


def _rolling_update(
    before: DynamoGraphDeployment, after: DynamoGraphDeployment
) -> Iterator[StatusEvent]:
    old, new = before.status.rolling_update, after.status.rolling_update
    if new is None or (old and (old.phase, old.to_hash) == (new.phase, new.to_hash)):
        return
    none = "without a revision"
    change = f"workers {new.from_hash or none} with {new.to_hash or f'those {none}'}"
    if new.phase == "InProgress":
        yield StatusEvent("RollingUpdateStarted", f"Replacing {change}")
    elif new.phase == "Completed" and old is not None:
        yield StatusEvent("RollingUpdateCompleted", f"Replaced {change}")


_TOLD = {
    ("Suspended", "True"): ("Suspended", False),
    ("Suspended", "False"): ("Resumed", False),
}
"""Conditions whose flip is an event."""


def _conditions(
    before: DynamoGraphDeployment, after: DynamoGraphDeployment
) -> Iterator[StatusEvent]:
    for (type_, status), (reason, is_warning) in _TOLD.items():
        new = condition(after.status.conditions, type_)
        old = condition(before.status.conditions, type_)
        if new is not None and new.status == status and not _is(old, status):
            yield StatusEvent(reason, new.message, is_warning)


def _standstill(
    before: DynamoGraphDeployment, after: DynamoGraphDeployment
) -> Iterator[StatusEvent]:
    new = condition(after.status.conditions, "Progressing")
    old = condition(before.status.conditions, "Progressing")
    late = GraphReason.DEADLINE_EXCEEDED
    if new is not None and new.reason == late and (old is None or old.reason != late):
        yield StatusEvent("ProgressDeadlineExceeded", new.message, is_warning=True)


def _is(found: Condition | None, status: str) -> bool:
    return found is not None and found.status == status
