"""Kubernetes Events about our objects, for `kubectl describe`.

An Event must never delay or fail a reconcile. So it waits for a moment, is merged with others of the same
reason, and is written by a task of its own: Warnings first, the others after busy times.

There is one Event object for each object, component, type and reason. Its name is a hash of these, so that
the process finds it again after a restart.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import structlog

from kube_runtime.client.client import Client, causes
from kube_runtime.errors import (
    ApiError,
    Conflict,
    Forbidden,
    NotFound,
    OperatorError,
    ServerFailure,
    Throttled,
    Unreachable,
)
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.times import Backoff, TokenBucket, WriteActivity, loop_time, rfc3339, wall_clock
from kube_runtime.types.kinds import Event
from kube_runtime.types.meta import Key, Object, Resource, fitted

_log = structlog.get_logger(__name__)

COLLECT_SECONDS: Final = 0.3
BUSY_SECONDS: Final = 60.0
"""Longest wait of a Normal Event for the end of busy times: its request would delay what users wait for."""
PENDING_LIMIT: Final = 10_000
"""As many as the creation of a thousand graphs of three services records."""
WRITTEN_LIMIT: Final = 16_384
"""Objects whose Events are remembered; more than can have pending ones."""
MESSAGE_LIMIT: Final = 1024
ATTEMPTS: Final = 5
OUTAGE: Final = Backoff(first_seconds=1, limit_seconds=60)
LONGEST_PAUSE_SECONDS: Final = 60.0
"""Longest `Retry-After` that is honoured."""
BURST, REFILL_SECONDS = 25, 300.0
"""The token bucket of one object: requests at once, and seconds until one more."""


@dataclass(frozen=True, slots=True)
class _Series:
    uid: str
    component: str
    warning: bool
    reason: str

    @property
    def hash(self) -> str:
        text = "\0".join((self.uid, self.component, str(self.warning), self.reason))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(slots=True)
class _Pending:
    """Occurrences of a series that are not written yet. `due` is on the event loop's clock."""

    series: _Series
    regarding: Object
    due: float
    since: datetime
    until: datetime
    count: int = 0
    messages: list[str] = field(default_factory=list[str])
    attempts: int = 0
    may_exist: bool = False  # the answer to a creation was lost

    @property
    def key(self) -> Key:
        head = self.regarding["name"][: 253 - 17].rstrip("-.")
        return Key(self.regarding["namespace"] or "default", f"{head}.{self.series.hash}")

    @property
    def message(self) -> str:
        return fitted(self.messages, MESSAGE_LIMIT)

    def merge(self, later: "_Pending") -> None:
        """Add later occurrences."""
        self.regarding, self.until = later.regarding, later.until
        self.count += later.count
        self.messages += [message for message in later.messages if message not in self.messages]


@dataclass(slots=True)
class _ObjectState(TokenBucket):
    """The requests that Events of one object may still take, and the counts of the Events that exist."""

    counts: dict[_Series, int] = field(default_factory=dict[_Series, int])


@dataclass(slots=True, eq=False)
class EventWriter:
    """Writes recorded Events, one request at a time. The manager runs it."""

    client: Client
    instance: str
    metrics: RuntimeMetrics
    wall_clock: Callable[[], datetime] = wall_clock
    activity: WriteActivity = field(default_factory=WriteActivity)
    # By whether they are warnings; the oldest first.
    _pending: dict[bool, OrderedDict[_Series, _Pending]] = field(
        default_factory=lambda: {warning: OrderedDict() for warning in (True, False)}, init=False
    )
    _objects: OrderedDict[str, _ObjectState] = field(
        default_factory=OrderedDict[str, _ObjectState], init=False
    )  # by uid
    _arrived: asyncio.Event = field(default_factory=asyncio.Event, init=False)
    _writing: asyncio.Lock = field(default_factory=asyncio.Lock, init=False)
    """Held while one Event is written, with the client's retries; not during a pause between two attempts."""
    _paused_until: float = field(default=0.0, init=False)
    _has_logged_forbidden: bool = field(default=False, init=False)

    def recorder(self, component: str) -> "Recorder":
        """A recorder for one controller, with that component name."""
        return Recorder(self, component)

    async def run(self) -> None:
        """Write Events when they are due, until cancelled."""
        while True:
            self._arrived.clear()
            firsts = (next(iter(pending.values())) for pending in self._pending.values() if pending)
            due = min((max(self._due(first), self._paused_until) for first in firsts), default=None)
            if due is not None and due <= loop_time():
                async with self._writing:
                    await self._write_next()
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(due):
                        await self._arrived.wait()

    async def flush(self) -> None:
        """Write all pending Events now; warnings first."""
        self._paused_until = 0.0
        while True:
            async with self._writing:
                if not any(self._pending.values()):
                    return
                await self._write_next(ignore_due=True)
            await asyncio.sleep(max(0.0, self._paused_until - loop_time()))

    def give_up(self) -> int:
        """Drop all pending Events, and return their number, with the one that is being written."""
        left = sum(map(len, self._pending.values())) + self._writing.locked()
        for _ in range(left):
            self.metrics.event_dropped("stopped")
        for pending in self._pending.values():
            pending.clear()
        return left

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._objects.pop(uid, None)

    def _due(self, pending: _Pending) -> float:
        """When it may be written, as far as is known now: busy times may last longer than a second."""
        if pending.series.warning or not self.activity.is_high:
            return pending.due
        return max(pending.due, min(pending.due + BUSY_SECONDS, loop_time() + 1.0))

    def add(self, series: _Series, regarding: Resource, message: str) -> None:
        """Add one occurrence: merged with a pending Event of its series, or dropped if there are too many."""
        now, today = loop_time(), self.wall_clock()
        metadata = regarding.metadata
        # Not the object itself: thousands of Events may wait.
        reference: Object = {
            "apiVersion": self.client.stored(regarding.KIND).api_version,
            "kind": regarding.KIND.name,
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "resourceVersion": metadata.resource_version,
        }
        same = self._pending[series.warning]
        pending = same.get(series)
        if pending is None:
            budget = self._objects.setdefault(series.uid, _ObjectState(BURST, now))
            self._objects.move_to_end(series.uid)
            if len(self._objects) > WRITTEN_LIMIT:
                self._objects.popitem(last=False)
            if not budget.take(BURST, REFILL_SECONDS, now):
                self.metrics.event_dropped("budget")
                return
            if len(same) >= PENDING_LIMIT:
                same.popitem(last=False)
                self.metrics.event_dropped("queue_full")
            due = now + COLLECT_SECONDS
            pending = same[series] = _Pending(series, reference, due, today, today)
            self._arrived.set()
        pending.regarding, pending.until = reference, today
        pending.count += 1
        if message not in pending.messages:
            pending.messages.append(message)

    async def _write_next(self, *, ignore_due: bool = False) -> None:
        for same in self._pending.values():
            first = next(iter(same.values()), None)
            if first is not None and (ignore_due or self._due(first) <= loop_time()):
                del same[first.series]
                await self._write_or_pause(first)
                return

    async def _write_or_pause(self, pending: _Pending) -> None:
        """Write an Event. After a failure that may pass, put it back and pause all writes."""
        try:
            await self._write(pending)
        except (Unreachable, ServerFailure, Throttled) as error:
            pending.attempts += 1
            if pending.attempts == ATTEMPTS:
                self.metrics.event_dropped("unreachable")
                return
            asked = error.retry_after_seconds if isinstance(error, ApiError) else None
            pause = min(asked or OUTAGE.seconds(pending.attempts), LONGEST_PAUSE_SECONDS)
            self._paused_until = loop_time() + pause
            self._put_back(pending)
        except OperatorError as error:
            self._on_refusal(pending, error)
        except asyncio.CancelledError:
            self._put_back(pending)
            raise

    def _put_back(self, pending: _Pending) -> None:
        same = self._pending[pending.series.warning]
        if later := same.get(pending.series):
            pending.merge(later)
        same[pending.series] = pending
        same.move_to_end(pending.series, last=False)

    async def _write(self, pending: _Pending) -> None:
        """Create an Event, or raise its count: one request, unless the count here is out of date."""
        remembered = self._objects.get(pending.series.uid)
        count = remembered.counts.get(pending.series) if remembered else None
        if remembered is not None and count is not None:
            try:
                await self._raise_count(pending, count + pending.count)
            except NotFound:  # the API server deletes Events after an hour
                remembered.counts.pop(pending.series, None)
            else:
                return
        try:
            await self.client.create(Event, self._new(pending))
        except Conflict:  # created before a restart, or by us; the answer to the first patch has its count
            event = await self._raise_count(pending, None)
            earlier = max(0, event.count - pending.count) if pending.may_exist else event.count
            self._remember(pending.series, earlier)
            await self._raise_count(pending, earlier + pending.count)
        except (Unreachable, ServerFailure, asyncio.CancelledError):
            pending.may_exist = True
            raise
        else:
            self._remember(pending.series, pending.count)

    async def _raise_count(self, pending: _Pending, count: int | None) -> Event:
        patch: Object = {"message": pending.message, "lastTimestamp": rfc3339(pending.until)}
        if count is not None:
            patch["count"] = count
        event = await self.client.merge_patch(Event, pending.key, patch)
        if count is not None:
            self._remember(pending.series, count)
        return event

    def _remember(self, series: _Series, count: int) -> None:
        if remembered := self._objects.get(series.uid):  # else the object is gone
            remembered.counts[series] = count

    def _new(self, pending: _Pending) -> Object:
        series = pending.series
        return Event.KIND.manifest(
            pending.key._asdict(),
            involvedObject=pending.regarding,
            type="Warning" if series.warning else "Normal",
            reason=series.reason,
            message=pending.message,
            count=pending.count,
            firstTimestamp=rfc3339(pending.since),
            lastTimestamp=rfc3339(pending.until),
            source={"component": series.component},
            reportingComponent=series.component,
            reportingInstance=self.instance,
        )

    def _on_refusal(self, pending: _Pending, error: OperatorError) -> None:
        reasons = causes(error.details) if isinstance(error, Forbidden) else ()
        is_terminating = any(cause.get("reason") == "NamespaceTerminating" for cause in reasons)
        if is_terminating or isinstance(error, NotFound):
            self.metrics.event_dropped("namespace_gone")
            return
        self.metrics.event_dropped("refused")
        if isinstance(error, Forbidden):
            if self._has_logged_forbidden:
                return
            self._has_logged_forbidden = True
        _log.warning("event not written", event_key=str(pending.key), error=str(error))


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records Events of one controller; `component` is its name in `kubectl describe`."""

    writer: EventWriter
    component: str

    def event(
        self, *regarding: Resource, reason: str, message: str, warning: bool = False, cause: str = ""
    ) -> None:
        """Record an Event for each of the objects `regarding`. Returns at once and never fails.

        The log gets one line, whether an Event is written or dropped; `cause` is for the log only.
        """
        log_decision(reason, message, warning=warning, cause=cause)
        for resource in regarding:
            series = _Series(resource.metadata.uid, self.component, warning, reason)
            self.writer.add(series, resource, message)


def log_decision(reason: str, message: str, *, warning: bool = False, cause: str = "") -> None:
    """Log a decision; during a reconcile the line names the object."""
    why = {"cause": str(cause)} if cause else {}
    _log.log(logging.WARNING if warning else logging.INFO, message, reason=str(reason), **why)
