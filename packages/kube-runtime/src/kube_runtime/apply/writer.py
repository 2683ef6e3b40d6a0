"""Writes whose result the cache shows at once, so that the next reconcile does not act on an older state.

Writes to one object are serialized, also across the types of its kind: otherwise the answer that arrives last
might not be that of the last write. The store decides how long it shows an answer (`cache.store`).
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Container, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import NoReturn, Protocol
from weakref import WeakValueDictionary

import structlog

from kube_runtime.apply.managed_fields import with_manager
from kube_runtime.cache.store import FETCHED_SECONDS, Cache, InFlightWrite
from kube_runtime.client.client import Client, ensure_allowed
from kube_runtime.errors import Conflict, Forbidden, NotFound, OperatorError
from kube_runtime.leases import LeadershipLost, NamespaceExcluded
from kube_runtime.times import Backoff
from kube_runtime.types.meta import Key, Kind, Object, R, Resource, Selector, key_of, metadata_type


class HeldLease(Protocol):
    """A Lease that allows this process to write."""

    def holds_lease(self) -> bool:
        """Whether this process holds it now."""
        ...


@dataclass(slots=True, eq=False)
class Writer:
    """A client for writes; what it returns is already in the cache, if the type is watched.

    Raises, besides the errors of `Client`, after which the watch brings the result:
        LeadershipLost: this process does not hold one of the `leases`; nothing was sent, or not again.
        NamespaceExcluded: the namespace is among those `excluded`; the same.
    """

    client: Client
    cache: Cache
    leases: Sequence[HeldLease] = ()
    excluded: Container[str] = ()
    _turns: WeakValueDictionary[tuple[Kind, Key], asyncio.Lock] = field(
        default_factory=WeakValueDictionary[tuple[Kind, Key], asyncio.Lock], init=False
    )

    def may_write(self, namespace: str) -> bool:
        """Whether this process may act in a namespace now."""
        return namespace not in self.excluded and all(lease.holds_lease() for lease in self.leases)

    async def apply(self, type_: type[R], desired: Object, *, force: bool, uid: str | None = None) -> R:
        """Apply server-side; see `Client.apply`."""
        async with self._turn(type_, key_of(desired)) as flight:
            written = await self.client.apply(type_, desired, force=force, uid=uid)
            return self._show(flight, written)

    async def create(self, type_: type[R], desired: Object) -> R:
        """Create; see `Client.create`."""
        async with self._turn(type_, key_of(desired)) as flight:
            return self._show(flight, await self.client.create(type_, desired))

    async def merge_patch(
        self,
        type_: type[R],
        key: Key,
        patch: Object,
        *,
        subresource: str = "",
        uid: str | None = None,
        field_manager: str = "",
    ) -> R:
        """Merge-patch an object or its subresource; see `Client.merge_patch`."""
        async with self._turn(type_, key) as flight:
            written = await self.client.merge_patch(
                *(type_, key, patch), subresource=subresource, uid=uid, field_manager=field_manager
            )
            return self._show(flight, written)

    async def set_field(self, live: R, path: Sequence[str], value: object, *, field_manager: str = "") -> R:
        """Set one field; see `Client.set_field`."""
        async with self._turn(type(live), live.key) as flight:
            written = await self.client.set_field(live, path, value, field_manager=field_manager)
            return self._show(flight, written)

    async def ensure_newest(self, owner: Resource) -> None:
        """Check with the API server that this state of `owner` is its newest.

        Call it before a deletion, or a change of what was written for a newer generation: if the cache is
        behind, such objects look undesired or wrong, and no later reconcile can bring their pods back.

        Raises:
            Conflict: there is a newer state; the watch will bring it.
            NotFound: the owner is gone.
        """
        newest = await self.client.get(type(owner), owner.key)
        if newest.metadata.resource_version != owner.metadata.resource_version:
            message = "is newer on the API server than in the cache"
            raise Conflict(HTTPStatus.CONFLICT, "Conflict", message, owner.KIND, owner.key)

    async def delete(self, live: Resource) -> None:
        """Delete exactly this state of an object. The cache shows it as being deleted at once.

        Raises:
            Conflict: the object changed since it was read; the caller decides again.
        """
        type_, key, uid = type(live), live.key, live.metadata.uid
        async with self._turn(type_, key):
            # The store of another type of the kind may have seen writes that this one has not.
            version = live.metadata.resource_version
            await self.client.delete(type_, key, uid=uid, resource_version=version)
            if self.cache.holds(type_):
                self.cache.store(type_).deleted(key, uid)
                self.cache.end_elsewhere(type_, key)

    async def _read_again(self, type_: type[R], key: Key, flight: InFlightWrite[R]) -> None:
        """Show the newest state of an object that the watch never brings: its selector leaves it out."""
        store = self.cache.store(type_)
        try:
            store.fetched(flight, await self.client.get(type_, key))
        except (NotFound, Forbidden):
            if store.is_unwatched(key):
                store.end_overlay(key)

    async def read_existing(
        self,
        type_: type[R],
        key: Key,
        *,
        is_ours: Callable[[Resource], bool],
        seconds: float = FETCHED_SECONDS,
    ) -> R | None:
        """Read an object that a create ran into, and put it into the cache if it is ours.

        The watch does not bring an object without the label that it selects by, because a user removed it or
        an earlier operator created the object. The cache shows it for `seconds`, until our next write adds
        the label. None: it is gone, or may not be read.
        """
        async with self._turns.setdefault((type_.KIND, key), asyncio.Lock()):
            store = self.cache.store(type_)
            with store.writing(key) as flight:
                try:
                    existing = await self.client.get(type_, key)
                except (NotFound, Forbidden):
                    return None
                if is_ours(existing):
                    store.fetched(flight, existing, seconds)
                return existing

    @asynccontextmanager
    async def _turn(self, type_: type[R], key: Key) -> AsyncIterator[InFlightWrite[R]]:
        def ensure_ours() -> None:
            if not all(lease.holds_lease() for lease in self.leases):
                raise LeadershipLost(f"{type_.KIND} {key}: not written, another process may lead")
            if key.namespace in self.excluded:
                raise NamespaceExcluded(f"{type_.KIND} {key}: not written, another operator's namespace")

        async with self._turns.setdefault((type_.KIND, key), asyncio.Lock()):
            token = ensure_allowed.set(ensure_ours)
            try:
                if not self.cache.holds(type_):
                    yield InFlightWrite()
                    return
                store = self.cache.store(type_)
                with store.writing(key) as flight:
                    try:
                        yield flight
                    except Conflict:
                        if store.is_unwatched(key):
                            await self._read_again(type_, key, flight)
                        raise
            finally:
                ensure_allowed.reset(token)

    def _show(self, flight: InFlightWrite[R], written: R) -> R:
        if self.cache.holds(type(written)):
            self.cache.store(type(written)).wrote(flight, written)
            self.cache.end_elsewhere(type(written), written.key)
        return written


SHOWN_SECONDS = 300.0
"""How long such an object stays in the cache, unless a write adds the label: its owner's time to act."""

AGAIN_SECONDS = 60.0
"""Seconds between two lists of a kind of which an object of ours was found."""

_RETRY = Backoff(first_seconds=1, limit_seconds=60)

_log = structlog.get_logger(__name__)


# The watch of a kind that others use selects by a label that we write. An earlier operator may not
# have written the label, and a user may remove it while no process of ours leads. A reconcile finds
# such an object when it creates one of that name; objects that are no longer desired are found here
# only.
#
# Each process lists them when it begins to lead: page by page, and only metadata. While some of
# ours are left it lists again, for five minutes: a reconcile that met one first may have seen it
# for a moment only.
@dataclass(frozen=True, slots=True)
class UnselectedObjects:
    """Puts such objects into the cache. Run it as a server of the manager, while leading.

    `selectors` select, by type, the objects that the watch of the type leaves out (see `complement`).
    `is_ours` decides by the metadata which of them belong to this operator.
    """

    writer: Writer
    selectors: Mapping[type[Resource], Selector]
    is_ours: Callable[[Resource], bool]

    async def run(self) -> NoReturn:
        """List them until none of ours is left, for `SHOWN_SECONDS` at most; then wait to be cancelled."""
        left = [type_ for type_ in self.selectors if self.writer.cache.serves(type_)]
        for _ in range(round(SHOWN_SECONDS / AGAIN_SECONDS)):
            left = [type_ for type_ in left if await self._finds(type_, self.selectors[type_])]
            if not left:
                break
            await asyncio.sleep(AGAIN_SECONDS)
        await asyncio.Event().wait()
        raise AssertionError("the event is never set")

    async def _finds(self, type_: type[Resource], selector: Selector) -> bool:
        """List until the API server answers; return whether there is one of ours."""
        failures = 0
        while True:
            try:
                return await self._list(type_, selector)
            except (Forbidden, NotFound):
                return False  # not installed, or not ours to read: the watch reports it
            except OperatorError as error:
                failures += 1
                seconds = _RETRY.seconds(failures)
                _log.warning(
                    "objects without their label not listed",
                    kind=str(type_.KIND),
                    error=str(error),
                    retry_in_seconds=round(seconds, 1),
                )
                await asyncio.sleep(seconds)

    async def _list(self, type_: type[Resource], selector: Selector) -> bool:
        has_ours = False
        async for page in self.writer.client.pages(metadata_type(type_), **selector.query()):
            for live in page.items:
                if self.is_ours(live):
                    has_ours = True
                    _log.info("object lacks its label", kind=str(type_.KIND), name=str(live.key))
                    await self.writer.read_existing(
                        *(type_, live.key), is_ours=self.is_ours, seconds=SHOWN_SECONDS
                    )
        return has_ours


def complement(labels: str) -> str:
    """The label selector for the objects that a selector of one label leaves out.

    Raises:
        ValueError: the selector is neither `a` nor `a=b`.
    """
    [rule] = Selector(labels=labels).rules
    if rule.is_negated:
        raise ValueError(f"label selector {labels!r} is negated")
    return f"!{rule.name}" if rule.value is None else f"{rule.name}!={rule.value}"


# The name of a manager is that of some binary, so its entry is found by an annotation that the other operator
# wrote on each object.
@dataclass(frozen=True, slots=True)
class ManagedFieldsUpgrade:
    """Makes us the manager of what an earlier operator set; `mark` is an annotation that it wrote."""

    writer: Writer
    mark: str

    def is_due(self, live: Resource) -> bool:
        """Whether the earlier operator wrote an object, and we have not applied it since."""
        return self.mark in live.metadata.annotations

    async def __call__(self, live: R) -> R:
        """Become the manager of the fields of an object: one read and at most one patch.

        Raises:
            Conflict: it has changed since it was read; the caller retries at once.
            OperatorError: the API server is unreachable or failed.
        """
        try:
            stored = await self.writer.client.get_raw(live.KIND, live.key)
        except NotFound:
            return live  # the apply that follows fails
        metadata = stored["metadata"]
        entries = with_manager(
            metadata.get("managedFields", ()), mark=self.mark, manager=self.writer.client.field_manager
        )
        if entries is None:
            return live
        version = metadata["resourceVersion"]
        patch: Object = {"metadata": {"resourceVersion": version, "managedFields": entries}}
        uid = live.metadata.uid
        taken = await self.writer.merge_patch(type(live), live.key, patch, uid=uid)
        _log.info("taken over from an earlier operator", kind=str(live.KIND), object=str(live.key))
        return taken
