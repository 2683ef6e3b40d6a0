"""The work queue: which key to reconcile next and when, also after a failure.

The queue is deduplicated: a key is delayed, due or being processed. A key that is added while it is
processed is queued again afterwards. So two workers never process one object at once, and no change is lost.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from kube_runtime.errors import ApiError, Conflict, NoAnswer, NotFound, OperatorError, Refused
from kube_runtime.kind import Key
from kube_runtime.rate_limits import Backoff
from kube_runtime.times import loop_time


class Priority(IntEnum):
    """Order: edits of existing objects, changes of children, new objects, then initial list and resync.

    Objects in progress go before new ones. If a hundred new graphs went first, the first of them would not
    report that it is ready until the last one is created.
    """

    EDIT = 0
    CHANGE = 1
    NEW = 2
    BACKLOG = 3


AHEAD = 2
"""Concurrent new keys while `is_ahead` (docs/decisions/0037)."""

FAIR_INTERVAL = 8
"""Each eighth key is the one that has waited longest, so that no priority starves."""


CONFLICT = Backoff(first_seconds=0.05, limit_seconds=60)
OUTAGE = Backoff(first_seconds=0.1, limit_seconds=300)
REFUSAL = Backoff(first_seconds=60, limit_seconds=600)
_QUIET_CONFLICTS = 5
SERVER_TIMEOUT_SECONDS = 34.0
"""When the API server ends a request with 504 (`requestTimeoutUpperBound` in k8s.io/apiserver)."""


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A key for a worker, and how long it was due."""

    key: Key
    priority: Priority
    waited_seconds: float


@dataclass(frozen=True, slots=True)
class _Delayed:
    timer: asyncio.TimerHandle
    priority: Priority


class WorkQueue:
    """Keys by priority, then first in, first out. Times are on the event loop's clock, which never jumps.

    While `is_ahead` returns true, only `AHEAD` new keys are processed at a time (see `ControllerOptions`).
    """

    def __init__(self, *, is_ahead: Callable[[], bool] | None = None) -> None:
        self._is_ahead = is_ahead
        self._delayed: dict[Key, _Delayed] = {}
        self._due: dict[Priority, dict[Key, float]] = {priority: {} for priority in Priority}
        self._working: dict[Key, Priority] = {}
        self._again: dict[Key, Priority] = {}  # became due while being processed
        self._failures: dict[Key, int] = {}
        self._taken = 0
        self.added = 0
        """Number of keys added, retries included."""
        self.retried = 0
        """Number of keys added after a failure."""
        self._wake = asyncio.Event()
        self._closed = False

    @property
    def depth(self) -> int:
        """Number of keys that wait for a worker."""
        return sum(map(len, self._due.values())) + len(self._again)

    @property
    def working(self) -> int:
        """Number of keys being processed."""
        return len(self._working)

    @property
    def is_settled(self) -> bool:
        """Whether no key is due, delayed or being processed."""
        return not (self.depth or self._delayed or self._working)

    def add(
        self, key: Key, *, priority: Priority = Priority.CHANGE, after_seconds: float = 0.0
    ) -> None:
        """Queue a key after that delay.

        If it is queued already, the shorter delay and the higher priority count.
        """
        self.added += 1
        loop = asyncio.get_running_loop()
        due = loop.time() + after_seconds
        if delayed := self._delayed.pop(key, None):
            delayed.timer.cancel()
            due, priority = min(due, delayed.timer.when()), min(priority, delayed.priority)
        is_due = key in self._again or any(key in keys for keys in self._due.values())
        if due <= loop.time() or is_due:
            self._make_due(key, priority)
        elif not self._closed:
            timer = loop.call_at(due, lambda: self._make_due(key, self._delayed.pop(key).priority))
            self._delayed[key] = _Delayed(timer, priority)

    async def take(self) -> WorkItem | None:
        """Wait for the next key, for which the caller must call `done`. None when the queue is closed."""
        while not self._closed:
            priority = self._next()
            if priority is not None:
                keys = self._due[priority]
                key = next(iter(keys))
                since = keys.pop(key)
                self._working[key] = priority
                self._taken += 1
                waited = loop_time() - since
                return WorkItem(key, priority, waited)
            self._wake.clear()
            await self._wake.wait()
        return None

    def done(self, key: Key) -> None:
        """End the processing of a key; it is queued again if it was added meanwhile."""
        del self._working[key]
        again = self._again.pop(key, None)
        if again is not None:
            self._make_due(key, again)
        self._wake.set()  # other new keys may wait for this one

    def succeeded(self, key: Key) -> None:
        """Forget the failures of a key."""
        self._failures.pop(key, None)

    def failed(self, key: Key, backoff: Backoff, *, at_least_seconds: float = 0.0) -> float:
        """Queue a key again after its backoff, and return the delay.

        `at_least_seconds` is what the API server asked for; it may exceed the limit of the backoff.
        """
        self.retried += 1
        failures = self._failures[key] = self.failures(key) + 1
        seconds = max(backoff.seconds(failures), at_least_seconds)
        priority = self._working.get(key, Priority.CHANGE)
        self.add(key, priority=priority, after_seconds=seconds)
        return seconds

    def failures(self, key: Key) -> int:
        """Number of consecutive failures of a key."""
        return self._failures.get(key, 0)

    def close(self) -> None:
        """Return no more keys."""
        self._closed = True
        self._wake.set()
        for delayed in self._delayed.values():
            delayed.timer.cancel()
        self._delayed.clear()

    def _make_due(self, key: Key, priority: Priority) -> None:
        if key in self._working:
            self._again[key] = min(priority, self._again.get(key, priority))
            return
        since = loop_time()
        for present, keys in self._due.items():
            if key in keys:
                if present <= priority:
                    return
                since = keys.pop(key)
        self._due[priority][key] = since
        self._wake.set()

    def _next(self) -> Priority | None:
        """The priority whose first key is next; None if no key may be processed now."""
        due = [
            priority for priority, keys in self._due.items() if keys and self._may_start(priority)
        ]
        if due and self._taken % FAIR_INTERVAL == FAIR_INTERVAL - 1:
            return min(due, key=lambda priority: next(iter(self._due[priority].values())))
        return due[0] if due else None

    def _may_start(self, priority: Priority) -> bool:
        if priority is not Priority.NEW or self._is_ahead is None or not self._is_ahead():
            return True
        return list(self._working.values()).count(Priority.NEW) < AHEAD


@dataclass(frozen=True, slots=True)
class Retry:
    """When to retry after an error, and the level to log it; ERROR has a traceback."""

    backoff: Backoff
    level: int
    at_least_seconds: float = 0.0


def retry(error: BaseException, failures: int) -> Retry:
    """The retry after an error: a conflict passes at once, an outage later, a refusal needs a user.

    `failures` is the number of consecutive failures before.
    """
    at_least = _least_seconds(error)
    match error:
        case Conflict():
            return Retry(
                CONFLICT,
                logging.DEBUG if failures < _QUIET_CONFLICTS else logging.WARNING,
                at_least,
            )
        case NotFound():  # what is missing may exist in a moment
            return Retry(OUTAGE, logging.WARNING, at_least)
        case Refused() | RecursionError():  # the last: an object nested too deeply
            return Retry(REFUSAL, logging.WARNING, at_least)
        case OperatorError() | TimeoutError():
            return Retry(OUTAGE, logging.WARNING, at_least)
        case _:
            return Retry(OUTAGE, logging.ERROR)


def _least_seconds(error: BaseException) -> float:
    """The least delay before the next request.

    If the API server did not answer in time, it is overloaded or needs that long for this one object, and
    may still be at work. An immediate retry would delay other requests and Leases.
    """
    match error:
        case NoAnswer():
            return error.waited_seconds
        case ApiError(code=504):
            return max(error.retry_after_seconds or 0.0, SERVER_TIMEOUT_SECONDS)
        case ApiError():
            return error.retry_after_seconds or 0.0
        case _:
            return 0.0
