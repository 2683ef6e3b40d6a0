"""Keep the store of one type in sync with the API server.

Every failure is retried with a jittered backoff; none ends the informer or affects another one. `last_error`
holds the current error. A forbidden kind is retried at a slow, steady interval. A 404 is an outage like any
other: these kinds always exist (`crd_informer` has the others).
"""

import asyncio
import logging
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import structlog

from kube_runtime.cache.store import Store
from kube_runtime.client.requests import Client
from kube_runtime.clock import loop_time
from kube_runtime.errors import ApiError, Expired, Forbidden, OperatorError, Throttled
from kube_runtime.kind import Key
from kube_runtime.rate_limits import Backoff
from kube_runtime.types.meta import R, Resource
from kube_runtime.watch.machine import Listed, Paging, Streaming, Watch, Watching
from kube_runtime.watch.selector import Selector

OUTAGE = Backoff(first_seconds=0.5, limit_seconds=30)
REFUSED_SECONDS = 30.0
TEXTS = 20
"""Number of different errors of one outage that are logged."""

MOST_OBJECT_BYTES = 2 * 1024 * 1024
"""Of an object that is decoded, by default: more than etcd stores of one, unless its JSON is much longer."""

STEPS_PER_TURN = 64
"""Steps after which the informer yields, even if there is more to read."""

_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Watches:
    """Maps a change of an object of `type_` to the keys to reconcile, from its state before and after."""

    type_: type[Resource]
    map_to: Callable[[Any], Iterable[Key]]


class Informer(Generic[R]):
    """Lists and watches one type, into its store.

    `transform` reduces an object before it is stored. An object of more than `most_bytes` is not decoded; it
    is `broken`. With `tolerate_forbidden` the informer counts as synced, and empty, while listing is
    forbidden.
    """

    def __init__(
        self,
        type_: type[R],
        *,
        namespace: str = "",
        labels: str = "",
        fields: str = "",
        transform: Callable[[R], R] | None = None,
        most_bytes: int = MOST_OBJECT_BYTES,
        tolerate_forbidden: bool = False,
    ) -> None:
        self.after: Sequence[Informer[Any]] = ()
        """Informers to wait for: on their objects the transform depends."""
        self._most_bytes = most_bytes
        self._tolerate_forbidden = tolerate_forbidden
        self.type_ = type_
        self.selector = Selector(namespace, labels, fields)
        self.store = Store(type_, self.selector, transform)
        self.synced = asyncio.Event()
        """Set once the first list is complete."""
        self.last_heard: float | None = None
        """Time of the last response, errors included, on the event loop's clock."""
        self.last_error: OperatorError | None = None
        """The last error; None after a success."""
        self.interruptions = 0
        """Number of errors after which the watch was restarted."""
        self._failures = 0
        self._logged: set[str] = set()
        """Messages since the last success: streamed and paged lists fail with different ones."""

    async def run(self, client: Client) -> None:
        """Keep the store up to date until cancelled; may be run again afterwards."""
        for informer in self.after:
            await informer.synced.wait()
        watch = Watch(client, self.type_, self.selector, most_bytes=self._most_bytes)
        steps = 0
        try:
            while True:
                try:
                    await self._step(watch)
                except OperatorError as error:
                    await asyncio.sleep(self._record_failure(error))
                steps += 1
                if steps % STEPS_PER_TURN == 0:
                    await asyncio.sleep(0)
        finally:
            await watch.aclose()

    def silent_seconds(self) -> float:
        """Seconds since the last response; infinite before the first."""
        if self.last_heard is None:
            return float("inf")
        return loop_time() - self.last_heard

    async def _step(self, watch: Watch[R]) -> None:
        before = watch.state
        for event in await watch.step():
            self.store.on_watch_event(event)
        if isinstance(before, Paging | Streaming | Watching):
            self.last_heard = loop_time()
        if isinstance(before, Watching):
            self.last_error, self._failures = None, 0
            self._logged.clear()
        elif isinstance(before, Paging | Streaming) and isinstance(watch.state, Listed | Watching):
            # A list alone does not reset the backoff: its stream may fail again.
            self.last_error = None
            self.synced.set()

    def _record_failure(self, error: OperatorError) -> float:
        """Record a failure, and return the delay in seconds."""
        is_new = str(error) not in self._logged
        self._logged = {*self._logged, str(error)} if len(self._logged) < TEXTS else {str(error)}
        self.last_error = error
        self.interruptions += 1
        self._failures += 1
        if isinstance(error, ApiError):
            self.last_heard = loop_time()
        jitter = random.random()  # noqa: S311  # spreads load, guards nothing
        seconds = OUTAGE.seconds(self._failures, jitter)
        if isinstance(error, Forbidden):
            if self._tolerate_forbidden:
                self.synced.set()
            seconds = REFUSED_SECONDS * (0.75 + 0.5 * jitter)
        elif isinstance(error, Throttled):
            seconds = max(seconds, error.retry_after_seconds or 0.0)
        level = logging.INFO if isinstance(error, Expired) else logging.WARNING
        _log.log(
            level if is_new else logging.DEBUG,
            "watch interrupted",
            kind=str(self.type_.KIND),
            error=str(error),
            retry_in_seconds=round(seconds, 2),
        )
        return seconds
