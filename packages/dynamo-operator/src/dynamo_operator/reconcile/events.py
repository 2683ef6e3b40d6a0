"""Events of a reconcile: what was changed, and what went wrong for the first time.

They are queued after the status was written, so that who reads an event finds the status that belongs to it.
"""

from collections.abc import Sequence

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.status.events import status_events
from dynamo_graphs.validation import Problem
from kube_runtime.apply.result import Applied, Obstacle
from kube_runtime.apply.suppression import CONTEST_SECONDS
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import MESSAGE_LIMIT, Recorder
from kube_runtime.text import fitted
from kube_runtime.types.meta import Resource

REJECTED_RETRY_SECONDS = 120.0
"""How long a refused write waits for its next try. Minutes, never a tight loop."""

CONFLICT_RETRY_SECONDS = 10.0
"""How often a taken name is checked again, in the cache, so this costs no request."""

_FREE = frozenset(
    (Obstacle.NAME_CONFLICT, Obstacle.PREDECESSOR, Obstacle.NOT_SERVED, Obstacle.FORBIDDEN)
)
"""Obstacles that are checked again without a request."""

NOTHING = Applied()


def result_of(applied: Applied) -> Result:
    """When to look again, given what could not be written."""
    if not applied.blocked:
        return Result(CONTEST_SECONDS) if applied.contested else DONE
    if all(each.obstacle in _FREE for each in applied.blocked):
        return Result(CONFLICT_RETRY_SECONDS)
    return Result(REJECTED_RETRY_SECONDS)


def earliest(found: Result, *others: float | None) -> Result:
    """The outcome, or to look again after the shortest of the other times, if that is sooner.

    None or 0 means: nothing will change by time alone.
    """
    times = [each for each in (found.requeue_after_seconds, *others) if each]
    return Result(min(times)) if times else DONE


def record_events(
    recorder: Recorder,
    before: Resource,
    after: Resource,
    *,
    applied: Applied = NOTHING,
    problems: Sequence[Problem] = (),
    lack: tuple[str, str] | None = None,
) -> None:
    """Queue the events of one reconcile. `after` is the object with the status that was just written.

    `lack` is the reason and the message of something that has to come first.

    A refusal is an event only when it changed the status, so that a settled object makes none.
    """
    for change in applied.told:
        recorder.event(before, reason=change.reason, message=change.message)
    for text in applied.contested:
        recorder.event(before, reason="Contested", message=text, warning=True)
    if after is before:
        return
    if isinstance(before, DynamoGraphDeployment) and isinstance(after, DynamoGraphDeployment):
        for each in status_events(before, after):
            recorder.event(
                before, reason=each.reason, message=each.message, warning=each.is_warning
            )
    for obstacle in applied.blocked:
        if not obstacle.passes_by_itself:
            recorder.event(before, reason=obstacle.obstacle, message=obstacle.message, warning=True)
    if problems:
        text = fitted([str(each) for each in problems], MESSAGE_LIMIT)
        recorder.event(before, reason="ValidationFailed", message=text, warning=True)
    if lack:
        reason, text = lack
        recorder.event(before, reason=reason, message=text, warning=True)
