"""The manager starts everything in order in one task group, and stops it in the reverse order.

Start: servers and informers; once the caches are synced, the hooks; then the election; then the controllers.
So a standby has warm caches and answers its probes. Stop: no new reconciles, a bounded time for running
ones, their Events, then the Lease, and only then servers and informers. Any failure ends everything, and
`run` raises the first cause.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Container, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NoReturn, Protocol

import structlog

from kube_runtime.apply.writer import HeldLease, Writer
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.controller.controller import Controller, ControllerOptions, Reconciler
from kube_runtime.controller.events import EventWriter
from kube_runtime.errors import OperatorError, is_unconverted, leaves
from kube_runtime.leases import Election, identity
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.times import loop_time
from kube_runtime.types.meta import Resource

_log = structlog.get_logger(__name__)


class Server(Protocol):
    """A task beside the controllers. Its end is a bug, and ends the process."""

    async def run(self) -> None:
        """Serve until cancelled."""
        ...


@dataclass(frozen=True, slots=True)
class Health:
    """The answer to a probe: true if there are no problems."""

    problems: tuple[str, ...]

    def __bool__(self) -> bool:
        return not self.problems


@dataclass(frozen=True, slots=True)
class Limits:
    """Timeouts of a stop, and thresholds of the liveness probe: lag of the event loop, silence of a watch."""

    reconciles_seconds: float = 3.0
    flush_seconds: float = 1.5
    lag_seconds: float = 5.0
    silence_seconds: float = 900.0


LIMITS = Limits()
_BEAT_SECONDS = 1.0


class Manager:
    """The informers, controllers and servers of one process. Add them, then call `run` once.

    `excluded` are the namespaces that belong to other operators. It writes while it leads and holds `leases`.
    """

    def __init__(
        self,
        client: Client,
        cache: Cache,
        *,
        metrics: RuntimeMetrics | None = None,
        events: EventWriter | None = None,
        election: Election | None = None,
        limits: Limits = LIMITS,
        leases: Sequence[HeldLease] = (),
        excluded: Container[str] = (),
    ) -> None:
        self.client = client
        self.cache = cache
        self._metrics = metrics or RuntimeMetrics()
        self.events = events or EventWriter(client, instance=identity(), metrics=self._metrics)
        self.activity = self.events.activity
        self._election = election
        self._limits = limits
        self._leases = (*leases, election) if election else leases
        self._excluded = excluded
        self._informers: dict[type[Resource], Informer[Any]] = {}
        self._controllers: list[Controller] = []
        self._servers: list[Server] = []
        self._leader_servers: list[Server] = []
        self._hooks: list[Callable[[], Awaitable[None]]] = []
        self._hooks_ran = False
        self._started_at = 0.0
        self._lag_seconds = 0.0
        self._stuck: set[tuple[str, str]] = set()
        """Kinds and keys of the stuck reconciles at the last liveness probe."""
        self._renewing: asyncio.Task[None] | None = None
        self._working: list[asyncio.Task[None]] = []
        self._leader_tasks: list[asyncio.Task[NoReturn]] = []

    @cached_property
    def writer(self) -> Writer:
        """The writer for reconcilers. It refuses to write once another process may lead."""
        return Writer(self.client, self.cache, leases=self._leases, excluded=self._excluded)

    def inform(self, informer: Informer[Any]) -> None:
        """Keep the type of an informer in the cache. Call it before `control`.

        Raises:
            ValueError: the type has an informer already.
        """
        self.cache.add(informer.store)
        self._informers[informer.type_] = informer
        store = informer.store
        self._metrics.observe_watch(
            informer.type_.KIND.name,
            broken=lambda: len(store.broken),
            held=lambda: len(store.shown),
            interruptions=lambda: informer.interruptions,
        )

    def control(self, reconciler: Reconciler, options: ControllerOptions | None = None) -> Controller:
        """Add a controller, which runs while this process leads."""
        controller = Controller(
            reconciler,
            self.cache,
            metrics=self._metrics,
            options=options,
            excluded=self._excluded,
            activity=self.activity,
        )
        self._controllers.append(controller)
        return controller

    def wake_namespace(self, namespace: str) -> None:
        """Queue all keys of a namespace that is no longer excluded."""
        for controller in self._controllers:
            controller.wake_namespace(namespace)

    def serve(self, server: Server, *, while_leading: bool = False) -> None:
        """Add a server, which runs on every replica, or only on the leader."""
        (self._leader_servers if while_leading else self._servers).append(server)

    def on_synced(self, hook: Callable[[], Awaitable[None]]) -> None:
        """Add a hook, which runs once the caches are synced, on every replica, before the election."""
        self._hooks.append(hook)

    def ready(self, *, is_converter: bool = False) -> Health:
        """The readiness probe: the caches are synced and the hooks have run. A standby is ready as well.

        An informer that waits for the conversion webhook does not count if `is_converter`: that webhook is in
        this process, and the API server calls only processes that are ready.
        """
        waiting = [informer for informer in self._informers.values() if not informer.synced.is_set()]
        problems = [
            str(informer.last_error or f"{informer.type_.KIND}: not listed yet")
            for informer in waiting
            if not (is_converter and _waits_for_conversion(informer))
        ]
        if not waiting and not self._hooks_ran:
            problems.append("starting")
        return Health(tuple(problems))

    def alive(self) -> Health:
        """The liveness probe: the event loop is on time, watches receive, reconciles end."""
        problems: list[str] = []
        if self._lag_seconds > self._limits.lag_seconds:
            problems.append(f"event loop {self._lag_seconds:.1f} s late")
        age = loop_time() - self._started_at
        problems += [
            f"{informer.type_.KIND}: watch is silent"
            for informer in self._informers.values()
            if min(informer.silent_seconds(), age) > self._limits.silence_seconds
        ]
        stuck = {
            (str(controller.kind), str(key)) for controller in self._controllers for key in controller.stuck()
        }
        for kind, name in sorted(stuck - self._stuck):
            _log.error("reconcile does not end", kind=kind, key=name)
        self._stuck = stuck
        # Every client may read this, so it names no objects; the log does.
        problems += [
            f"{kind}: {count} reconciles do not end"
            for kind, count in sorted(Counter(kind for kind, _ in stuck).items())
        ]
        return Health(tuple(problems))

    async def run(self, stop: asyncio.Event) -> None:
        """Run everything until `stop` is set, then stop in order.

        Raises:
            OperatorError: the first failure, such as `LeadershipLost`.
        """
        try:
            async with asyncio.TaskGroup() as group:
                await self._run(group, stop)
        except BaseExceptionGroup as failures:
            cause = first_cause(failures)
            _log_others(cause, failures)
            raise cause from None
        finally:  # every task has ended, so nothing writes any more
            self._metrics.leadership(is_leader=False)
            if self._election:
                await self._election.release()

    async def _run(self, group: asyncio.TaskGroup, stop: asyncio.Event) -> None:
        self._started_at = loop_time()
        background = self._start_background(group)
        starting = group.create_task(self._start(group), name="start")
        await stop.wait()
        _log.info("stopping")
        starting.cancel()
        await asyncio.wait([starting])
        await self._stop_work()
        if self._election and self._renewing:
            self._renewing.cancel()
            await asyncio.wait([self._renewing])
            await self._election.release()
        for task in background:
            task.cancel()

    def _start_background(self, group: asyncio.TaskGroup) -> list[asyncio.Task[NoReturn]]:
        informers = [
            _run_for_good(group, f"informer {informer.type_.__name__}", informer.run(self.client))
            for informer in self._informers.values()
        ]
        return [
            group.create_task(self._measure_lag(), name="loop lag"),
            _run_for_good(group, "events", self.events.run()),
            *informers,
            *_serve(group, self._servers),
        ]

    async def _start(self, group: asyncio.TaskGroup) -> None:
        for informer in self._informers.values():
            await informer.synced.wait()
        for hook in self._hooks:
            await hook()
        self._hooks_ran = True
        _log.info("ready", kinds=len(self._informers))
        if self._election:
            self._renewing = group.create_task(self._election.run(), name="election")
            await self._election.elected.wait()
        else:
            _log.info("reconciling without leader election")
        self._metrics.leadership(is_leader=True)
        for controller in self._controllers:
            controller.subscribe()
        self._leader_tasks = _serve(group, self._leader_servers)
        self._working = [
            group.create_task(controller.run(), name=f"controller {controller.kind}")
            for controller in self._controllers
        ]

    async def _stop_work(self) -> None:
        for controller in self._controllers:
            controller.close()
        for server in self._leader_tasks:
            server.cancel()
        if running := [*self._working, *self._leader_tasks]:
            _, late = await asyncio.wait(running, timeout=self._limits.reconciles_seconds)
            for task in late:
                _log.warning("reconciles cut off", task=task.get_name())
                task.cancel()
            if late:
                await asyncio.wait(late)
        try:
            async with asyncio.timeout(self._limits.flush_seconds):
                await self.events.flush()
        except TimeoutError:
            _log.warning("events not written before the stop", events=self.events.give_up())

    async def _measure_lag(self) -> NoReturn:
        loop = asyncio.get_running_loop()
        while True:
            due = loop.time() + _BEAT_SECONDS
            await asyncio.sleep(_BEAT_SECONDS)
            self._lag_seconds = max(0.0, loop.time() - due)
            self._metrics.lagged(self._lag_seconds)


def _waits_for_conversion(informer: Informer[Any]) -> bool:
    needed = (other for other in informer.after if not other.synced.is_set())
    return is_unconverted(informer.last_error) or any(_waits_for_conversion(other) for other in needed)


def _serve(group: asyncio.TaskGroup, servers: Iterable[Server]) -> list[asyncio.Task[NoReturn]]:
    return [_run_for_good(group, f"server {type(server).__name__}", server.run()) for server in servers]


def _run_for_good(
    group: asyncio.TaskGroup, name: str, run: Coroutine[Any, Any, None]
) -> asyncio.Task[NoReturn]:
    async def run_and_fail() -> NoReturn:
        await run
        raise RuntimeError(f"{name} ended unexpectedly")

    return group.create_task(run_and_fail(), name=name)


def first_cause(failures: BaseExceptionGroup[BaseException]) -> BaseException:
    """The first `OperatorError` of a group, else its first error."""
    errors = list(leaves(failures))
    return next((error for error in errors if isinstance(error, OperatorError)), errors[0])


def _log_others(cause: BaseException, failures: BaseExceptionGroup[BaseException]) -> None:
    logged = {str(cause)}
    for error in leaves(failures):
        if error is cause or (isinstance(error, OperatorError) and str(error) in logged):
            continue
        logged.add(str(error))
        if isinstance(error, OperatorError):
            _log.error("failed as well", error=str(error))
        else:
            _log.error("failed as well", exc_info=error)
