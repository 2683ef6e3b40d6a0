"""How long our own writes stay visible until the watch has delivered them.

A write has an answer, and the same state comes back on the watch: before the answer, or after it.
Versions are compared for equality only, so which of two states is newer must be known without an order.
Three facts suffice: the watch of one object brings its versions in their order; a
complete list is newer than whatever was known when it began; a uid that is gone never comes back.
"""

import asyncio
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Generic

from kube_runtime.types.meta import R, Resource


@dataclass(frozen=True, slots=True)
class Relist(Generic[R]):
    """A list that ended: the watched states before and after it, and uids removed while it was sent."""

    before: R | None
    listed: R | None
    gone: Collection[str] = ()

    def is_newer(self, written: Resource, older: set[str]) -> bool:
        """Whether the list was taken after `written` was stored.

        Asked only of a list that raced with the write. Where the facts leave it open, the answer is the one
        that heals sooner: yes when the list brought another state of the same object (the watch follows at
        once), no when the list does not know the object (a deadline follows).
        """
        uid = written.metadata.uid
        if uid in self.gone:
            return True
        if self.listed is None or self.listed.metadata.uid != uid:
            return self.before is not None and self.before.metadata.uid == uid
        return self.listed.metadata.resource_version not in older


@dataclass(slots=True)
class InFlightWrite(Generic[R]):
    """A write that has no answer yet, and what the watch brought for its key meanwhile.

    `known_versions` are those that were known when the write was sent, and those that the watch has
    brought since. If the outcome is not among them, they are all older.
    `relists` are the lists that ended meanwhile.
    """

    known_versions: set[str] = field(default_factory=set[str])
    relists: list[Relist[R]] = field(default_factory=list[Relist[R]])

    def is_overtaken(self, written: Resource) -> bool:
        """Whether the store already was at `written`, or beyond it."""
        return written.metadata.resource_version in self.known_versions or any(
            relist.is_newer(written, self.known_versions) for relist in self.relists
        )


@dataclass(slots=True)
class Overlay(Generic[R]):
    """A state of our own that is shown until the watch has brought it.

    `watched` is what the watch says meanwhile; None means: no such object. `older` are versions
    that are older than what is shown, and that a list may still bring.
    """

    shown: R
    watched: R | None
    older: set[str]
    alarm: asyncio.TimerHandle
    is_deletion: bool = False
    is_older_than_list: bool = False  # the running list began after our write's answer

    def ends_with(self, heard: Resource) -> bool:
        """Whether this state from the watch is the one that we wait for."""
        if self.is_deletion:
            same = heard.metadata.uid == self.shown.metadata.uid
            return same and heard.metadata.deletion_timestamp is not None
        return heard.metadata.resource_version == self.shown.metadata.resource_version

    def ends_with_list(self, listed: R | None, gone: Collection[str] = ()) -> bool:
        """Whether a complete list that brought this state (None: no object) is newer than our write."""
        if self.is_older_than_list or (listed is not None and self.ends_with(listed)):
            return True
        return Relist(self.watched, listed, gone).is_newer(self.shown, self.older)
