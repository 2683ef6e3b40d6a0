"""The contract of a reconciler, and the controller that turns changes into reconciles.

A reconciler gets a key and never an event: it acts on the state that it reads. Errors are classified by
what a retry can do: a conflict resolves at once, an outage needs a backoff, and a refusal needs a user.
"""

import asyncio
import itertools
import logging
import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, Protocol

import structlog

from kube_runtime.cache.cache import Cache, Change
from kube_runtime.cache.informer import Watches
from kube_runtime.client.retry import RequestCount, counting_requests
from kube_runtime.clock import loop_time
from kube_runtime.controller.stall import doing
from kube_runtime.controller.work_queue import Priority, WorkQueue, retry
from kube_runtime.controller.worker_slots import WORKER_SLOTS, WorkerSlots
from kube_runtime.coordination.excluded_namespaces import NamespaceExcluded
from kube_runtime.errors import NotFound
from kube_runtime.kind import Key
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.rate_limits import WriteActivity
from kube_runtime.types.meta import Resource

_log = structlog.get_logger()

_STUCK_SECONDS = 30.0
"""After its time limit, a reconcile that has not ended is reported."""


@dataclass(frozen=True, slots=True)
class Result:
    """How a reconcile ended. With `requeue_after_seconds` the key is reconciled again after that time.

    `written` is the reconciled object as the last write of this reconcile left it: events up to it do not
    requeue. Each write on the object names the version that it was made on, the first that of the state that
    was read. So another client's change before it makes it fail, and one after it makes another version.
    None means: every event requeues, as a reconciler needs that continues from its own status.
    """

    requeue_after_seconds: float | None = None
    written: Resource | None = None


DONE = Result()


class Reconciler(Protocol):
    """Reconciles the objects of one kind with their specs."""

    reconciles: ClassVar[type[Resource]]
    """The reconciled kind; each of its objects is a key."""

    owns: ClassVar[tuple[type[Resource], ...]] = ()
    """Kinds whose changes wake the object that controls them."""

    @property
    def watches(self) -> tuple[Watches, ...]:
        """Other kinds that are read."""
        return ()

    async def reconcile(self, key: Key) -> Result:
        """Compare actual with desired state, and act. The object may be deleted."""
        ...


@dataclass(frozen=True, slots=True)
class ControllerOptions:
    """Rate and order of a controller's reconciles.

    `coalesce_seconds` is how long a change of a child waits for the next one, because a rollout
    changes a child several times a second. A change of the object itself never waits.
    `is_ahead` returns whether what this controller has created waits for another one. Then it begins few new
    objects at a time, so that what has begun is finished first.
    """

    workers: int = 16
    timeout_seconds: float = 120.0
    resync_seconds: float = 600.0
    coalesce_seconds: float = 0.1
    is_ahead: Callable[[], bool] | None = None


class Controller:
    """Runs one reconciler on keys from the cache, with a bounded number of workers.

    `is_excluded(namespace)`: another operator manages it. Checked when a key is dequeued, not when it is
    queued; `wake_namespace` requeues what was skipped. `write_activity` counts reconciles that wrote.
    """

    def __init__(
        self,
        reconciler: Reconciler,
        cache: Cache,
        *,
        metrics: RuntimeMetrics,
        options: ControllerOptions | None = None,
        is_excluded: Callable[[str], bool] | None = None,
        activity: WriteActivity | None = None,
    ) -> None:
        self._reconciler = reconciler
        self._activity = activity or WriteActivity()
        self._is_excluded = is_excluded
        self._is_subscribed = False
        self._cache = cache
        self._metrics = metrics
        self._options = options or ControllerOptions()
        self._queue = WorkQueue(is_ahead=self._options.is_ahead)
        self._started: dict[Key, float] = {}
        self._heard: dict[Key, list[Change[Any]]] = {}  # of a key while it is worked on
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
        """Whether no key is due, delayed or being worked on."""
        return self._queue.is_settled

    def has_backlog(self) -> bool:
        """Whether keys wait for a worker."""
        return self._queue.depth > 0

    def subscribe(self) -> None:
        """Queue keys from now on, first those of all existing objects; call once, before `run`.

        Not on a standby, whose queue would grow with every object that ever existed.
        """
        reconciler, delay = self._reconciler, self._options.coalesce_seconds
        self._is_subscribed = True
        self._cache.subscribe(reconciler.reconciles, self._wake_itself)
        self._cache.subscribe_broken(reconciler.reconciles, self._queue.add)
        for type_ in reconciler.owns:
            wake = partial(self._wake, self._controlling_key, delay)
            self._cache.subscribe(type_, wake)
        for watch in reconciler.watches:
            wake = partial(self._wake, watch.map_to, delay)
            self._cache.subscribe(watch.type_, wake)
        for type_ in {*reconciler.owns, *(watch.type_ for watch in reconciler.watches)}:
            self._cache.subscribe_served(type_, self._wake_all)

    async def run(self) -> None:
        """Reconcile until `close`, then finish the running reconciles."""
        async with asyncio.TaskGroup() as group:
            resync = group.create_task(self._resync(), name=f"resync {self.kind}")
            async with asyncio.TaskGroup() as workers:
                names = (f"worker {number} {self.kind}" for number in itertools.count())
                slots = WorkerSlots(
                    lambda: workers.create_task(self._work(slots), name=next(names))
                )
                for _ in range(self._options.workers):
                    workers.create_task(self._work(slots), name=next(names))
            resync.cancel()

    def close(self) -> None:
        """Start no more reconciles."""
        self._queue.close()

    def stuck(self) -> list[Key]:
        """Keys whose reconcile exceeded its time limit and does not react to cancellation."""
        oldest = loop_time() - self._options.timeout_seconds - _STUCK_SECONDS
        return [key for key, started in self._started.items() if started < oldest]

    def _wake_itself(self, change: Change[Any]) -> None:
        """Wake a key by a change of its object; while it is worked on, only when that is done."""
        state = change.new or change.old
        if change.new is None and state is not None:
            about = {"controller": self.kind.name, "namespace": state.key.namespace}
            _log.info("deleted", key=str(state.key), **about)
        heard = self._heard.get(state.key) if state is not None else None
        if heard is None:
            self._wake(_own_key, 0.0, change)
        else:
            heard.append(change)

    def _wake(
        self,
        keys: Callable[[Any], Iterable[Key]],
        after_seconds: float,
        change: Change[Any],
    ) -> None:
        priority = Priority.BACKLOG if change.initial else Priority.CHANGE
        if keys is _own_key and not change.initial:
            if change.old is None:
                priority = Priority.NEW
            elif _is_edit(change):
                priority = Priority.EDIT
        for state in (change.old, change.new):
            for key in keys(state) if state is not None else ():
                self._queue.add(key, priority=priority, after_seconds=after_seconds)

    def wake(self, key: Key) -> None:
        """Queue that key for a cause that no watch reports, with the delay of a child's change."""
        self._queue.add(key, after_seconds=self._options.coalesce_seconds)

    def wake_namespace(self, namespace: str) -> None:
        """Queue every key of a namespace that was skipped; its objects may have changed."""
        if self._is_subscribed:  # `start` queues all that exists
            self._wake_all(namespace)

    def _wake_all(self, namespace: str = "") -> None:
        """Queue every key: a kind that they need was installed or removed."""
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

    async def _work(self, slots: WorkerSlots) -> None:
        WORKER_SLOTS.set(slots)
        while not slots.is_surplus() and (taken := await self._queue.take()):
            self._metrics.waited(self.kind.name, taken.waited_seconds)
            structlog.contextvars.clear_contextvars()  # what the reconcile before has bound
            with structlog.contextvars.bound_contextvars(
                controller=self.kind.name, key=str(taken.key), namespace=taken.key.namespace
            ):
                if self._is_excluded is not None and self._is_excluded(taken.key.namespace):
                    _log.debug("skipped, the namespace belongs to another operator")
                    self._queue.succeeded(taken.key)
                    self._queue.done(taken.key)
                else:
                    with doing(f"{self.kind.name} {taken.key}"):
                        await self._attempt(taken.key)
            # A settled object makes no request and so never yields. Without this, a thousand of them in a row
            # would keep watches, probes and other controllers waiting for seconds.
            await asyncio.sleep(0)

    async def _attempt(self, key: Key) -> None:
        """Reconcile once. This is the one place where any exception is caught."""
        started = self._started[key] = loop_time()
        heard, sent, written = self._heard.setdefault(key, []), RequestCount(), DONE.written
        try:
            with counting_requests() as sent:
                async with asyncio.timeout(self._options.timeout_seconds):
                    outcome = await self._reconciler.reconcile(key)
        except asyncio.CancelledError as error:
            worker = asyncio.current_task()
            if worker and worker.cancelling():
                raise
            self._failed(key, error)  # something inside was cancelled; the worker lives on
            result = "error"
        except Exception as error:  # noqa: BLE001  # a bug in one reconcile must not end the others
            if isinstance(error, NamespaceExcluded) or self._is_of_absent(key, error):
                _log.debug("nothing is left to do", error=str(error))
                result = self._succeeded(key, DONE)
            else:
                self._failed(key, error)
                result = "error"
        else:
            result, written = self._succeeded(key, outcome), outcome.written
        finally:
            del self._started[key], self._heard[key]
            if sent.requests:
                self._activity.note()
            for change in _since(written, heard):
                self._wake(_own_key, 0.0, change)
            self._queue.done(key)
        seconds = loop_time() - started
        self._metrics.reconciled(self.kind.name, key.namespace, result, seconds)
        _log.debug("reconciled", result=result, seconds=round(seconds, 4), requests=sent.requests)
        if next(self._cache.list(self._reconciler.reconciles, key.namespace), None) is None:
            self._metrics.forget(self.kind.name, key.namespace)

    def _is_of_absent(self, key: Key, error: Exception) -> bool:
        """Whether the 404 is about the reconciled object, not about another one that it needs."""
        if not isinstance(error, NotFound) or (error.kind, error.key) != (self.kind, key):
            return False
        # Of a kind that is not served it names no object.
        return (error.details or {}).get("name") == key.name

    def _succeeded(self, key: Key, outcome: Result) -> str:
        self._queue.succeeded(key)
        if outcome.requeue_after_seconds is not None:
            self._queue.add(key, after_seconds=outcome.requeue_after_seconds)
            return "requeue"
        return "success"

    def _failed(self, key: Key, error: BaseException) -> None:
        self._metrics.reconcile_failed(self.kind.name, key.namespace, error)
        how = retry(error, self._queue.failures(key))
        seconds = self._queue.failed(key, how.backoff, at_least_seconds=how.at_least_seconds)
        _log.log(
            how.level,
            "reconcile failed",
            error=str(error) or type(error).__name__,
            error_type=type(error).__name__,
            retry_in_seconds=round(seconds, 2),
            exc_info=error if how.level == logging.ERROR else None,
        )

    async def _resync(self) -> None:
        """Resync: queue every key once per period, spread over it; repairs even missed events."""
        period = self._options.resync_seconds
        while True:
            await asyncio.sleep(period)
            for object_ in self._cache.list(self._reconciler.reconciles):
                after = period * random.random()  # noqa: S311  # spreads load, guards nothing
                self._queue.add(object_.key, priority=Priority.BACKLOG, after_seconds=after)


def _own_key(object_: Resource) -> tuple[Key, ...]:
    return (object_.key,)


def _since(written: Resource | None, heard: list[Change[Any]]) -> list[Change[Any]]:
    """The changes after a state that was written, which was made on all that came before it."""
    states = [change.new and _state(change.new) for change in heard]
    if written is None or _state(written) not in states:
        return heard
    return heard[states.index(_state(written)) + 1 :]


def _state(object_: Resource) -> tuple[str, str | None]:
    """The version, and what the store shows in front of it when we have deleted the object."""
    return object_.metadata.resource_version, object_.metadata.deletion_timestamp


def _is_edit(change: Change[Any]) -> bool:
    """Whether a change is a new desired state of an object, rather than a new object or a new status."""
    return change.old is not None and (
        change.new is None or _spec_and_metadata(change.old) != _spec_and_metadata(change.new)
    )


def _spec_and_metadata(object_: Resource) -> tuple[object, ...]:
    metadata = object_.metadata
    return (
        *(metadata.uid, metadata.generation, metadata.deletion_timestamp),
        *(metadata.labels, metadata.annotations),
    )
