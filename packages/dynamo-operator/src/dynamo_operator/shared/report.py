"""What every controller does around its decision: loading, refusals, report and Events.

A controller reads the cluster from the cache. What it keeps in memory besides (running calls, the time of
the last status, specs without problems) only saves work: after a restart it reaches the same result.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace
from structlog.contextvars import bind_contextvars

from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.shared.conditions import (
    CONFLICT_RETRY_SECONDS,
    FAILURE_REASONS,
    REJECTED_RETRY_SECONDS,
    FailureReasons,
    StatusEvent,
    Stop,
    bare_type,
    failed_status,
    paused_status,
)
from dynamo_operator.shared.patches import without_finalizer
from dynamo_operator.shared.problems import Problem
from kube_runtime import errors
from kube_runtime.apply.result import Applied, Change, Obstacle, Verb, rejected
from kube_runtime.apply.status import StatusRateLimit, patch_status
from kube_runtime.apply.suppression import CONTEST_SECONDS, LastingFailures, Recent
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import MESSAGE_LIMIT, Recorder, log_decision
from kube_runtime.types.kinds import ControllerRevision
from kube_runtime.types.meta import (
    Fingerprint,
    Key,
    R,
    Resource,
    Status,
    cut,
    fingerprint_of,
    fitted,
    status_of,
)

_CHECKED_IN_CACHE = frozenset(
    (Obstacle.NAME_CONFLICT, Obstacle.PREDECESSOR, Obstacle.NOT_SERVED, Obstacle.FORBIDDEN)
)
"""Obstacles whose next check costs no request."""

_LOGGED_ONLY = frozenset((ControllerRevision.KIND.name,))
"""Kinds whose writes are logged without an Event: the revisions are the history themselves."""


# The status before its Events: a reader of an Event finds the status that belongs to it.
@dataclass(frozen=True, slots=True)
class Reporter:
    """Ends the reconciles of one kind.

    `status_events` are the Events between two states of an object, beside those of refusals. `rolled_out`
    gets a graph with a managed rollout before and after a write of its status. `failure_reasons` are for a
    kind that is not in `FAILURE_REASONS`.
    """

    writer: Writer
    recorder: Recorder
    limit: StatusRateLimit
    client: Client
    rolled_out: Callable[[DynamoGraphDeployment, DynamoGraphDeployment], None] = lambda _, __: None
    status_events: Callable[[Any, Any], Iterable[StatusEvent]] = lambda _, __: ()
    failing: LastingFailures = field(default_factory=LastingFailures)
    failure_reasons: FailureReasons | None = None

    def applying(self, owner: Resource) -> Applied:
        """The result of the writes for an object, to be filled; each change is an Event at once."""

        def on_change(change: Change) -> None:
            reason, message, cause = change.reason, change.message, change.cause
            if change.verb is Verb.SCALE or change.kind in _LOGGED_ONLY:
                log_decision(reason, message, cause=cause)
            else:
                self.recorder.event(owner, reason=reason, message=message, cause=cause)

        return Applied(on_change)

    def record(self, resource: Resource, *events: StatusEvent) -> None:
        """Queue these Events about an object."""
        for event in events:
            self.recorder.event(
                resource, reason=event.reason, message=event.message, warning=event.is_warning
            )

    async def stop(self, resource: Resource, stop: Stop) -> Result:
        """End a reconcile that applies nothing. A change of the spec, or of what is missing, requeues it.

        Raises:
            OperatorError: the status could not be written.
        """
        stored = await patch_status(self.writer, resource, stop.status)
        if stored is not resource:
            event = StatusEvent(stop.reason, fitted(stop.texts, MESSAGE_LIMIT), is_warning=True)
            self.record(resource, *self.status_events(resource, stored), event)
        return Result(written=stored)

    async def finish(
        self, resource: Resource, status: Status, applied: Applied, *seconds: float | None
    ) -> Result:
        """End a reconcile after its apply; requeue after the shortest of `seconds`, if not before.

        Raises:
            ServerFailure: the API server failed at an object a moment ago; if that lasts, the status has it.
            OperatorError: the status could not be written.
        """
        failure = next(iter(applied.failures), None)
        self.failing.ensure_lasting(resource.metadata.uid, failure)
        for contested in applied.contested:
            self.recorder.event(resource, reason="Contested", message=contested.message, warning=True)
        new = {(change.kind, change.name) for change in applied.changes if change.verb is Verb.CREATE}
        created = tuple(live for live in applied.objects if (live.KIND.name, live.metadata.name) in new)
        if wait := self.limit.wait(resource, status):
            waits = failure is None and self.limit.is_settling(resource, status)
            return earliest(Result(wait, created=created, failure=failure, waits=waits), *seconds)
        stored = await patch_status(self.writer, resource, status, limit=self.limit)
        graphs = [it for it in (resource, stored) if isinstance(it, DynamoGraphDeployment)]
        if any(graph.status.rolling_update for graph in graphs):
            self.rolled_out(*graphs)
        if stored is not resource:  # a settled object emits none
            refusals = (blocked for blocked in applied.blocked if not blocked.passes_by_itself)
            warnings = (StatusEvent(it.obstacle, it.message, is_warning=True) for it in refusals)
            self.record(resource, *self.status_events(resource, stored), *warnings)
        again: float | None = None
        if applied.obstructions:
            is_cheap = all(blocked.obstacle in _CHECKED_IN_CACHE for blocked in applied.obstructions)
            again = CONFLICT_RETRY_SECONDS if is_cheap else REJECTED_RETRY_SECONDS
        elif applied.contested:
            again = CONTEST_SECONDS
        return earliest(Result(again, stored, created, failure), *seconds)


def earliest(result: Result, *seconds: float | None) -> Result:
    """Requeue after the shortest of these times; None and 0 do not count."""
    soonest = min((time for time in (result.requeue_after_seconds, *seconds) if time), default=None)
    same = soonest == result.requeue_after_seconds
    return result if same else replace(result, requeue_after_seconds=soonest)


REMEMBERED = 16_384
"""Objects in a `ValidationCache`."""


class ValidationCache:
    """Remembers which objects have no problems: most reconciles follow a child's status, not a new spec.

    Validation costs a fifth of such a reconcile (`make bench ARGS="--only micro"`). `find` may depend on
    an object's labels, annotations, owners and spec, and on settings.
    """

    def __init__(self) -> None:
        self._valid: Recent[Fingerprint] = Recent(REMEMBERED)

    def problems_by(self, resource: R, find: Callable[[R], tuple[Problem, ...]]) -> tuple[Problem, ...]:
        """Return the problems that `find` reports; it is not called if the same content had none."""
        uid, fingerprint = resource.metadata.uid, fingerprint_of(resource)
        if self._valid.get(uid) == fingerprint:
            return ()
        problems = find(resource)
        if not problems:
            self._valid.put(uid, fingerprint)
        return problems

    def forget(self, uid: str) -> None:
        """Forget a deleted object."""
        self._valid.forget(uid)


_MESSAGE_LIMIT = 1024


async def load_for_reconcile(
    type_: type[R], key: Key, cache: Cache, reporter: Reporter, *, keep_finalizer: bool = False
) -> R | Result:
    """Return the object to reconcile, or a result if it is deleted, being deleted, paused or unreadable.

    The API server deletes what it owns; the last two are written to its status. It has no finalizer of an
    earlier operator any more, unless `keep_finalizer`. Raises OperatorError if a write fails.
    """
    if unreadable := cache.broken(type_, key):
        return await report_unreadable(type_, key, unreadable, reporter)
    resource = cache.get(type_, key)
    if resource is None:
        return DONE
    bind_contextvars(graph=resource.metadata.labels.get(labels.GRAPH, resource.metadata.name))
    if resource.metadata.deletion_timestamp:
        await without_finalizer(resource, reporter.writer)
        return DONE
    if resource.metadata.is_true(labels.PAUSED):
        return await report_paused(resource, reporter)
    return resource if keep_finalizer else await without_finalizer(resource, reporter.writer)


async def report_paused(resource: Resource, reporter: Reporter) -> Result:
    """Write to the status that the object is paused. Any change of it wakes the controller."""
    status = paused_status(resource)
    stored = await patch_status(reporter.writer, resource, status)
    known = {(was.type, was.reason) for was in status_of(resource).conditions}
    if any((paused.type, paused.reason) not in known for paused in status.conditions):
        message = f"{labels.PAUSED} is true: the operator writes nothing"
        reporter.recorder.event(resource, reason="Paused", message=message)
    return Result(written=stored)


# An object whose newest state does not fit its type cannot be decoded. It is read again with only
# its metadata and conditions, and the reason is written to its status. Nothing is applied: its last
# readable spec is outdated.
async def report_unreadable(
    type_: type[Resource], key: Key, error: errors.DecodeError, reporter: Reporter
) -> Result:
    """Write to the status that the object cannot be read or is too large. Its next change requeues it.

    Raises:
        NotFound: it was deleted.
        OperatorError: not even metadata and conditions could be read, or the write failed.
    """
    bare = await reporter.client.get(bare_type(type_.KIND), key)
    if bare.metadata.deletion_timestamp:
        await without_finalizer(bare, reporter.writer)
        return DONE
    generation, reasons = bare.metadata.generation, reporter.failure_reasons or FAILURE_REASONS[type_]
    if isinstance(error, errors.TooLarge):
        text = f"Not processed: {error.message}. Running pods keep running."
        reason, event = reasons.too_large, "TooLarge"
    else:
        text = f"Cannot read the object: {error.message}"
        reason, event = reasons.unreadable, "DecodeFailed"
    text = cut(text, _MESSAGE_LIMIT)
    status = failed_status(type_, reasons.conditions, bare.status, generation, reason, text)
    if type_ is DynamoModel:  # the schema wants both in every status
        status = replace(
            status, ready_endpoints=status.ready_endpoints or 0, total_endpoints=status.total_endpoints or 0
        )
    await reporter.stop(bare, Stop(status, event, [text]))
    return DONE


# The applier returns what the API server refuses, and the status of its reconcile has the cause.
# Other writes, such as a record in an annotation or a finalizer, are what the rest of a reconcile
# depends on: it ends there.
async def report_refusal(
    type_: type[Resource], cache: Cache, reporter: Reporter, key: Key, error: errors.ApiError | RecursionError
) -> Result:
    """Write to the status, and in an Event, which write ended the reconcile of an object, or its nesting.

    Raises:
        Conflict: the object changed meanwhile; the caller retries at once.
        ApiError: the error itself, if nothing can be written about the object.
    """
    if isinstance(error, RecursionError):
        unreadable = errors.DecodeError(type_.KIND, key, "it is nested too deeply")
        return await report_unreadable(type_, key, unreadable, reporter)
    resource = cache.get(type_, key)
    if resource is None or error.kind is None or error.key is None:
        raise error
    if isinstance(error, errors.ServerFailure):  # the next attempt may not meet it
        raise error
    text = cut(rejected(error.kind.name, error.key.name, error).message, _MESSAGE_LIMIT)
    generation, reasons = resource.metadata.generation, reporter.failure_reasons or FAILURE_REASONS[type_]
    before = status_of(resource)
    status = failed_status(type_, reasons.conditions, before, generation, reasons.rejected, text)
    try:
        stored = await patch_status(reporter.writer, resource, status)
    except (errors.Forbidden, errors.Invalid):  # the Event and the log remain
        stored = None
    except (errors.NotFound, errors.ServerFailure):
        raise error from None
    if stored is not resource:
        reporter.recorder.event(resource, reason=Obstacle.REJECTED, message=text, warning=True)
    return Result(REJECTED_RETRY_SECONDS, stored, failure=error)
