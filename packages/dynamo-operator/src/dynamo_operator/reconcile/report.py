"""The end of a reconcile: write the status, queue the Events, return when to reconcile again.

In this order: a reader of an Event finds the status that belongs to it.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.status.events import status_events
from dynamo_graphs.status.stop import Stop
from kube_runtime.apply.result import Applied, Obstacle, Verb
from kube_runtime.apply.status_patch import StatusRateLimit, patch_status
from kube_runtime.apply.suppression import CONTEST_SECONDS
from kube_runtime.apply.writer import Writer
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import MESSAGE_LIMIT, Recorder, log_decision
from kube_runtime.text import fitted
from kube_runtime.types.apps import ControllerRevision
from kube_runtime.types.meta import Resource, Status

REJECTED_RETRY_SECONDS = 120.0
"""Seconds until a refused write is retried."""

CONFLICT_RETRY_SECONDS = 10.0
"""Seconds until a taken name is checked again, in the cache: it costs no request."""

_CHECKED_IN_CACHE = frozenset(
    (Obstacle.NAME_CONFLICT, Obstacle.PREDECESSOR, Obstacle.NOT_SERVED, Obstacle.FORBIDDEN)
)
"""Obstacles whose next check costs no request."""

_LOGGED_ONLY = frozenset((ControllerRevision.KIND.name,))
"""Kinds whose writes are logged without an Event: the revisions are the history themselves."""

NOTHING = Applied()


@dataclass(frozen=True, slots=True)
class Reporter:
    """Ends the reconciles of one kind. `written` gets the object before and after a status write."""

    writer: Writer
    recorder: Recorder
    limit: StatusRateLimit
    client: Client
    written: Callable[[Any, Any], None] = lambda _, __: None

    async def stopped(self, resource: Resource, stop: Stop) -> Result:
        """End a reconcile that applies nothing. A change of the spec, or of what is missing, requeues it.

        Raises:
            OperatorError: the status could not be written.
        """
        stored = await patch_status(self.writer, resource, stop.status)
        record_events(self.recorder, resource, stored, stop=stop)
        return Result(written=stored)

    async def applied(
        self, resource: Resource, status: Status, applied: Applied, *seconds: float | None
    ) -> Result:
        """End a reconcile after its apply; requeue after the shortest of `seconds`, if not before.

        Raises:
            OperatorError: the status could not be written.
        """
        if wait := self.limit.wait(resource, status):
            record_events(self.recorder, resource, resource, applied=applied)
            return earliest(Result(wait, failure=applied.failure), *seconds)
        stored = await patch_status(self.writer, resource, status, limit=self.limit)
        self.written(resource, stored)
        record_events(self.recorder, resource, stored, applied=applied)
        result = replace(result_of(applied), failure=applied.failure)
        return replace(earliest(result, *seconds), written=stored)


def result_of(applied: Applied) -> Result:
    """When to requeue, given what could not be written."""
    if not applied.blocked:
        return Result(CONTEST_SECONDS) if applied.contested else DONE
    if all(blocked.obstacle in _CHECKED_IN_CACHE for blocked in applied.blocked):
        return Result(CONFLICT_RETRY_SECONDS)
    return Result(REJECTED_RETRY_SECONDS)


def earliest(result: Result, *seconds: float | None) -> Result:
    """Requeue after the shortest of these times; None and 0 do not count."""
    times = [time for time in (result.requeue_after_seconds, *seconds) if time]
    return replace(result, requeue_after_seconds=min(times, default=None))


def record_events(
    recorder: Recorder,
    before: Resource,
    after: Resource,
    *,
    applied: Applied = NOTHING,
    stop: Stop | None = None,
) -> None:
    """Queue the Events of one reconcile. `after` is the object with the status that was just written.

    A refusal causes an Event only if it changed the status, so a settled object emits none.
    """
    for change in applied.changes:
        reason, message, cause = change.reason, change.message, change.cause
        if change.verb is Verb.SCALE or change.kind in _LOGGED_ONLY:
            log_decision(reason, message, cause=cause)
        else:
            recorder.event(before, reason=reason, message=message, cause=cause)
    for text in applied.contested:
        recorder.event(before, reason="Contested", message=text, warning=True)
    if after is before:
        return
    if isinstance(before, DynamoGraphDeployment) and isinstance(after, DynamoGraphDeployment):
        for event in status_events(before, after):
            recorder.event(
                before, reason=event.reason, message=event.message, warning=event.is_warning
            )
    for blocked in applied.blocked:
        if not blocked.passes_by_itself:
            recorder.event(before, reason=blocked.obstacle, message=blocked.message, warning=True)
    if stop is not None:
        text = fitted(stop.texts, MESSAGE_LIMIT)
        recorder.event(before, reason=stop.reason, message=text, warning=True)
