"""Writes whose result the cache shows at once, so that the next reconcile does not act on an older state.

Writes to one object are serialized, also across the types of its kind: otherwise the answer that arrives last
might not be that of the last write. The store decides how long it shows an answer (`pending_writes`).
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from http import HTTPStatus
from weakref import WeakValueDictionary

from kube_runtime.cache.cache import Cache
from kube_runtime.cache.pending_writes import InFlightWrite
from kube_runtime.cache.store import FETCHED_SECONDS
from kube_runtime.client.requests import Client
from kube_runtime.coordination.excluded_namespaces import NamespaceExcluded
from kube_runtime.coordination.leader_election import LeadershipLost
from kube_runtime.errors import Conflict, Forbidden, NotFound
from kube_runtime.kind import Key, Kind, Object, key_of
from kube_runtime.types.meta import R, Resource


class Writer:
    """A client for writes; what it returns is already in the cache, if the type is watched.

    It calls `holds_lease` before each request, and `is_excluded` with the namespace.

    Raises:
        LeadershipLost: `holds_lease` returned false; nothing was sent.
        NamespaceExcluded: `is_excluded` returned true; nothing was sent.
        OperatorError: as from `Client`; the cache then changes when the watch brings the result.
    """

    def __init__(
        self,
        client: Client,
        cache: Cache,
        *,
        holds_lease: Callable[[], bool] | None = None,
        is_excluded: Callable[[str], bool] | None = None,
    ) -> None:
        self.client = client
        self._holds_lease = holds_lease
        self._is_excluded = is_excluded
        self.cache = cache
        self._turns: WeakValueDictionary[tuple[Kind, Key], asyncio.Lock] = WeakValueDictionary()

    async def apply(
        self, type_: type[R], desired: Object, *, force: bool, uid: str | None = None
    ) -> R:
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
                *(type_, key, patch),
                subresource=subresource,
                uid=uid,
                field_manager=field_manager,
            )
            return self._show(flight, written)

    async def ensure_newest(self, owner: Resource) -> None:
        """Check with the API server that this state of `owner` is its newest.

        To be called before a deletion, and before a change of an object that was written for a newer
        generation. If the cache is behind on owners, as after a start from an old list, such objects look
        undesired or wrong, and no later reconcile can bring their pods back.

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

        The version matters, not only the uid: two types may have one kind, and the store of one has not seen
        what was written through the other.

        Raises:
            Conflict: the object changed since it was read; the caller decides again.
        """
        type_, key, uid = type(live), live.key, live.metadata.uid
        async with self._turn(type_, key) as flight:
            version = live.metadata.resource_version
            try:
                await self.client.delete(type_, key, uid=uid, resource_version=version)
            except Conflict:
                await self._read_again(type_, key, flight)
                raise
            if self.cache.holds(type_):
                self.cache.store(type_).deleted(key, uid)
                self._end_elsewhere(type_, key)

    async def _read_again(
        self, type_: type[Resource], key: Key, flight: InFlightWrite[Resource]
    ) -> None:
        """Show the newest state, which the watch never brings if its selector leaves the object out."""
        if not self.cache.holds(type_):
            return
        store = self.cache.store(type_)
        try:
            store.fetched(flight, await self.client.get(type_, key))
        except (NotFound, Forbidden):
            store.end_unwatched(key)

    async def read_existing(
        self,
        type_: type[R],
        key: Key,
        *,
        is_ours: Callable[[Resource], bool],
        seconds: float = FETCHED_SECONDS,
    ) -> R | None:
        """Read an object that a create ran into, and put it into the cache if it is ours.

        The watch does not bring an object without the label that it selects by: a user removed the label, or
        an earlier operator created the object. The cache shows it for `seconds`, until our next write adds
        the label. None means: it is gone, or may not be read.
        """
        async with self._lock(type_, key):
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
        """Wait for other writes of the object, and record what the watch brings during this one."""
        async with self._lock(type_, key):
            if self._holds_lease is not None and not self._holds_lease():
                raise LeadershipLost(f"{type_.KIND} {key}: not written, another process may lead")
            if self._is_excluded is not None and self._is_excluded(key.namespace):
                raise NamespaceExcluded(
                    f"{type_.KIND} {key}: not written, another operator's namespace"
                )
            if not self.cache.holds(type_):
                yield InFlightWrite()
                return
            with self.cache.store(type_).writing(key) as flight:
                yield flight

    def _lock(self, type_: type[Resource], key: Key) -> asyncio.Lock:
        return self._turns.setdefault((type_.KIND, key), asyncio.Lock())

    def _show(self, flight: InFlightWrite[R], written: R) -> R:
        if self.cache.holds(type(written)):
            self.cache.store(type(written)).wrote(flight, written)
            self._end_elsewhere(type(written), written.key)
        return written

    def _end_elsewhere(self, type_: type[Resource], key: Key) -> None:
        """Have the stores of the kind's other types show no state that this write has made old."""
        for store in self.cache.others_of_kind(type_):
            store.end_unwatched(key)
