"""Kubernetes Events about our objects: what the operator did, for `kubectl describe`.

An Event must never delay or fail a reconcile. So it is collected for a moment, merged with others of the
same reason, and written by a task of its own. While many reconciles begin, Normal Events wait: they take
capacity of the API server from graphs that are not ready yet. Warnings never wait.

One (object, component, type, reason) is one Event object for as long as the API server keeps it: its name
is a hash of these, so that a restart finds it again.
"""

import asyncio
import hashlib
import logging
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple, Self

import structlog

from kube_runtime.client.requests import Client
from kube_runtime.clock import loop_time
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
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.rate_limits import TokenBucket, WriteActivity
from kube_runtime.text import fitted
from kube_runtime.times import rfc3339
from kube_runtime.types.core import Event
from kube_runtime.types.meta import Resource

_log = structlog.get_logger()

COLLECT_SECONDS: Final = 0.3
PATIENCE_SECONDS: Final = 300.0
"""Longest delay of Normal Events; about as long as a thousand new graphs occupy a small control plane."""
GONE_SECONDS: Final = 10.0
"""Normal Events that have waited for so long are dropped if their object is gone: no one can describe it."""
PENDING_LIMIT: Final = 10_000
"""Events of the creation of a thousand graphs of three services."""
WRITTEN_LIMIT: Final = 16_384
"""Objects of which Events are remembered; more than can have pending ones."""
MESSAGE_LIMIT: Final = 1024
ATTEMPTS: Final = 5
LONGEST_PAUSE_SECONDS: Final = 60.0
"""Longest pause that the API server may request."""
BURST, REFILL_SECONDS = 25, 300.0
"""Requests per object, and the seconds after which it may have as many again."""


@dataclass(frozen=True, slots=True)
class _Series:
    """Identity of one Event object."""

    uid: str
    component: str
    warning: bool
    reason: str

    @property
    def hash(self) -> str:
        text = "\0".join((self.uid, self.component, str(self.warning), self.reason))
        return hashlib.sha256(text.encode()).hexdigest()[:16]


class _About(NamedTuple):
    """Reference to the object of an Event. Not the object itself: thousands of Events may wait."""

    kind: Kind
    key: Key
    uid: str
    resource_version: str

    @classmethod
    def of(cls, resource: Resource) -> Self:
        metadata = resource.metadata
        return cls(resource.KIND, resource.key, metadata.uid, metadata.resource_version)


@dataclass(slots=True)
class _Pending:
    """Occurrences of a series that are not written yet."""

    series: _Series
    about: _About
    due: float
    latest: float
    since: datetime
    until: datetime
    count: int = 0
    messages: list[str] = field(default_factory=list[str])
    attempts: int = 0

    @property
    def key(self) -> Key:
        namespace, name = self.about.key
        head = name[: 253 - 17].rstrip("-.")
        return Key(namespace or "default", f"{head}.{self.series.hash}")

    @property
    def message(self) -> str:
        return fitted(self.messages, MESSAGE_LIMIT)

    def add_later(self, later: "_Pending") -> None:
        """Add what happened since this was taken to be written."""
        self.about, self.until = later.about, later.until
        self.count += later.count
        self.messages += [message for message in later.messages if message not in self.messages]


@dataclass(slots=True)
class _Remembered(TokenBucket):
    """Of one object: how many requests it may cost, and the counts of the Events that exist."""

    counts: dict[_Series, int] = field(default_factory=dict[_Series, int])


class EventWriter:
    """Writes recorded Events, one request at a time. Run it as a server of the manager.

    While `activity` reports many reconciles, Normal Events wait.
    """

    def __init__(
        self,
        client: Client,
        *,
        instance: str,
        metrics: RuntimeMetrics,
        activity: WriteActivity | None = None,
        wall_clock: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._client = client
        self._instance = instance
        self._metrics = metrics
        self.activity = activity or WriteActivity()
        self._wall_clock = wall_clock
        # Warnings, and Normal Events; in each the oldest first.
        self._pending: dict[bool, OrderedDict[_Series, _Pending]] = {
            warning: OrderedDict() for warning in (True, False)
        }
        self._objects: OrderedDict[str, _Remembered] = OrderedDict()  # by uid
        self._arrived = asyncio.Event()
        self._writing = asyncio.Lock()
        """Held for one attempt at a time, never during a pause: `flush` has little time."""
        self._paused_until = 0.0
        self._has_logged_forbidden = False

    def recorder(self, component: str) -> "Recorder":
        """A recorder that reports under that component name."""
        return Recorder(self, component)

    async def run(self) -> None:
        """Write events as they come due, until cancelled."""
        while True:
            self._arrived.clear()
            wait = self._wait()
            if wait == 0:
                async with self._writing:
                    await self._write_next()
            else:
                with suppress(TimeoutError):
                    async with asyncio.timeout(wait):
                        await self._arrived.wait()

    async def flush(self) -> None:
        """Write everything that is pending now, without waiting for more to merge; warnings first."""
        self._paused_until = 0.0
        while True:
            async with self._writing:
                if not any(self._pending.values()):
                    return
                await self._write_next(at_any_time=True)
            await asyncio.sleep(max(0.0, self._paused_until - loop_time()))

    def give_up(self) -> int:
        """Drop what is still pending, and return how many there were."""
        left = sum(map(len, self._pending.values()))
        for _ in range(left):
            self._metrics.event_dropped("stopped")
        for pending in self._pending.values():
            pending.clear()
        return left

    def forget(self, uid: str) -> None:
        """Remember nothing of an object that is gone. Its Normal Events are written soon or never."""
        self._objects.pop(uid, None)

    def _wait(self) -> float | None:
        """Seconds until the next one may be written; 0 means now, None that none is pending."""
        waits = [
            max(0.0, self._time_of(next(iter(pending.values()))) - loop_time())
            for pending in self._pending.values()
            if pending
        ]
        return min(waits, default=None)

    def _time_of(self, pending: _Pending) -> float:
        """The earliest time at which it may be written, as known now."""
        due = max(pending.due, self._paused_until)
        if pending.series.warning or loop_time() >= pending.latest or loop_time() < due:
            return due
        return min(max(due, self.activity.high_until), pending.latest)

    def accept(self, series: _Series, about: Resource, message: str) -> None:
        """Take one occurrence; merged with a pending one of its series, or dropped if too many."""
        now, today = loop_time(), self._wall_clock()
        same = self._pending[series.warning]
        pending = same.get(series)
        if pending is None:
            if not self._afford(series.uid, now):
                self._metrics.event_dropped("budget")
                return
            if len(same) >= PENDING_LIMIT:
                same.popitem(last=False)
                self._metrics.event_dropped("queue_full")
            times = (now + COLLECT_SECONDS, now + PATIENCE_SECONDS)
            pending = same[series] = _Pending(series, _About.of(about), *times, today, today)
            self._arrived.set()
        pending.about, pending.until = _About.of(about), today
        pending.count += 1
        if message not in pending.messages:
            pending.messages.append(message)

    def _afford(self, uid: str, now: float) -> bool:
        budget = self._objects.setdefault(uid, _Remembered(BURST, now))
        self._objects.move_to_end(uid)
        if len(self._objects) > WRITTEN_LIMIT:
            self._objects.popitem(last=False)
        return budget.take(BURST, REFILL_SECONDS, now)

    async def _write_next(self, *, at_any_time: bool = False) -> None:
        for same in self._pending.values():
            first = next(iter(same.values()), None)
            if first is not None and (at_any_time or self._time_of(first) <= loop_time()):
                del same[first.series]
                if self._is_too_late(first):
                    self._metrics.event_dropped("object_gone")
                    await asyncio.sleep(0)  # thousands may be
                else:
                    await self._attempt(first)
                return

    def _is_too_late(self, pending: _Pending) -> bool:
        is_gone = not pending.series.warning and pending.series.uid not in self._objects
        return is_gone and loop_time() > pending.due + GONE_SECONDS

    async def _attempt(self, pending: _Pending) -> None:
        """Write it; after a failure that may pass, put it back and pause for all."""
        try:
            await self._write(pending)
        except (Unreachable, ServerFailure, Throttled) as error:
            pending.attempts += 1
            if pending.attempts == ATTEMPTS:
                self._metrics.event_dropped("unreachable")
                return
            asked = error.retry_after_seconds if isinstance(error, ApiError) else None
            pause = min(asked or 2.0 ** (pending.attempts - 1), LONGEST_PAUSE_SECONDS)
            self._paused_until = loop_time() + pause
            self._put_back(pending)
        except OperatorError as error:
            self._refused(pending, error)

    def _put_back(self, pending: _Pending) -> None:
        """Have it written first of its sort, with what has happened meanwhile."""
        same = self._pending[pending.series.warning]
        if later := same.get(pending.series):
            pending.add_later(later)
        same[pending.series] = pending
        same.move_to_end(pending.series, last=False)

    async def _write(self, pending: _Pending) -> None:
        """Create the Event of a series, or raise its count. One request, unless memory is wrong."""
        remembered = self._objects.get(pending.series.uid)
        count = remembered.counts.get(pending.series) if remembered else None
        if remembered is not None and count is not None:
            try:
                await self._raise_count(pending, count + pending.count)
            except NotFound:  # the API server forgets Events after an hour
                remembered.counts.pop(pending.series, None)
            else:
                return
        try:
            await self._client.create(Event, self._new(pending))
        except Conflict:  # ours, from before a restart; its count comes with the answer
            event = await self._raise_count(pending, None)
            await self._raise_count(pending, event.count + pending.count)
        else:
            self._remember(pending.series, pending.count)

    async def _raise_count(self, pending: _Pending, count: int | None) -> Event:
        patch: Object = {"message": pending.message, "lastTimestamp": rfc3339(pending.until)}
        if count is not None:
            patch["count"] = count
        event = await self._client.merge_patch(Event, pending.key, patch)
        if count is not None:
            self._remember(pending.series, count)
        return event

    def _remember(self, series: _Series, count: int) -> None:
        if remembered := self._objects.get(series.uid):  # else the object is gone
            remembered.counts[series] = count

    def _new(self, pending: _Pending) -> Object:
        about, series, key = pending.about, pending.series, pending.key
        return Event.KIND.manifest(
            key._asdict(),
            involvedObject={
                "apiVersion": about.kind.api_version,
                "kind": about.kind.name,
                "name": about.key.name,
                "namespace": about.key.namespace,
                "uid": about.uid,
                "resourceVersion": about.resource_version,
            },
            type="Warning" if series.warning else "Normal",
            reason=series.reason,
            message=pending.message,
            count=pending.count,
            firstTimestamp=rfc3339(pending.since),
            lastTimestamp=rfc3339(pending.until),
            source={"component": series.component},
            reportingComponent=series.component,
            reportingInstance=self._instance,
        )

    def _refused(self, pending: _Pending, error: OperatorError) -> None:
        if _namespace_is_going(error):
            self._metrics.event_dropped("namespace_gone")
            return
        self._metrics.event_dropped("refused")
        if isinstance(error, Forbidden):
            if self._has_logged_forbidden:
                return
            self._has_logged_forbidden = True
        _log.warning("event not written", event_key=str(pending.key), error=str(error))


@dataclass(frozen=True, slots=True)
class Recorder:
    """Records events for one controller; `component` is its name in `kubectl describe`."""

    writer: EventWriter
    component: str

    def event(
        self,
        *about: Resource,
        reason: str,
        message: str,
        warning: bool = False,
        cause: str = "",
    ) -> None:
        """Record that something happened to each of `about`. Returns at once and never fails.

        The log gets one line, whether an Event is written or dropped; `cause` is for the log only.
        """
        log_decision(reason, message, warning=warning, cause=cause)
        for resource in about:
            series = _Series(resource.metadata.uid, self.component, warning, reason)
            self.writer.accept(series, resource, message)


def log_decision(reason: str, message: str, *, warning: bool = False, cause: str = "") -> None:
    """One line of the log for what was decided; during a reconcile it names the object."""
    why = {"cause": str(cause)} if cause else {}
    _log.log(logging.WARNING if warning else logging.INFO, message, reason=str(reason), **why)


def _namespace_is_going(error: OperatorError) -> bool:
    if isinstance(error, NotFound):
        return True
    causes = (error.details or {}).get("causes", ()) if isinstance(error, Forbidden) else ()
    return any(cause.get("reason") == "NamespaceTerminating" for cause in causes)
