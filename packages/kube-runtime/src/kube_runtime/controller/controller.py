"""The contract of a reconciler, the controller that turns changes into reconciles, and its work queue.

Reconciles are level-triggered: a reconciler gets a key, never an event, and acts on the state that it reads.
The queue is deduplicated: a key is delayed, due or being processed. A key that is added while it is processed
is queued again afterwards. So two workers never process one object at once, and no change is lost.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Container, Iterable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial
from typing import Any, ClassVar, Protocol

import msgspec
import structlog

from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache, Change
from kube_runtime.client.client import sent_methods
from kube_runtime.errors import ApiError, Conflict, NoAnswer, NotFound, OperatorError, Refused, ServerFailure
from kube_runtime.leases import NamespaceExcluded
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.times import Backoff, WriteActivity, loop_time
from kube_runtime.types.meta import Key, Resource


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
"""Each eighth key is the next of the priority whose next one has waited longest, so that none starves."""


CONFLICT = Backoff(first_seconds=0.05, limit_seconds=60)
OUTAGE = Backoff(first_seconds=0.1, limit_seconds=300)
REFUSAL = Backoff(first_seconds=60, limit_seconds=600)
_QUIET_CONFLICTS = 5
SERVER_TIMEOUT_SECONDS = 34.0
"""When the API server ends a request with 504 (`requestTimeoutUpperBound` in k8s.io/apiserver)."""


class WorkQueue:
    """Keys by priority; in it, namespaces take turns, each first in, first out.

    So no namespace waits for the many keys of another. Times are on the event loop's clock, which never
    jumps. While `is_ahead` returns true, only `AHEAD` new keys are processed at a time (`ControllerOptions`).
    """

    def __init__(self, *, is_ahead: Callable[[], bool] | None = None) -> None:
        self._is_ahead = is_ahead
        self._delayed: dict[Key, tuple[asyncio.TimerHandle, Priority]] = {}
        self._due: dict[Priority, dict[str, dict[Key, float]]] = {priority: {} for priority in Priority}
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
        due = (keys for namespaces in self._due.values() for keys in namespaces.values())
        return sum(map(len, due)) + len(self._again)

    @property
    def has_backlog(self) -> bool:
        """Whether keys wait for a worker."""
        return any(self._due.values()) or bool(self._again)

    @property
    def working(self) -> int:
        """Number of keys being processed."""
        return len(self._working)

    @property
    def is_settled(self) -> bool:
        """Whether no key is due, delayed or being processed."""
        return not (self.has_backlog or self._delayed or self._working)

    def add(self, key: Key, *, priority: Priority = Priority.CHANGE, after_seconds: float = 0.0) -> None:
        """Queue a key after that delay.

        If it is queued already, the shorter delay and the higher priority count.
        """
        self.added += 1
        loop = asyncio.get_running_loop()
        due = loop.time() + after_seconds
        if delayed := self._delayed.pop(key, None):
            timer, present = delayed
            timer.cancel()
            due, priority = min(due, timer.when()), min(priority, present)
        is_due = key in self._again or any(
            key in namespaces.get(key.namespace, ()) for namespaces in self._due.values()
        )
        if due <= loop.time() or is_due:
            self._make_due(key, priority)
        elif not self._closed:
            timer = loop.call_at(due, lambda: self._make_due(key, self._delayed.pop(key)[1]))
            self._delayed[key] = timer, priority

    async def take(self) -> tuple[Key, float] | None:
        """Wait for the next key, for which the caller must call `done`. None when the queue is closed.

        With the key comes how many seconds it was due.
        """
        while not self._closed:
            priority = self._next()
            if priority is not None:
                namespaces = self._due[priority]
                namespace = next(iter(namespaces))
                keys = namespaces.pop(namespace)
                key = next(iter(keys))
                since = keys.pop(key)
                if keys:
                    namespaces[namespace] = keys  # behind all others
                self._working[key] = priority
                self._taken += 1
                return key, loop_time() - since
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
        for timer, _ in self._delayed.values():
            timer.cancel()
        self._delayed.clear()

    def _make_due(self, key: Key, priority: Priority) -> None:
        if key in self._working:
            self._again[key] = min(priority, self._again.get(key, priority))
            return
        since = loop_time()
        for present, namespaces in self._due.items():
            keys = namespaces.get(key.namespace, {})
            if key in keys:
                if present <= priority:
                    return
                since = keys.pop(key)
                if not keys:
                    del namespaces[key.namespace]
        self._due[priority].setdefault(key.namespace, {})[key] = since
        self._wake.set()

    def _next(self) -> Priority | None:
        """The priority whose first key is next; None if no key may be processed now."""
        due = [priority for priority, keys in self._due.items() if keys and self._may_start(priority)]
        if due and self._taken % FAIR_INTERVAL == FAIR_INTERVAL - 1:
            return min(
                due, key=lambda priority: next(iter(next(iter(self._due[priority].values())).values()))
            )
        return due[0] if due else None

    def _may_start(self, priority: Priority) -> bool:
        if priority is not Priority.NEW or self._is_ahead is None or not self._is_ahead():
            return True
        return list(self._working.values()).count(Priority.NEW) < AHEAD


def _retry(error: BaseException, failures: int) -> tuple[Backoff, int]:
    """The backoff after an error that `failures` of the key came before, and the level to log it."""
    match error:
        case Conflict():
            return CONFLICT, logging.DEBUG if failures < _QUIET_CONFLICTS else logging.WARNING
        case NotFound():  # what is missing may exist in a moment
            return OUTAGE, logging.WARNING
        case Refused() | RecursionError():  # the last: an object nested too deeply
            return REFUSAL, logging.WARNING
        case OperatorError() | TimeoutError():
            return OUTAGE, logging.WARNING
    return OUTAGE, logging.ERROR  # with a traceback


def _least_seconds(error: BaseException) -> float:
    # If the API server did not answer in time, it is overloaded or needs that long for this one object, and
    # may still be at work. An immediate retry would delay other requests and Leases.
    match error:
        case NoAnswer():
            return error.waited_seconds
        case ApiError(code=504):
            return max(error.retry_after_seconds or 0.0, SERVER_TIMEOUT_SECONDS)
        case ApiError():
            return error.retry_after_seconds or 0.0
        case _:
            return 0.0


_log = structlog.get_logger(__name__)

_STUCK_SECONDS = 30.0
"""Seconds after its timeout when a reconcile that ignores its cancellation counts as stuck."""


class Result(msgspec.Struct, frozen=True):
    """The outcome of a reconcile.

    The key is reconciled again after `requeue_after_seconds`. `written` is the object as the last write of
    this reconcile left it: watch events up to that state do not requeue the key. That loses no change: each
    write names the resource version that it is based on. Without it every event requeues, which suits a
    reconciler that continues from its own status. That the objects `created` exist does not requeue the key
    either. `failure`, which the status reports, is logged and retried like an error that is raised. While a
    status `waits`, only changes that `ControllerOptions.hastens` picks requeue the key earlier.
    """

    requeue_after_seconds: float | None = None
    written: Resource | None = None
    created: tuple[Resource, ...] = ()
    failure: OperatorError | None = None
    waits: bool = False


DONE = Result()


class Reconciler(Protocol):
    """Brings the objects of one kind to their desired state."""

    reconciles: ClassVar[type[Resource]]
    """The kind to reconcile."""

    owns: ClassVar[tuple[type[Resource], ...]] = ()
    """Kinds whose changes requeue the object that controls them."""

    @property
    def watches(self) -> tuple[Watches, ...]:
        """Other kinds whose changes requeue keys."""
        return ()

    async def reconcile(self, key: Key) -> Result:
        """Compare the actual with the desired state, and write the difference. The object may be gone."""
        ...


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """Concurrency, rate and order of a controller's reconciles.

    A change of a child, of which a rollout makes several a second, is delayed by `coalesce_seconds`, one of
    the object itself never. While `is_ahead`, objects that this controller created wait for another one: it
    starts few new objects at a time, so that those in progress are finished first. `report` tells the user
    why a reconcile ended: a write was refused or failed, or the object is nested too deeply. `hastens` tells
    whether a change of another object may end the wait of a status (`Result.waits`).
    """

    workers: int = 16
    timeout_seconds: float = 120.0
    resync_seconds: float = 600.0
    coalesce_seconds: float = 0.1
    is_ahead: Callable[[], bool] | None = None
    report: Callable[[Key, ApiError | RecursionError], Awaitable[Result]] | None = None
    hastens: Callable[[Change[Any]], bool] = lambda _: True


class Controller:
    """Runs one reconciler on keys from the cache, with a bounded number of workers.

    The keys of namespaces that are `excluded` when they are dequeued are skipped, and `wake_namespace`
    requeues them. `activity` records reconciles that sent requests.
    """

    def __init__(
        self,
        reconciler: Reconciler,
        cache: Cache,
        *,
        metrics: RuntimeMetrics,
        options: ControllerOptions | None = None,
        excluded: Container[str] = (),
        activity: WriteActivity | None = None,
    ) -> None:
        self._reconciler = reconciler
        self._activity = activity or WriteActivity()
        self._excluded = excluded
        self._is_subscribed = False
        self._cache = cache
        self._metrics = metrics
        self._options = options or ControllerOptions()
        self._queue = WorkQueue(is_ahead=self._options.is_ahead)
        self._started: dict[Key, float] = {}
        self._own_changes: dict[Key, list[Change[Resource]]] = {}  # of an object during its reconcile
        self._appeared: dict[Key, list[Resource]] = {}  # others that would queue it, during its reconcile
        self._waiting: set[Key] = set()  # those whose status waits
        self.kind = reconciler.reconciles.KIND
        queue = self._queue
        metrics.observe_queue(
            self.kind.name,
            depth=lambda: queue.depth,
            active=lambda: queue.working,
            added=lambda: queue.added,
            retried=lambda: queue.retried,
        )

    @property
    def is_settled(self) -> bool:
        """Whether no key is queued, delayed or being reconciled."""
        return self._queue.is_settled

    def has_backlog(self) -> bool:
        """Whether keys wait for a worker."""
        return self._queue.has_backlog

    def subscribe(self) -> None:
        """Queue the keys of all existing objects, and of changes from now on. Call it once, before `run`.

        Not on a standby: its queue would grow with every object that ever existed.
        """
        reconciler, delay = self._reconciler, self._options.coalesce_seconds
        self._is_subscribed = True
        self._cache.subscribe(reconciler.reconciles, self._enqueue_own)
        self._cache.store(reconciler.reconciles).subscribe_broken(self._queue.add)
        for type_ in reconciler.owns:
            enqueue = partial(self._enqueue, self._controlling_key, delay)
            self._cache.subscribe(type_, enqueue)
        for watch in reconciler.watches:
            enqueue = partial(self._enqueue, watch.map_to, delay, label=watch.label)
            self._cache.subscribe(watch.type_, enqueue)
        for type_ in {*reconciler.owns, *(watch.type_ for watch in reconciler.watches)}:
            self._cache.store(type_).subscribe_served(self._enqueue_all)

    async def run(self) -> None:
        """Reconcile until `close`, then finish the running reconciles."""
        async with asyncio.TaskGroup() as group:
            resync = group.create_task(self._resync(), name=f"resync {self.kind}")
            async with asyncio.TaskGroup() as workers:
                for number in range(self._options.workers):
                    workers.create_task(self._work(), name=f"worker {number} {self.kind}")
            resync.cancel()

    def close(self) -> None:
        """Start no new reconciles."""
        self._queue.close()

    def stuck(self) -> list[Key]:
        """Keys whose reconcile exceeded its timeout and ignores its cancellation."""
        oldest = loop_time() - self._options.timeout_seconds - _STUCK_SECONDS
        return [key for key, started in self._started.items() if started < oldest]

    def _enqueue_own(self, change: Change[Resource]) -> None:
        """Queue the key of an object that changed; during its reconcile, keep the change until the end."""
        if (state := change.new or change.old) is None:
            return
        if (during := self._own_changes.get(state.key)) is not None:
            during.append(change)
        else:
            self._own_changed(state.key, change)

    def _own_changed(self, key: Key, change: Change[Resource]) -> None:
        if change.new is None:
            about = {"controller": self.kind.name, "namespace": key.namespace}
            _log.info("deleted", key=str(key), **about)
        self._queue.add(key, priority=_priority(change))

    def _enqueue(
        self,
        keys: Callable[[Any], Iterable[Key]],
        after_seconds: float,
        change: Change[Resource],
        *,
        label: str = "",
    ) -> None:
        priority = Priority.BACKLOG if change.initial else Priority.CHANGE
        for state in (change.old, change.new):
            if state is None or (label and label not in state.metadata.labels):
                continue
            for key in keys(state):
                if change.old is None and key in self._appeared:
                    self._appeared[key].append(state)
                elif key not in self._waiting or self._options.hastens(change):
                    self._queue.add(key, priority=priority, after_seconds=after_seconds)

    def wake(self, key: Key) -> None:
        """Queue a key for a reason that no watch reports, delayed like the change of a child."""
        self._queue.add(key, after_seconds=self._options.coalesce_seconds)

    def wake_namespace(self, namespace: str) -> None:
        """Queue every key of a namespace that was excluded: its objects may have changed."""
        if self._is_subscribed:  # `subscribe` queues all existing objects
            self._enqueue_all(namespace)

    def _enqueue_all(self, namespace: str = "") -> None:
        type_ = self._reconciler.reconciles
        unreadable = self._cache.store(type_).broken
        for key in (*(object_.key for object_ in self._cache.list(type_, namespace)), *unreadable):
            if namespace in ("", key.namespace):
                self._queue.add(key, priority=Priority.BACKLOG)

    def _controlling_key(self, child: Resource) -> tuple[Key, ...]:
        owner = child.metadata.controller
        if owner is None or owner.kind != self.kind.name:
            return ()
        if owner.api_version.rpartition("/")[0] != self.kind.group:
            return ()
        return (Key(child.metadata.namespace if self.kind.namespaced else "", owner.name),)

    async def _work(self) -> None:
        while taken := await self._queue.take():
            key, waited_seconds = taken
            self._waiting.discard(key)
            self._metrics.waited(self.kind.name, waited_seconds)
            structlog.contextvars.clear_contextvars()  # of the previous reconcile
            with structlog.contextvars.bound_contextvars(
                controller=self.kind.name, key=str(key), namespace=key.namespace
            ):
                if key.namespace in self._excluded:
                    _log.debug("skipped, the namespace belongs to another operator")
                    self._queue.succeeded(key)
                    self._queue.done(key)
                    is_yielded = False
                else:
                    is_yielded = await self._reconcile(key)
            # A reconcile of a settled object sends no request, so it never yields. A thousand of them in a
            # row would keep watches, probes and other controllers waiting for seconds.
            if not is_yielded:
                await asyncio.sleep(0)

    async def _reconcile(self, key: Key) -> bool:
        """Reconcile once, and return whether it sent a request. Whatever it raises ends here, as a retry."""
        started = self._started[key] = loop_time()
        changes = self._own_changes.setdefault(key, [])
        appeared = self._appeared.setdefault(key, [])
        sent, outcome = list[str](), DONE
        sent_methods.set(sent)  # the worker has a context of its own
        try:
            async with asyncio.timeout(self._options.timeout_seconds):
                outcome = await self._outcome(key)
        except asyncio.CancelledError as error:
            worker = asyncio.current_task()
            if worker and worker.cancelling():
                raise
            self._failed(key, error)  # a task of the reconcile was cancelled, not the worker
            result = "error"
        except Exception as error:  # noqa: BLE001  # a bug in one reconcile must not end the others
            is_excluded = isinstance(error, NamespaceExcluded) and key.namespace in self._excluded
            if is_excluded or self._is_of_absent(key, error):
                _log.debug("nothing is left to do", error=str(error))
                result = self._ended(key, DONE)
            else:
                self._failed(key, error)
                result = "error"
        else:
            result = self._ended(key, outcome)
        finally:
            del self._started[key], self._own_changes[key], self._appeared[key]
            if sent:
                self._activity.record()
            # Those after the state `written`, which is based on all before it.
            states = [change.new and _state(change.new) for change in changes]
            written = outcome.written
            if written is not None and _state(written) in states:
                del changes[: states.index(_state(written)) + 1]
            for change in changes:
                self._own_changed(key, change)
            created = {(object_.metadata.uid, *_state(object_)) for object_ in outcome.created}
            if any((object_.metadata.uid, *_state(object_)) not in created for object_ in appeared):
                self.wake(key)
            self._queue.done(key)
        seconds = loop_time() - started
        self._metrics.reconciled(self.kind.name, key.namespace, result, seconds)
        _log.debug("reconciled", result=result, seconds=round(seconds, 4), requests=len(sent))
        if not self._cache.has_any(self._reconciler.reconciles, key.namespace):
            self._metrics.forget(self.kind.name, key.namespace)
        return bool(sent)

    async def _outcome(self, key: Key) -> Result:
        report = self._options.report
        try:
            return await self._reconciler.reconcile(key)
        except (Refused, ServerFailure) as error:
            is_write = error.method not in ("", "GET")
            if report is None or not is_write or self._is_of_absent(key, error):
                raise
            return await report(key, error)
        except RecursionError as error:
            if report is None:
                raise
            return await report(key, error)

    def _is_of_absent(self, key: Key, error: Exception) -> bool:
        """Whether the error is a 404 of the reconciled object, not of another one that it needs."""
        if not isinstance(error, NotFound) or (error.kind, error.key) != (self.kind, key):
            return False
        # A 404 of a kind that is not served names no object.
        return (error.details or {}).get("name") == key.name

    def _ended(self, key: Key, outcome: Result) -> str:
        if outcome.failure is None:
            self._queue.succeeded(key)
        else:
            self._failed(key, outcome.failure)
        if outcome.requeue_after_seconds is not None:
            self._queue.add(key, after_seconds=outcome.requeue_after_seconds)
            if outcome.waits:
                self._waiting.add(key)
        if outcome.failure is not None:
            return "error"
        return "success" if outcome.requeue_after_seconds is None else "requeue"

    def _failed(self, key: Key, error: BaseException) -> None:
        self._metrics.reconcile_failed(self.kind.name, key.namespace, error)
        backoff, level = _retry(error, self._queue.failures(key))
        seconds = self._queue.failed(key, backoff, at_least_seconds=_least_seconds(error))
        _log.log(
            level,
            "reconcile failed",
            error=str(error) or type(error).__name__,
            error_type=type(error).__name__,
            retry_in_seconds=round(seconds, 2),
            exc_info=error if level == logging.ERROR else None,
        )

    async def _resync(self) -> None:
        period = self._options.resync_seconds
        while True:
            await asyncio.sleep(period)
            for object_ in self._cache.list(self._reconciler.reconciles):
                after = period * random.random()  # noqa: S311  # spreads load, guards nothing
                self._queue.add(object_.key, priority=Priority.BACKLOG, after_seconds=after)


def _priority(change: Change[Resource]) -> Priority:
    if change.initial:
        return Priority.BACKLOG
    if change.old is None:
        return Priority.NEW
    is_edit = change.new is None or _edited(change.old) != _edited(change.new)
    return Priority.EDIT if is_edit else Priority.CHANGE


def _state(object_: Resource) -> tuple[str, str | None]:
    """The version, and whether the store shows the object as being deleted."""
    return object_.metadata.resource_version, object_.metadata.deletion_timestamp


def _edited(object_: Resource) -> tuple[object, ...]:
    """What differs after an edit, and does not after a new status."""
    metadata = object_.metadata
    identity = metadata.uid, metadata.generation, metadata.deletion_timestamp
    return *identity, metadata.labels, metadata.annotations
