"""The objects of one kind: the state of the watch, and newer writes of our own in front of it.

The store changes before it notifies, so a handler reads the state that it is notified of, or a newer one.
Our own writes are shown at once, until the watch has brought them. Watch events meanwhile
are recorded but not shown yet, so at rest the store equals the state of the watch.
"""

import asyncio
import builtins
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import chain
from typing import Any, Generic, TypeAlias, TypeVar, cast

import msgspec
import structlog
from msgspec import structs
from msgspec.structs import replace

from kube_runtime.cache.watch import Broken, Changed, Event, Present, Removed, Started, Synced
from kube_runtime.errors import DecodeError, TooLarge
from kube_runtime.times import rfc3339
from kube_runtime.types.meta import EVERYTHING, Key, Kind, R, Resource, Selector, equal_but_for_version
from kube_runtime.wire import VALUE_BYTES, bytes_in_memory, identity


# The result of a write comes as its response, and on the watch, before or after that. Resource
# versions are compared for equality only, so which of two states is newer must follow from other
# facts. Three suffice: the watch brings the versions of one object in order; a complete list is
# newer than everything known when it began; a uid that is gone never returns.
class Relist(msgspec.Struct, Generic[R], frozen=True):
    """A complete list: the states of an object before and in it, and uids removed while it was sent."""

    before: R | None
    listed: R | None
    gone: Collection[str] = ()

    def is_newer(self, written: Resource, older: set[str]) -> bool:
        """Whether the list is newer than `written`, with which it raced.

        Where the facts leave it open, the answer is the one whose error is corrected sooner: yes for another
        state of the same object (the watch follows at once), no without the object (the overlay expires).
        """
        uid = written.metadata.uid
        if uid in self.gone:
            return True
        if self.listed is None or self.listed.metadata.uid != uid:
            return self.before is not None and self.before.metadata.uid == uid
        return self.listed.metadata.resource_version not in older


@dataclass(slots=True)
class InFlightWrite(Generic[R]):
    """A write without a response yet, and what the watch brought for its key meanwhile.

    `known_versions` are those before the write, and those that the watch has brought since: all older than
    the result, unless it is among them. `relists` are the lists that ended meanwhile.
    """

    known_versions: set[str] = field(default_factory=set[str])
    relists: list[Relist[R]] = field(default_factory=list[Relist[R]])


@dataclass(slots=True)
class Overlay(Generic[R]):
    """A state from our own write that is shown until the watch brings it.

    `watched` is the state of the watch, if it has the object. `older` are earlier versions, which a list may
    still bring. `is_selected`: the watch brings the shown state itself; otherwise only later ones.
    """

    shown: R
    watched: R | None
    older: set[str]
    timer: asyncio.TimerHandle
    is_deletion: bool = False
    is_selected: bool = True
    is_older_than_list: bool = False  # the running list began after the response

    def ends_with(self, event_state: Resource) -> bool:
        """Whether the watch has brought the shown state, or one after it."""
        if self.is_deletion:
            same = event_state.metadata.uid == self.shown.metadata.uid
            return same and event_state.metadata.deletion_timestamp is not None
        if not self.is_selected:
            return event_state.metadata.resource_version not in self.older
        return event_state.metadata.resource_version == self.shown.metadata.resource_version

    def ends_with_list(self, listed: R | None, gone: Collection[str] = ()) -> bool:
        """Whether a complete list with this state (None: without the object) is newer than our write."""
        if self.is_older_than_list or (listed is not None and self.ends_with(listed)):
            return True
        return Relist(self.watched, listed, gone).is_newer(self.shown, self.older)


class Index(Generic[R]):
    """Lookups, consistent with each other."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, R]] = {}
        self._owned: dict[str, dict[Key, R]] = {}

    def __len__(self) -> int:
        """Number of objects."""
        return sum(map(len, self._namespaces.values()))

    def get(self, key: Key) -> R | None:
        """The object with that key, if there is one."""
        return self._namespaces.get(key.namespace, {}).get(key.name)

    def has_any(self, namespace: str) -> bool:
        """Whether a namespace has objects."""
        return namespace in self._namespaces

    def list(self, namespace: str = "") -> Iterator[R]:
        """The objects of a namespace; by default of all. They do not change with the index."""
        if namespace:
            return iter(tuple(self._namespaces.get(namespace, {}).values()))
        return iter(tuple(chain.from_iterable(map(dict.values, self._namespaces.values()))))

    def owned_by(self, uid: str) -> Iterable[R]:
        """The objects with an owner reference to this uid, as long as the index does not change."""
        owned = self._owned.get(uid)
        return owned.values() if owned else ()

    def put(self, key: Key, new: R | None) -> None:
        """Replace the object with that key by `new`; None removes it."""
        old = self.get(key)
        if old is not None:
            for owner in old.metadata.owner_references:
                _drop(self._owned, owner.uid, key)
        if new is None:
            _drop(self._namespaces, key.namespace, key.name)
            return
        self._namespaces.setdefault(key.namespace, {})[key.name] = new
        for owner in new.metadata.owner_references:
            self._owned.setdefault(owner.uid, {})[key] = new


def _drop(nested: dict[str, dict[Any, R]], outer: str, inner: object) -> None:
    members = nested.get(outer, {})
    members.pop(inner, None)
    if not members:
        nested.pop(outer, None)


_log = structlog.get_logger(__name__)

OWN_WRITE_SECONDS = 30.0
"""How long our own write is shown if the watch does not bring it."""

FETCHED_SECONDS = 30.0
"""How long an object that was read by name is shown if the watch does not bring it."""


class Change(msgspec.Struct, Generic[R], frozen=True):
    """A change of the store as its readers see it. `initial`: the object is from the first list.

    None: there was, or is, no such object. Different uids: the object was deleted and recreated.
    """

    old: R | None
    new: R | None
    initial: bool = False


Handler: TypeAlias = Callable[[Change[R]], None]


@dataclass(slots=True)
class _Listing(Generic[R]):
    """A list that is not complete, so not shown yet. `gone` are uids removed while it is sent."""

    objects: dict[Key, R] = field(default_factory=dict[Key, R])
    broken: dict[Key, DecodeError] = field(default_factory=dict[Key, DecodeError])
    gone: set[str] = field(default_factory=set[str])

    def take(self, resource: R) -> None:
        """Add the newest state of an object."""
        self.objects[resource.key] = resource
        self.broken.pop(resource.key, None)
        self.gone.discard(resource.metadata.uid)

    def remove(self, key: Key, uid: str) -> None:
        """Remove an object."""
        self.objects.pop(key, None)
        self.broken.pop(key, None)
        self.gone.add(uid)


class Store(Generic[R]):
    """The objects of one kind, and the subscribers of their changes.

    `broken` has the objects that do not fit their type; `shown` has their last good state, if there was one.
    """

    def __init__(
        self, type_: type[R], selector: Selector = EVERYTHING, transform: Callable[[R], R] | None = None
    ) -> None:
        self.type_ = type_
        self.shown: Index[R] = Index()
        self.broken: dict[Key, DecodeError] = {}
        self.granted_by = ""
        """How to grant the permission to read the kind, for messages."""
        self.revision = 0
        """Number of changes so far."""
        self.is_served = False
        """Whether the API server serves the kind: from the first complete list until the kind is gone."""
        self.is_forbidden = False
        """Whether the kind is installed but may not be read; objects that were read before stay."""
        self._selector = selector
        self._transform = transform
        self._handlers: list[Handler[R]] = []
        self._served_handlers: list[Callable[[], None]] = []
        self._broken_handlers: list[Callable[[Key], None]] = []
        self._listing: _Listing[R] | None = None
        self._has_synced = False
        self._overlays: dict[Key, Overlay[R]] = {}
        self._flights: dict[Key, InFlightWrite[R]] = {}

    def subscribe(self, handler: Handler[R]) -> None:
        """Call `handler` once for each present object, and for each change from now on."""
        self._handlers.append(handler)
        for resource in self.shown.list():
            handler(Change(None, resource, initial=True))

    def subscribe_served(self, handler: Callable[[], None]) -> None:
        """Call `handler` when the kind becomes served or not, or, while it is not, forbidden or not."""
        self._served_handlers.append(handler)

    def subscribe_broken(self, handler: Callable[[Key], None]) -> None:
        """Call `handler` when the newest state of an object cannot be decoded, and when it can be again."""
        self._broken_handlers.append(handler)
        for key in self.broken:
            handler(key)

    def _set_served(self, *, is_served: bool, is_forbidden: bool = False) -> None:
        before = self.is_served, self.is_forbidden and not self.is_served
        self.is_served, self.is_forbidden = is_served, is_forbidden
        if before != (is_served, is_forbidden and not is_served):
            for handler in self._served_handlers:
                handler()

    def on_watch_event(self, event: Event[R]) -> None:
        """Apply one watch event, then notify the subscribers."""
        match self._reduced_event(event):
            case Started():
                self._listing = _Listing()
                for overlay in self._overlays.values():
                    overlay.is_older_than_list = True
            case Present(resource) if self._listing is not None:
                self._listing.take(resource)
            case Removed(key, uid) if self._listing is not None:
                self._listing.remove(key, uid)
            case Synced() if self._listing is not None:
                self._swap(self._listing)
                self._set_served(is_served=True)
            case Changed(resource) | Present(resource):
                self._notify_readable(resource.key, self._changed(resource.key, resource))
            case Removed(key, uid):
                self._notify_readable(key, self._removed(key, uid))
            case Broken(error):
                self._on_broken(error)
            case _:
                pass

    def _notify_readable(self, key: Key, change: Change[R] | None) -> None:
        """Notify of a state that could be decoded; the one before may have been broken."""
        was_broken = self.broken.pop(key, None) is not None
        self._notify(change)
        if was_broken:
            self._notify_broken(key)

    def mark_kind_gone(self) -> None:
        """Remove all objects: the API server no longer serves their kind."""
        self._swap(_Listing())
        self._set_served(is_served=False)

    def mark_kind_forbidden(self) -> None:
        """Record that the kind is installed but may not be read."""
        self._set_served(is_served=self.is_served, is_forbidden=True)

    def _on_broken(self, error: DecodeError) -> None:
        _log.warning("object does not fit its type", error=str(error))
        if error.key is None:
            return  # even its name cannot be read
        # The traceback would keep the frames that decoded the object, and so all of its text.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        if self._listing is not None:
            self._listing.broken[error.key] = error
            return
        self.broken[error.key] = error
        self._notify_broken(error.key)

    def _swap(self, listing: _Listing[R]) -> None:
        self._listing = None
        shown = {resource.key for resource in self.shown.list()}
        unlisted = shown | self._overlays.keys() | self._flights.keys()
        states: dict[Key, R | None] = dict.fromkeys(unlisted - listing.objects.keys())
        states.update(listing.objects)
        # An object that was decoded first and broken later has its good state in the list.
        unread = listing.broken.keys() - listing.objects.keys()
        changes = [
            self._listed(key, state, listing.gone) for key, state in states.items() if key not in unread
        ]
        before, self.broken = self.broken, listing.broken
        is_first, self._has_synced = not self._has_synced, True
        if is_first:
            changes = [change and Change(change.old, change.new, initial=True) for change in changes]
        self._notify(*changes)
        self._notify_broken(*before.keys(), *(listing.broken.keys() - before.keys()))

    def _listed(self, key: Key, listed: R | None, gone: Collection[str]) -> Change[R] | None:
        overlay = self._overlays.get(key)
        if flight := self._flights.get(key):
            flight.relists.append(Relist(self._watched(key), listed, gone))
        if overlay is not None and not overlay.ends_with_list(listed, gone):
            overlay.watched = listed
            return None
        return self._show(key, listed)

    def _changed(self, key: Key, heard: R) -> Change[R] | None:
        if flight := self._flights.get(key):
            flight.known_versions.add(heard.metadata.resource_version)
        overlay = self._overlays.get(key)
        if overlay is not None and not overlay.ends_with(heard):
            overlay.watched = heard
            return None
        return self._show(key, heard)

    def _removed(self, key: Key, uid: str) -> Change[R] | None:
        overlay = self._overlays.get(key)
        if overlay is not None and overlay.shown.metadata.uid != uid:
            overlay.watched = None
            return None
        return self._show(key, None)

    def _watched(self, key: Key) -> R | None:
        overlay = self._overlays.get(key)
        return self.shown.get(key) if overlay is None else overlay.watched

    def _reduced_event(self, event: Event[R]) -> Event[R]:
        if not isinstance(event, Present | Changed):
            return event
        resource, have = event.resource, self._watched(event.resource.key)
        try:
            if resource is self.shown.get(resource.key):
                kept = resource
            elif have is not None and have.metadata.resource_version == resource.metadata.resource_version:
                kept = have
            else:
                kept = self._transform(resource) if self._transform else resource
        except TooLarge as error:
            return Broken(error)
        except Exception as error:  # noqa: BLE001  # a failure for one object must not affect the others
            # Without the message of the error, which may quote a Secret.
            message = f"transform failed: {type(error).__name__}"
            return Broken(DecodeError(self.type_.KIND, resource.key, message))
        if kept is resource:
            return event
        return Present(kept) if isinstance(event, Present) else Changed(kept)

    @contextmanager
    def writing(self, key: Key) -> Iterator[InFlightWrite[R]]:
        """Record the watch events of a key during a write; one write per key at a time."""
        flight = self._flights[key] = InFlightWrite(self._known_versions(key))
        try:
            yield flight
        finally:
            del self._flights[key]

    def wrote(self, flight: InFlightWrite[R], written: R) -> None:
        """Show the result of our write, unless the watch brought it first."""
        is_watched = self._watched(written.key) is not None
        if self._selector.covers(written, is_watched=is_watched):
            self.fetched(flight, written, OWN_WRITE_SECONDS)

    # Most changes are our own writes: their responses were decoded a moment ago.
    def shown_own_write(self, raw: msgspec.Raw) -> R | None:
        """The state that our write has shown of an object, if that is what the watch brings."""
        if not self._overlays:
            return None
        heard = identity(raw)
        overlay = self._overlays.get(Key(heard.namespace, heard.name))
        # What is shown of a deletion is not what the version has. What has no content may get it now.
        if overlay is None or overlay.is_deletion or _is_bare(overlay.shown):
            return None
        return overlay.shown if overlay.shown.metadata.resource_version == heard.resource_version else None

    def fetched(self, flight: InFlightWrite[R], read: R, seconds: float = FETCHED_SECONDS) -> None:
        """Show a response of the API server, unless the watch brought it first.

        The watch never brings an object that its selector does not match. So the object is shown for
        `seconds`, or until a write of ours has another result. Then it is gone, which requeues its owner.
        """
        watched, known = self._watched(read.key), flight.known_versions
        is_same = watched and watched.metadata.resource_version == read.metadata.resource_version
        is_overtaken = any(relist.is_newer(read, known) for relist in flight.relists)
        if not is_same and (read.metadata.resource_version in known or is_overtaken):
            return  # without the transform, which may count what is kept
        try:
            kept = self._transform(read) if self._transform else read
        except TooLarge:
            return  # the watch brings it, and reports it
        if not is_same:
            self._show_overlay(read.key, kept, known, seconds)
        # The transform may have dropped the content because the owner was not known yet.
        elif watched and _is_bare(watched) and not _is_bare(kept):
            self._notify(self._show(read.key, kept))

    def deleted(self, key: Key, uid: str) -> None:
        """Show the object as being deleted, until the watch reports that or its removal."""
        shown = self.shown.get(key)
        if shown is None or shown.metadata.uid != uid:
            return
        if shown.metadata.deletion_timestamp is None:
            metadata = replace(shown.metadata, deletion_timestamp=rfc3339())
            going, older = replace(shown, metadata=metadata), self._known_versions(key)
            self._show_overlay(key, going, older, OWN_WRITE_SECONDS, is_deletion=True)

    def is_unwatched(self, key: Key) -> bool:
        """Whether an object is shown that the watch has not brought."""
        return key in self._overlays and self._overlays[key].watched is None

    def _show_overlay(
        self, key: Key, shown: R, older: set[str], seconds: float, *, is_deletion: bool = False
    ) -> None:
        watched = self._watched(key)
        change = self._show(key, shown)
        timer = asyncio.get_running_loop().call_later(seconds, self.end_overlay, key)
        is_selected = self._selector.covers(shown, is_watched=watched is not None)
        self._overlays[key] = Overlay(shown, watched, older, timer, is_deletion, is_selected)
        self._notify(change)

    def _known_versions(self, key: Key) -> set[str]:
        """The known versions of an object that a list may still bring."""
        overlay = self._overlays.get(key)
        states = (self.shown.get(key), self._watched(key))
        versions = {state.metadata.resource_version for state in states if state is not None}
        return versions | overlay.older if overlay else versions

    def end_overlay(self, key: Key) -> None:
        """Show the state of the watch again, instead of one that a response brought."""
        self._notify(self._show(key, self._overlays[key].watched))

    def _show(self, key: Key, new: R | None) -> Change[R] | None:
        overlay = self._overlays.pop(key, None)
        if overlay is not None:
            overlay.timer.cancel()
        old = self.shown.get(key)
        if new is old:
            return None
        self.shown.put(key, new)
        if old is not None and new is not None and equal_but_for_version(old, new):
            return None
        self.revision += 1
        return Change(old, new)

    def _notify(self, *changes: Change[R] | None) -> None:
        for change in changes:
            if change is not None:
                for handler in self._handlers:
                    handler(change)

    def _notify_broken(self, *keys: Key) -> None:
        for key in keys:
            for handler in self._broken_handlers:
                handler(key)


def _is_bare(state: Resource) -> bool:
    return state == type(state)(metadata=state.metadata)


T = TypeVar("T")


class Cache:
    """The watched objects by type. They are frozen and shared by all readers.

    Raises:
        LookupError: the type is not watched; from every method but `serves`, `forbids` and `holds`.
    """

    def __init__(self, stores: Iterable[Store[Any]] = ()) -> None:
        self._stores: dict[type[Resource], Store[Any]] = {}
        self._types: dict[Kind, list[type[Resource]]] = {}
        self._derived: dict[tuple[type[Resource], ...], tuple[tuple[int, ...], dict[Hashable, Any]]] = {}
        """By types, their revisions and the values that were derived from these, by name."""
        for store in stores:
            self.add(store)

    def add(self, store: Store[Any]) -> None:
        """Add the store of one more type.

        Raises:
            ValueError: the type has a store already; two watches of one type would contradict each other.
        """
        if store.type_ in self._stores:
            raise ValueError(f"{store.type_.__name__} is watched twice")
        self._stores[store.type_] = store
        self._types.setdefault(store.type_.KIND, []).append(store.type_)

    @property
    def types(self) -> Collection[type[Resource]]:
        """The types that are watched."""
        return self._stores.keys()

    def holds(self, type_: type[Resource]) -> bool:
        """Whether the type is watched."""
        return type_ in self._stores

    def store(self, type_: type[R]) -> Store[R]:
        """The store of a type."""
        store = self._stores.get(type_)
        # A type without an informer raises; it must never look like a type without objects, or a controller
        # would create objects that exist.
        if store is None:
            raise LookupError(f"{type_.__name__} is not watched")
        return cast("Store[R]", store)

    def end_elsewhere(self, type_: type[Resource], key: Key) -> None:
        """Have the stores of the kind's other types show no state that a write through `type_` made old."""
        for other in self._types[type_.KIND]:
            if other is not type_ and self._stores[other].is_unwatched(key):
                self._stores[other].end_overlay(key)

    def get(self, type_: type[R], key: Key) -> R | None:
        """The object with that key, if there is one."""
        return self.store(type_).shown.get(key)

    def has_any(self, type_: type[Resource], namespace: str) -> bool:
        """Whether a namespace has objects of a type."""
        return self.store(type_).shown.has_any(namespace)

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:
        """The objects of a namespace; by default of all."""
        return self.store(type_).shown.list(namespace)

    def owned_by(
        self, uid: str, types: Iterable[type[Resource]], namespace: str = ""
    ) -> builtins.list[Resource]:
        """The objects of these types with an owner reference to this uid, as controller or not.

        A namespace excludes objects of others: Kubernetes knows no owners across namespaces, but any user
        may write the uid of an owner into an object in a namespace of their own.
        """
        return [
            resource
            for type_ in types
            for resource in self.store(type_).shown.owned_by(uid)
            if not namespace or resource.metadata.namespace == namespace
        ]

    def referrers(
        self, type_: type[R], names: Callable[[R], Collection[str]]
    ) -> Callable[[Resource], Iterator[Key]]:
        """A function that finds the objects of a type that name a given object of their namespace."""

        def keys(named: Resource) -> Iterator[Key]:
            for candidate in self.list(type_, named.metadata.namespace):
                if named.metadata.name in names(candidate):
                    yield candidate.key

        return keys

    def derived(self, name: Hashable, types: tuple[type[Resource], ...], compute: Callable[[], T]) -> T:
        """The value of `compute`, recomputed only when an object of these types has changed.

        For values that every reconcile reads and few changes affect. A change of one object drops all values
        derived from these types.
        """
        revisions = tuple(self.store(type_).revision for type_ in types)
        if types not in self._derived or self._derived[types][0] != revisions:
            self._derived[types] = revisions, {}
        _, values = self._derived[types]
        if name not in values:
            values[name] = compute()
        value: T = values[name]
        return value

    def broken(self, type_: type[Resource], key: Key) -> DecodeError | None:
        """Why the newest state of an object cannot be decoded, if so; `get` returns the last good one."""
        return self.store(type_).broken.get(key)

    def subscribe_deleted(self, type_: type[Resource], *handlers: Callable[[str], None]) -> None:
        """Call the handlers with the uid of each deleted object of that type."""

        def on_change(change: Change[Any]) -> None:
            gone = change.old.metadata.uid if change.old is not None else ""
            if gone and (change.new is None or change.new.metadata.uid != gone):
                for handler in handlers:
                    handler(gone)

        self.subscribe(type_, on_change)

    def serves(self, type_: type[Resource]) -> bool:
        """Whether the type is watched, and the API server serves its kind."""
        store = self._stores.get(type_)
        return store is not None and store.is_served

    def forbids(self, type_: type[Resource]) -> bool:
        """Whether the type is watched and its kind is installed, but may not be read."""
        store = self._stores.get(type_)
        return store is not None and store.is_forbidden

    def subscribe(self, type_: type[R], handler: Handler[R]) -> None:
        """Call `handler` for each change of that type, once it is stored."""
        self.store(type_).subscribe(handler)


# Who may write a status may fill it. Small values take many times their size, JSON text in it does not.
@dataclass(eq=False, slots=True)
class BoundedStatuses:
    """A transform of several kinds: all statuses of a namespace take at most `most_bytes` of memory.

    Raises TooLarge for an object that exceeds that.
    """

    most_bytes: int
    _taken: Counter[str] = field(default_factory=Counter[str])
    _counted: dict[tuple[str, Key], int] = field(default_factory=dict[tuple[str, Key], int])

    def __call__(self, resource: R) -> R:
        """The object itself."""
        kind, key, status = resource.KIND, resource.key, getattr(resource, "status", None)
        if not isinstance(status, msgspec.Struct):
            return resource
        texts = [bytes(it) for it in structs.astuple(status) if isinstance(it, msgspec.Raw)]
        size = bytes_in_memory(status) - VALUE_BYTES * sum(text.count(b",") for text in texts)
        before = self._counted.get((kind.name, key), 0)
        if size > before and self._taken[key.namespace] + size - before > self.most_bytes:
            text = (
                f"the statuses in namespace {key.namespace} take more than {self.most_bytes} bytes together"
            )
            raise TooLarge(kind, key, text)
        self._counted[kind.name, key] = size
        self._taken[key.namespace] += size - before
        return resource

    def on_change(self, change: Change[Any]) -> None:
        """Stop counting an object that is gone."""
        if change.new is None and change.old is not None:
            key = change.old.key
            self._taken[key.namespace] -= self._counted.pop((change.old.KIND.name, key), 0)
            if not self._taken[key.namespace]:
                del self._taken[key.namespace]
