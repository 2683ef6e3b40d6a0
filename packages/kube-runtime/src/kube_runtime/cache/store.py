"""The objects of one kind: the state of its watch, and our own newer writes.

Store first, wake second: a handler that reads the store finds the state it was woken for, or a newer one.
Our own writes are shown at once, in front of the state of the watch, until the watch has brought them
(`pending_writes`). Watch events meanwhile are recorded and not yet shown; so at rest the store equals the
state of the watch, whatever happened on the way.
"""

import asyncio
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Generic, TypeAlias

import structlog
from msgspec.structs import replace

from kube_runtime.cache.index import Index
from kube_runtime.cache.pending_writes import InFlightWrite, Overlay, Relist
from kube_runtime.errors import DecodeError
from kube_runtime.kind import Key
from kube_runtime.times import utc_now
from kube_runtime.types.meta import R, Resource, equal_but_for_version
from kube_runtime.watch.events import Broken, Changed, Event, Present, Removed, Started, Synced
from kube_runtime.watch.selector import EVERYTHING, Selector

_log = structlog.get_logger()

OWN_WRITE_SECONDS = 30.0
"""Seconds that our own write is shown if the watch does not deliver it."""

FETCHED_SECONDS = 30.0
"""How long an object is shown that was read by name and that the watch does not bring."""


@dataclass(frozen=True, slots=True)
class Change(Generic[R]):
    """A change of the store as its readers see it.

    None means: there was, or there is, no such object. Two uids mean: removed and recreated.
    `initial`: it was there when we first looked.
    """

    old: R | None
    new: R | None
    initial: bool = False


Handler: TypeAlias = Callable[[Change[R]], None]


@dataclass(slots=True)
class _Listing(Generic[R]):
    """A running list; no reader sees it before it is complete. `gone` are uids removed while it was sent."""

    objects: dict[Key, R] = field(default_factory=dict[Key, R])
    broken: dict[Key, DecodeError] = field(default_factory=dict[Key, DecodeError])
    gone: set[str] = field(default_factory=set[str])

    def take(self, resource: R) -> None:
        """This is the newest state of the object."""
        self.objects[resource.key] = resource
        self.broken.pop(resource.key, None)
        self.gone.discard(resource.metadata.uid)

    def remove(self, key: Key, uid: str) -> None:
        """There is no such object any more."""
        self.objects.pop(key, None)
        self.broken.pop(key, None)
        self.gone.add(uid)


class Store(Generic[R]):
    """The objects of one kind, and the subscribers of their changes.

    `broken`: objects that exist and do not fit their type; `shown` has their last good state, if there was
    one.
    """

    def __init__(
        self,
        type_: type[R],
        selection: Selector = EVERYTHING,
        transform: Callable[[R], R] | None = None,
    ) -> None:
        self.type_ = type_
        self.shown: Index[R] = Index()
        self.broken: dict[Key, DecodeError] = {}
        self.granted_by = ""
        """How an administrator grants permission to read the kind, for messages."""
        self.revision = 0
        """Number of changes that readers have seen."""
        self.is_served = False
        """Whether the API server knows the kind: from a complete list on, until the kind is gone."""
        self.is_forbidden = False
        """Whether the kind is installed, and may not be read; what was read before stays."""
        self._selection = selection
        self._transform = transform
        self._handlers: list[Handler[R]] = []
        self._served_handlers: list[Callable[[], None]] = []
        self._broken_handlers: list[Callable[[Key], None]] = []
        self._listing: _Listing[R] | None = None
        self._has_synced = False
        self._overlays: dict[Key, Overlay[R]] = {}
        self._flights: dict[Key, InFlightWrite[R]] = {}

    def subscribe(self, handler: Handler[R]) -> None:
        """Call `handler` for each change from now on, and once for each object that is already there."""
        self._handlers.append(handler)
        for resource in self.shown.list():
            handler(Change(None, resource, initial=True))

    def subscribe_served(self, handler: Callable[[], None]) -> None:
        """Call `handler` whenever the kind begins or ceases to be served, or, unserved, to be forbidden."""
        self._served_handlers.append(handler)

    def subscribe_broken(self, handler: Callable[[Key], None]) -> None:
        """Call `handler` for each object whose newest state cannot be read, and when it can be again."""
        self._broken_handlers.append(handler)
        for key in self.broken:
            handler(key)

    def _set_served(self, *, is_served: bool, is_forbidden: bool = False) -> None:
        before = self.is_served, self.is_forbidden and not self.is_served
        self.is_served, self.is_forbidden = is_served, is_forbidden
        if before != (is_served, is_forbidden and not is_served):
            for handler in self._served_handlers:
                handler()

    # Watch events.

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
                self._read(resource.key, self._changed(resource.key, resource))
            case Removed(key, uid):
                self._read(key, self._removed(key, uid))
            case Broken(error):
                self._hear_broken(error)
            case _:
                pass

    def _read(self, key: Key, change: Change[R] | None) -> None:
        """Notify of a state that could be read; the one before may have been broken."""
        was_broken = self.broken.pop(key, None) is not None
        self._notify(change)
        self._notify_broken(key if was_broken else None)

    def mark_kind_gone(self) -> None:
        """Forget all objects: the API server does not know their kind any more."""
        self._swap(_Listing())
        self._set_served(is_served=False)

    def mark_kind_forbidden(self) -> None:
        """Record that the kind is installed, and may not be read."""
        self._set_served(is_served=self.is_served, is_forbidden=True)

    def _hear_broken(self, error: DecodeError) -> None:
        _log.warning("object does not fit its type", error=str(error))
        if error.key is None:
            return  # broken beyond a name
        # Its traceback would keep the frames that read the object, and with them all of its text.
        error.__traceback__ = error.__cause__ = error.__context__ = None
        if self._listing is not None:
            self._listing.broken[error.key] = error
            return
        self.broken[error.key] = error
        self._notify_broken(error.key)

    def _swap(self, listing: _Listing[R]) -> None:
        """Have the list in place of everything, then wake for what differs."""
        self._listing = None
        shown = {resource.key for resource in self.shown.list()}
        unlisted = shown | self._overlays.keys() | self._flights.keys()
        states: dict[Key, R | None] = dict.fromkeys(unlisted - listing.objects.keys())
        states.update(listing.objects)
        # An object that was read first and broken later has its good state in the list.
        unread = listing.broken.keys() - listing.objects.keys()
        changes = [
            self._listed(key, state, listing.gone)
            for key, state in states.items()
            if key not in unread
        ]
        before, self.broken = self.broken, listing.broken
        is_first, self._has_synced = not self._has_synced, True
        if is_first:
            changes = [
                change and Change(change.old, change.new, initial=True) for change in changes
            ]
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
            flight.known_versions.add(_version(heard))
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
        """The watch's state of this key, shown or not."""
        overlay = self._overlays.get(key)
        return self.shown.get(key) if overlay is None else overlay.watched

    def _reduced(self, resource: R) -> R:
        """What is kept of an object; the very object that we have, if it is in the same state."""
        have = self._watched(resource.key)
        if have is not None and _version(have) == _version(resource):
            return have
        return self._transform(resource) if self._transform else resource

    def _reduced_event(self, event: Event[R]) -> Event[R]:
        """The event with its object reduced; an object that cannot be reduced is a broken one."""
        if not isinstance(event, Present | Changed):
            return event
        resource = event.resource
        try:
            kept = self._reduced(resource)
        except Exception as error:  # noqa: BLE001  # whatever one object does to `transform`, the others are not affected
            # Without the error's text, which may have a piece of a Secret.
            message = f"it cannot be reduced: {type(error).__name__}"
            return Broken(DecodeError(self.type_.KIND, resource.key, message))
        return Present(kept) if isinstance(event, Present) else Changed(kept)

    # Own writes.

    @contextmanager
    def writing(self, key: Key) -> Iterator[InFlightWrite[R]]:
        """Record watch events of `key` during a write; one write per key at a time."""
        flight = self._flights[key] = InFlightWrite(self._known_versions(key))
        try:
            yield flight
        finally:
            del self._flights[key]

    def wrote(self, flight: InFlightWrite[R], written: R) -> None:
        """Show the stored result of our write, unless the watch delivered it first."""
        is_watched = self._watched(written.key) is not None
        if self._selection.covers(written, is_watched=is_watched):
            self.fetched(flight, written, OWN_WRITE_SECONDS)

    def fetched(self, flight: InFlightWrite[R], read: R, seconds: float = FETCHED_SECONDS) -> None:
        """Show an object as the API server answered, unless the watch was sooner.

        If it was read by name, the watch may never bring it: its selector does not match. So it is shown for
        `seconds` or until a write of ours has another answer. Then it is gone, which wakes its owner.
        """
        watched = self._watched(read.key)
        if flight.is_overtaken(read) or _version(watched) == _version(read):
            return
        kept = self._transform(read) if self._transform else read
        self._lay_over(read.key, kept, flight.known_versions, seconds)

    def deleted(self, key: Key, uid: str) -> None:
        """Show the object as being deleted until the watch reports that it is, or is deleted."""
        shown = self.shown.get(key)
        if shown is None or shown.metadata.uid != uid:
            return
        if shown.metadata.deletion_timestamp is None:
            metadata = replace(shown.metadata, deletion_timestamp=utc_now())
            going, older = replace(shown, metadata=metadata), self._known_versions(key)
            self._lay_over(key, going, older, OWN_WRITE_SECONDS, is_deletion=True)

    def _lay_over(
        self, key: Key, shown: R, older: set[str], seconds: float, *, is_deletion: bool = False
    ) -> None:
        """Show this state in front of that of the watch, for so long at most."""
        watched = self._watched(key)
        change = self._show(key, shown)
        alarm = asyncio.get_running_loop().call_later(seconds, self._give_up, key)
        self._overlays[key] = Overlay(shown, watched, older, alarm, is_deletion)
        self._notify(change)

    def _known_versions(self, key: Key) -> set[str]:
        """The versions of this object that we know of, as far as a list may still bring them."""
        overlay = self._overlays.get(key)
        states = (self.shown.get(key), self._watched(key))
        versions = {_version(state) for state in states if state is not None}
        return versions | overlay.older if overlay else versions

    def _give_up(self, key: Key) -> None:
        """Fall back to the state of the watch, which did not deliver our write in time."""
        self._notify(self._show(key, self._overlays[key].watched))

    # Readers.

    def _show(self, key: Key, new: R | None) -> Change[R] | None:
        """Show this state without an overlay, and return what readers see differently."""
        overlay = self._overlays.pop(key, None)
        if overlay is not None:
            overlay.alarm.cancel()
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

    def _notify_broken(self, *keys: Key | None) -> None:
        for key in keys:
            if key is not None:
                for handler in self._broken_handlers:
                    handler(key)


def _version(state: Resource | None) -> str:
    return state.metadata.resource_version if state else ""
