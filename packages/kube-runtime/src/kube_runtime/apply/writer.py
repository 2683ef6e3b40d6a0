"""Writes whose outcome the cache shows at once, so that the next reconcile does not act on the past.

Of two writes to one object, the answer that comes last need not be of the write that was last. So writes
to one object are serialized. Each store then decides how long an answer is shown.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import Generic
from weakref import WeakValueDictionary

from kube_runtime.cache.cache import Cache
from kube_runtime.cache.pending_writes import InFlightWrite
from kube_runtime.cache.store import FETCHED_SECONDS, Store
from kube_runtime.client.requests import Client
from kube_runtime.coordination.excluded_namespaces import NamespaceExcluded
from kube_runtime.coordination.leader_election import LeadershipLost
from kube_runtime.errors import Conflict, Forbidden, NotFound
from kube_runtime.kind import Key, Object, key_of
from kube_runtime.types.meta import R, Resource


@dataclass(frozen=True, slots=True)
class _Turn(Generic[R]):
    """The permission to write one object now. A store of None means: it has no watch."""

    store: Store[R] | None
    flight: InFlightWrite[R]

    def wrote(self, answer: R) -> R:
        """The answer, which readers see from now on."""
        if self.store is not None:
            self.store.wrote(self.flight, answer)
        return answer

    def deleted(self, key: Key, uid: str) -> None:
        """Have readers see that the object is on its way out."""
        if self.store is not None:
            self.store.deleted(key, uid)


class Writer:
    """A client for writes; what it returns is already in the cache, if the type is watched.

    `holds_lease` is asked before each request, and `is_excluded` with its namespace. None means: write
    always, and everywhere.

    Raises:
        LeadershipLost: `holds_lease` said no; nothing was sent.
        NamespaceExcluded: `is_excluded` said yes; nothing was sent.
        OperatorError: as `Client` does; nothing is shown then, the watch brings the result.
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
        self._turns: WeakValueDictionary[tuple[type[Resource], Key], asyncio.Lock] = (
            WeakValueDictionary()
        )

    async def apply(
        self, type_: type[R], desired: Object, *, force: bool, uid: str | None = None
    ) -> R:
        """Server-side apply; see `Client.apply`."""
        async with self._turn(type_, key_of(desired)) as turn:
            return turn.wrote(await self.client.apply(type_, desired, force=force, uid=uid))

    async def create(self, type_: type[R], desired: Object) -> R:
        """Create; see `Client.create`."""
        async with self._turn(type_, key_of(desired)) as turn:
            return turn.wrote(await self.client.create(type_, desired))

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
        async with self._turn(type_, key) as turn:
            answer = await self.client.merge_patch(
                *(type_, key, patch),
                subresource=subresource,
                uid=uid,
                field_manager=field_manager,
            )
            return turn.wrote(answer)

    async def ensure_newest(self, owner: Resource) -> None:
        """Ask the API server whether this state of `owner` is its newest.

        Before a deletion, and before a change of what was written for a newer owner. A cache that is behind
        on owners (an operator that just started, from old lists) may know objects that were made for a newer
        spec, would take them for unwanted or wrong, and the next reconcile cannot bring their pods back.

        Raises:
            Conflict: there is a newer one; the watch brings it.
            NotFound: there is none any more.
        """
        newest = await self.client.get(type(owner), owner.key)
        if newest.metadata.resource_version != owner.metadata.resource_version:
            message = "is newer on the API server than in the cache"
            raise Conflict(HTTPStatus.CONFLICT, "Conflict", message, owner.KIND, owner.key)

    async def delete(
        self, type_: type[Resource], key: Key, *, uid: str, resource_version: str | None = None
    ) -> None:
        """Delete; see `Client.delete`. The cache shows the object as being deleted."""
        async with self._turn(type_, key) as turn:
            await self.client.delete(type_, key, uid=uid, resource_version=resource_version)
            turn.deleted(key, uid)

    async def read_existing(
        self,
        type_: type[R],
        key: Key,
        *,
        is_ours: Callable[[Resource], bool],
        seconds: float = FETCHED_SECONDS,
    ) -> R | None:
        """The object that a create ran into. One of ours is in the cache from now on.

        The watch does not bring an object that its selector does not match: one whose label a user removed,
        or one of an earlier operator. Readers see it for `seconds`, in which our next write adds the label.
        None means: it is gone again, or may not be read.
        """
        async with self._turns.setdefault((type_, key), asyncio.Lock()):
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
    async def _turn(self, type_: type[R], key: Key) -> AsyncIterator[_Turn[R]]:
        async with self._turns.setdefault((type_, key), asyncio.Lock()):
            if self._holds_lease is not None and not self._holds_lease():
                raise LeadershipLost(f"{type_.KIND} {key}: not written, another process may lead")
            if self._is_excluded is not None and self._is_excluded(key.namespace):
                raise NamespaceExcluded(f"{type_.KIND} {key}: not written, another operator's now")
            if not self.cache.holds(type_):
                yield _Turn(None, InFlightWrite())
                return
            store = self.cache.store(type_)
            with store.writing(key) as flight:
                yield _Turn(store, flight)
