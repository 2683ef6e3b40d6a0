"""Which key to reconcile next, and when: also after a reconcile that failed, by what a retry can do.

A key is in at most one place: waiting for its time, due, or being processed. A key that is added while it
is processed is not handed out a second time, but queued again afterwards. So two workers never process one
object at once, and no change is lost.
"""

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum

from kube_runtime.clock import loop_time
from kube_runtime.controller.worker_pool import WorkBusy
from kube_runtime.errors import ApiError, Conflict, Forbidden, Invalid, NoAnswer, OperatorError
from kube_runtime.kind import Key
from kube_runtime.rate_limits import Backoff


class Priority(IntEnum):
    """Order: edits of what exists, changes of children, new objects, then initial list and resync.

    What has begun is finished before something new begins: a hundred new graphs that went first would keep
    the first of them from reporting that it is ready until the last one is made.
    """

    EDIT = 0
    CHANGE = 1
    NEW = 2
    BACKLOG = 3


AHEAD = 2
"""New keys that are handed out at a time while what earlier ones led to waits (docs/decisions/0037)."""

FAIR_INTERVAL = 8
"""Every so many keys, the one that has waited longest is next, so that no priority starves."""


CONFLICT = Backoff(first_seconds=0.05, limit_seconds=60)
OUTAGE = Backoff(first_seconds=0.1, limit_seconds=300)
REFUSAL = Backoff(first_seconds=60, limit_seconds=600)
_QUIET_CONFLICTS = 5
SERVER_TIMEOUT_SECONDS = 34.0
"""After which the API server ends a request with 504 (`requestTimeoutUpperBound` in k8s.io/apiserver)."""
BUSY = Backoff(first_seconds=2, limit_seconds=60)


@dataclass(frozen=True, slots=True)
class WorkItem:
    """A key handed out to a worker, and how long it had been due."""

    key: Key
    priority: Priority
    waited_seconds: float


@dataclass(frozen=True, slots=True)
class _Delayed:
    timer: asyncio.TimerHandle
    priority: Priority


class WorkQueue:
    """Keys by priority, first come first served. Time is the event loop's, which never jumps.

    `is_ahead` returns whether what earlier new keys led to still waits elsewhere. Then only `AHEAD` new keys
    are handed out at a time; all others as ever.
    """

    def __init__(self, *, is_ahead: Callable[[], bool] | None = None) -> None:
        self._is_ahead = is_ahead
        self._delayed: dict[Key, _Delayed] = {}
        self._due: dict[Priority, dict[Key, float]] = {priority: {} for priority in Priority}
        self._working: dict[Key, Priority] = {}
        self._again: dict[Key, Priority] = {}  # became due while being worked on
        self._failures: dict[Key, int] = {}
        self._handed_out = 0
        self.added = 0
        """How often a key was added, retries included."""
        self.retried = 0
        """How often one was added because it had failed."""
        self._wake = asyncio.Event()
        self._closed = False

    @property
    def depth(self) -> int:
        """How many keys are due and wait for a worker."""
        return sum(map(len, self._due.values())) + len(self._again)

    @property
    def working(self) -> int:
        """How many keys are handed out."""
        return len(self._working)

    @property
    def is_settled(self) -> bool:
        """Whether nothing is due, delayed or being worked on."""
        return not (self.depth or self._delayed or self._working)

    def add(
        self, key: Key, *, priority: Priority = Priority.CHANGE, after_seconds: float = 0.0
    ) -> None:
        """Have `key` handed out after that time.

        Of two waits for one key the shorter counts, and of two priorities the higher.
        """
        self.added += 1
        loop = asyncio.get_running_loop()
        due = loop.time() + after_seconds
        if delayed := self._delayed.pop(key, None):
            delayed.timer.cancel()
            due, priority = min(due, delayed.timer.when()), min(priority, delayed.priority)
        if due <= loop.time() or self._is_due(key):
            self._make_due(key, priority)
        elif not self._closed:
            self._delayed[key] = _Delayed(loop.call_at(due, self._ring, key), priority)

    async def take(self) -> WorkItem | None:
        """Wait for the next key and hand it out; the caller must call `done` for it.

        None means: the queue is closed.
        """
        while not self._closed:
            priority = self._next()
            if priority is not None:
                keys = self._due[priority]
                key = next(iter(keys))
                since = keys.pop(key)
                self._working[key] = priority
                self._handed_out += 1
                waited = loop_time() - since
                return WorkItem(key, priority, waited)
            self._wake.clear()
            await self._wake.wait()
        return None

    def done(self, key: Key) -> None:
        """Take `key` back from its worker; it is handed out again if it was added meanwhile."""
        del self._working[key]
        again = self._again.pop(key, None)
        if again is not None:
            self._make_due(key, again)
        self._wake.set()  # it may have been a new key for which others wait

    def succeeded(self, key: Key) -> None:
        """Forget the failures of `key`."""
        self._failures.pop(key, None)

    def failed(self, key: Key, backoff: Backoff, *, at_least_seconds: float = 0.0) -> float:
        """Have `key` handed out again after its backoff, and return that delay.

        `at_least_seconds` is what the API server asked for; it may exceed the backoff's limit.
        """
        self.retried += 1
        failures = self._failures[key] = self.failures(key) + 1
        jitter = random.random()  # noqa: S311  # spreads load, guards nothing
        seconds = max(backoff.seconds(failures, jitter), at_least_seconds)
        priority = self._working.get(key, Priority.CHANGE)
        self.add(key, priority=priority, after_seconds=seconds)
        return seconds

    def failures(self, key: Key) -> int:
        """How often `key` has failed in a row."""
        return self._failures.get(key, 0)

    def close(self) -> None:
        """Hand out no more keys."""
        self._closed = True
        self._wake.set()
        for delayed in self._delayed.values():
            delayed.timer.cancel()
        self._delayed.clear()

    def _is_due(self, key: Key) -> bool:
        return key in self._again or any(key in keys for keys in self._due.values())

    def _ring(self, key: Key) -> None:
        self._make_due(key, self._delayed.pop(key).priority)

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
        """The priority whose first key is next. None means: no key is due."""
        due = [
            priority for priority, keys in self._due.items() if keys and self._may_begin(priority)
        ]
        if due and self._handed_out % FAIR_INTERVAL == FAIR_INTERVAL - 1:
            return min(due, key=lambda priority: next(iter(self._due[priority].values())))
        return due[0] if due else None

    def _may_begin(self, priority: Priority) -> bool:
        if priority is not Priority.NEW or self._is_ahead is None or not self._is_ahead():
            return True
        return list(self._working.values()).count(Priority.NEW) < AHEAD


@dataclass(frozen=True, slots=True)
class Retry:
    """When to retry after an error, and at which level to log it; ERROR has a traceback."""

    backoff: Backoff
    level: int
    at_least_seconds: float = 0.0


def retry(error: BaseException, failures: int) -> Retry:
    """Choose the retry for an error of a reconcile that failed `failures` times in a row before."""
    asked = _least_seconds(error)
    match error:
        case Conflict():
            return Retry(
                CONFLICT, logging.DEBUG if failures < _QUIET_CONFLICTS else logging.WARNING, asked
            )
        case WorkBusy():
            return Retry(BUSY, logging.DEBUG)
        case Invalid() | Forbidden() | RecursionError():  # the last: an object is nested too deeply
            return Retry(REFUSAL, logging.WARNING, asked)
        case OperatorError() | TimeoutError():
            return Retry(OUTAGE, logging.WARNING, asked)
        case _:
            return Retry(OUTAGE, logging.ERROR)


def _least_seconds(error: BaseException) -> float:
    """How long the API server wants to be left alone.

    After a request that got no answer in time it is overloaded, or needs that long for this one object, and
    may still be at work. Immediate retries would keep it busy, and delay other requests and Leases.
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
