"""Events of a reconcile: what was changed, and what went wrong for the first time.

They are queued after the status was written, so that who reads an event finds the status that belongs to it.
"""

from collections.abc import Sequence

from dynamo_operator.kube.apply import Blocked, Change, Obstacle
from dynamo_operator.kube.controller import DONE, Again, Outcome
from dynamo_operator.kube.events import Recorder
from dynamo_operator.kube.types.meta import Resource
from dynamo_operator.validation import Problem

REJECTED_RETRY_SECONDS = 120.0
"""How long a refused write waits for its next try. Source: rule R10 (minutes, never a tight loop)."""

CONFLICT_RETRY_SECONDS = 10.0
"""How often a taken name is looked at again. It is looked up in the cache, so this costs no request."""


def outcome(blocked: Sequence[Blocked]) -> Outcome:
    """When to look again, given what could not be written."""
    if not blocked:
        return DONE
    if all(each.obstacle is Obstacle.NAME_CONFLICT for each in blocked):
        return Again(CONFLICT_RETRY_SECONDS)
    return Again(REJECTED_RETRY_SECONDS)


def report(
    recorder: Recorder,
    before: Resource,
    after: Resource,
    *,
    changes: Sequence[Change] = (),
    blocked: Sequence[Blocked] = (),
    problems: Sequence[Problem] = (),
    lack: tuple[str, str] | None = None,
) -> None:
    """Queue the events of one reconcile. `after` is the object with the status that was just written.

    `lack` is the reason and the message of something that has to come first.

    A refusal is an event only when it changed the status, so that a settled object makes none.
    """
    for change in changes:
        recorder.event(before, reason=change.reason, message=change.message)
    if after is before:
        return
    for each in blocked:
        recorder.event(before, reason=each.obstacle, message=each.message, warning=True)
    if problems:
        text = "; ".join(str(each) for each in problems)
        recorder.event(before, reason="ValidationFailed", message=text, warning=True)
    if lack:
        reason, text = lack
        recorder.event(before, reason=reason, message=text, warning=True)
