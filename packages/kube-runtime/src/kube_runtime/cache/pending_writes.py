"""Decide how long the store shows our own writes in front of the state of the watch.

The result of a write comes as its response, and on the watch, before or after that. Resource versions are
compared for equality only, so which of two states is newer must follow from other facts. Three suffice: the
watch brings the versions of one object in order; a complete list is newer than everything known when it
began; a uid that is gone never returns.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Generic

from kube_runtime.types.meta import R, Resource


@dataclass(frozen=True, slots=True)
class Relist(Generic[R]):
    """A complete list: the states of an object before and in it, and uids removed while it was sent."""

    before: R | None
    listed: R | None
    gone: Collection[str] = ()

    def is_newer(self, written: Resource, older: set[str]) -> bool:
        """Whether the list is newer than `written`, with which it raced.

        Where the facts leave it open, the answer is the one whose error is corrected sooner: yes if the list
        has another state of the same object (the watch follows at once), no if it lacks the object (the
        overlay expires).
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

    `known_versions` are those known when the write was sent, and those that the watch has brought since. If
    the result is not among them, they are all older. `relists` are the lists that ended meanwhile.
    """

    known_versions: set[str] = field(default_factory=set[str])
    relists: list[Relist[R]] = field(default_factory=list[Relist[R]])

    def is_overtaken(self, written: Resource) -> bool:
        """Whether the store is at `written` already, or beyond it."""
        return written.metadata.resource_version in self.known_versions or any(
            relist.is_newer(written, self.known_versions) for relist in self.relists
        )


@dataclass(slots=True)
class Overlay(Generic[R]):
    """A state from our own write that is shown until the watch brings it.

    `watched` is the state of the watch meanwhile, None if it has no such object. `older` are versions that
    are older than the shown state, and that a list may still bring. `is_selected`: the watch brings the shown
    state itself; otherwise only later ones.
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
