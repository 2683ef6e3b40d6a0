"""A reader of the cache that holds it to its promises.

- Each announcement starts from the state that was announced before, and says something new.
- What was announced, taken together, is what the cache shows.
- Where it `is_strict`, the cache never goes back in time: neither to an older state of an object, nor to
  an object that it showed as removed. The versions of the simulated server are ordered; only the test
  may make use of that.
"""

import asyncio
from dataclasses import dataclass, field

from kube_runtime.cache.cache import Cache
from kube_runtime.cache.store import Change
from kube_runtime.kind import Key
from kube_runtime.types.meta import equal_but_for_version
from simulated.gadget import GADGETS, Gadget
from simulated.storage import Entry, Storage


@dataclass
class Witness:
    """The events that a subscriber received, and the newest state of each object."""

    cache: Cache
    storage: Storage
    is_strict: bool
    heard: dict[Key, Gadget] = field(default_factory=dict)
    newest: dict[Key, int] = field(default_factory=dict)
    removals: dict[Key, list[int]] = field(default_factory=dict)
    story: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cache.subscribe(Gadget, self._hear)
        self.storage.listeners.append(self._note)

    def _note(self, entry: Entry) -> None:
        if entry.new is None:
            self.removals.setdefault(entry.key, []).append(entry.revision)

    def tell(self, what: str) -> None:
        """Put a line into the story that a failed test prints."""
        self.story.append(f"{asyncio.get_running_loop().time():8.2f} {what}")

    def _hear(self, change: Change[Gadget]) -> None:
        state = change.new or change.old
        assert state is not None, "an announcement of nothing"
        self.tell(f"announced {brief(change.old)} → {brief(change.new)}")
        before = self.heard.get(state.key)
        if change.old is None or before is None:
            assert change.old is before, self.tale()
        else:
            assert equal_but_for_version(before, change.old), self.tale()
        if change.old is not None and change.new is not None:
            assert not equal_but_for_version(change.old, change.new), self.tale()
        assert change.new is self.cache.get(Gadget, state.key), self.tale()
        if change.new is None:
            del self.heard[state.key]
        else:
            self.heard[state.key] = change.new
        self.look()

    def look(self) -> None:
        """Hold what is shown now against what was seen before."""
        if not self.is_strict:
            return
        for each in self.cache.list(Gadget):
            version = int(each.metadata.resource_version)
            assert self.newest.get(each.key, 0) <= version, self.tale()
            self.newest[each.key] = version
        for key, version in self.newest.items():
            if self.cache.get(Gadget, key) is None:
                later = [each for each in self.removals.get(key, ()) if version <= each]
                assert later, self.tale()
                self.newest[key] = later[0]

    def has_seen_write(self, written: Gadget) -> None:
        """Hold the cache to it that a write which has returned is shown, or something newer."""
        self.tell(f"wrote {brief(written)}")
        if self.is_strict:
            version = int(written.metadata.resource_version)
            self.newest[written.key] = max(version, self.newest.get(written.key, 0))
            self.look()

    def has_seen_deletion(self, deleted: Gadget) -> None:
        """Hold the cache to it that an object whose deletion has returned is shown as going or gone."""
        self.tell(f"deleted {brief(deleted)}")
        shown = self.cache.get(Gadget, deleted.key)
        if self.is_strict and shown is not None and shown.metadata.uid == deleted.metadata.uid:
            assert shown.metadata.deletion_timestamp is not None, self.tale()

    def is_at_rest(self) -> None:
        """Hold the cache against the server, now that nothing is on its way."""
        self.tell("at rest")
        stored = self.storage.objects.get(GADGETS, {})
        good = {key for key, each in stored.items() if isinstance(each["spec"]["size"], int)}
        shown = {each.key: each for each in self.cache.list(Gadget)}
        assert good <= shown.keys() <= stored.keys(), self.tale()
        for key in stored:
            assert (self.cache.broken(Gadget, key) is None) is (key in good), self.tale()
        for key in good:
            metadata = shown[key].metadata
            assert stored[key]["metadata"]["uid"] == metadata.uid, self.tale()
            assert stored[key]["metadata"]["resourceVersion"] == metadata.resource_version, (
                self.tale()
            )
            assert stored[key]["spec"]["size"] == shown[key].spec.size, self.tale()
            assert metadata.deletion_timestamp == stored[key]["metadata"].get("deletionTimestamp")
        assert shown.keys() == self.heard.keys(), self.tale()
        for key, each in shown.items():
            assert equal_but_for_version(self.heard[key], each), self.tale()

    def tale(self) -> str:
        """What happened, in order."""
        return "\n".join(self.story)


def brief(state: Gadget | None) -> str:
    """A state of a gadget in one word."""
    if state is None:
        return "nothing"
    metadata = state.metadata
    going = "†" if metadata.deletion_timestamp else ""
    sizes = f"{state.spec.size}/{state.status.ready}"
    return f"{metadata.name}{going}({metadata.uid} v{metadata.resource_version} {sizes})"
