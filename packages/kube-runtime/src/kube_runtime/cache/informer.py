"""Keep the store of one type in sync with the API server.

Every failure is retried with a jittered backoff; none ends the informer or affects another one. `last_error`
holds the current error. A forbidden kind is retried at a slow, steady interval. A 404 is an outage like any
other: these kinds always exist (`OptionalInformer` is for the others).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Generic

import msgspec
import structlog
from msgspec.structs import replace

from kube_runtime.cache.store import Change, Store
from kube_runtime.cache.watch import Listed, Paging, Streaming, Watch, Watching
from kube_runtime.client.client import Client
from kube_runtime.errors import ApiError, Expired, Forbidden, NotFound, OperatorError, Throttled, Unreachable
from kube_runtime.times import Backoff, loop_time
from kube_runtime.types.kinds import CustomResourceDefinition
from kube_runtime.types.meta import Key, Kind, R, Resource, Selector, from_plain

OUTAGE = Backoff(first_seconds=0.5, limit_seconds=30)
REFUSED = Backoff(first_seconds=40, limit_seconds=40)
MOST_REFUSALS = 3
"""After so many, within two seconds, a watch of the CRDs counts as not permitted."""
TEXTS = 20
"""Number of different errors of one outage that are logged."""

MOST_OBJECT_BYTES = 2 * 1024 * 1024
"""Of an object that is decoded, by default: more than etcd stores of one, unless its JSON is much longer."""

STEPS_PER_TURN = 64
"""Steps after which the informer yields, even if there is more to read."""

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Watches:
    """Maps a change of an object of `type_` to the keys to reconcile, from its state before and after.

    With a `label`, an object without that label wakes none.
    """

    type_: type[Resource]
    map_to: Callable[[Any], Iterable[Key]]
    label: str = ""


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
        watch = Watch(
            client, self.type_, self.selector, most_bytes=self._most_bytes, decoded=self.store.shown_own_write
        )
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
        seconds = OUTAGE.seconds(self._failures)
        if isinstance(error, Forbidden):
            if self._tolerate_forbidden:
                self.synced.set()
            seconds = REFUSED.seconds(1)
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


class _Group(msgspec.Struct):
    name: str


class _Groups(msgspec.Struct):
    groups: tuple[_Group, ...]


# One watch of the CRDs, without their schemas, tracks which kinds exist.
class CrdInformer(Informer[CustomResourceDefinition]):
    """Tracks which custom kinds are installed.

    Without permission to watch CRDs, one request lists the API groups that are served; later changes go
    unnoticed.
    """

    def __init__(self) -> None:
        # without the copy of itself in the annotation of `kubectl apply`
        super().__init__(
            CustomResourceDefinition,
            transform=lambda crd: replace(crd, metadata=replace(crd.metadata, annotations={})),
        )
        self._forbidden = asyncio.Event()
        self._refusals = 0
        self._groups: frozenset[str] | None = None

    def has(self, kind: Kind) -> bool:
        """Whether the kind has a CRD that is not being deleted."""
        if self._groups is not None:
            return kind.group in self._groups
        crd = self.store.shown.get(Key("", str(kind)))
        return crd is not None and crd.metadata.deletion_timestamp is None

    async def run(self, client: Client) -> None:
        """Keep the CRDs up to date until cancelled."""
        await _run_until(self._forbidden, super().run(client))
        self._groups = await self._served_groups(client)
        _log.warning(
            "not permitted to watch customresourcedefinitions; "
            "optional APIs that are installed or removed later need a restart",
            served=sorted(self._groups),
        )
        self.synced.set()
        await asyncio.get_running_loop().create_future()

    async def _served_groups(self, client: Client) -> frozenset[str]:
        while True:
            try:
                served = from_plain(await client.get_json("apis"), _Groups)
            except msgspec.ValidationError as error:
                failure: OperatorError = Unreachable(f"/apis: unexpected answer: {error}")
            except OperatorError as error:
                failure = error
            else:
                return frozenset(group.name for group in served.groups)
            await asyncio.sleep(self._record_failure(failure))

    def silent_seconds(self) -> float:
        """Seconds since the last response; 0 if none is expected."""
        return super().silent_seconds() if self._groups is None else 0.0

    def _record_failure(self, error: OperatorError) -> float:
        seconds = super()._record_failure(error)
        if not isinstance(error, Forbidden) or self.synced.is_set():
            return seconds
        # An API server that has just started, or a role that has just been created, refuses for a moment.
        self._refusals += 1
        if self._refusals == MOST_REFUSALS:
            self._forbidden.set()
        return OUTAGE.seconds(self._refusals)


class OptionalInformer(Informer[R]):
    """The informer of a kind that may not be installed. Then it counts as synced and sends no request.

    A kind that is installed but may not be read counts as synced as well, and its store as forbidden:
    installing it must not break the operator. A slow retry notices a later permission.
    """

    def __init__(
        self,
        type_: type[R],
        crds: CrdInformer,
        *,
        namespace: str = "",
        labels: str = "",
        granted_by: str = "",
        transform: Callable[[R], R] | None = None,
    ) -> None:
        super().__init__(type_, namespace=namespace, labels=labels, transform=transform)
        self.store.granted_by = granted_by
        self._crds = crds
        self._changed = asyncio.Event()
        crds.store.subscribe(self._crd_changed)

    async def run(self, client: Client) -> None:
        """Keep the store up to date until cancelled, while the kind exists."""
        await self._crds.synced.wait()
        while True:
            self._changed.clear()
            if self._crds.has(self.type_.KIND):
                await _run_until(self._changed, super().run(client))
            else:
                self.last_error = None
                self._gone()
                await self._changed.wait()

    def silent_seconds(self) -> float:
        """Seconds since the last response; 0 if none is expected."""
        is_there = self._crds.has(self.type_.KIND)
        return super().silent_seconds() if is_there else 0.0

    def _crd_changed(self, change: Change[CustomResourceDefinition]) -> None:
        named = change.new or change.old
        is_ours = named is not None and named.metadata.name == str(self.type_.KIND)
        if is_ours and _identity_of(change.old) != _identity_of(change.new):
            self._changed.set()

    def _record_failure(self, error: OperatorError) -> float:
        # One 404 is not enough to drop the objects: of several API servers, one may learn of a new CRD later
        # than the others.
        if isinstance(error, NotFound) and isinstance(self.last_error, NotFound):
            self._gone()
        if isinstance(error, Forbidden):
            if not self.store.is_forbidden:
                _log.warning(
                    "kind is installed, but the operator may not read it",
                    kind=str(self.type_.KIND),
                    granted_by=self.store.granted_by,
                )
            self.store.mark_kind_forbidden()
            self.synced.set()
        return super()._record_failure(error)

    def _gone(self) -> None:
        self.store.mark_kind_gone()
        self.synced.set()


def _identity_of(crd: CustomResourceDefinition | None) -> tuple[str, bool]:
    """The uid of a CRD, and whether it stays: a change of either restarts the watch of its kind."""
    if crd is None:
        return "", False
    return crd.metadata.uid, crd.metadata.deletion_timestamp is None


async def _run_until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as group:
        working = group.create_task(work)
        await stop.wait()
        working.cancel()
