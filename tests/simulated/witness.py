"""A subscriber of the cache that checks its guarantees.

- Each change starts from the state of the change before, and is a real change.
- All changes together give the contents of the cache.
- If `is_strict`, the cache never goes back in time: neither to an older state of an object, nor to an object
that it
  had removed. Only this test may use that versions of the simulated server are ordered.
"""

import asyncio
from dataclasses import dataclass, field

from kube_runtime.cache.store import Cache, Change
from kube_runtime.types.meta import Key, equal_but_for_version
from simulated.gadget import GADGETS, Gadget
from simulated.storage import Entry, Storage


@dataclass
class Witness:
    """The state of each object by the changes received, its newest version, and its removals."""

    cache: Cache
    storage: Storage
    is_strict: bool
    states: dict[Key, Gadget] = field(default_factory=dict)
    newest: dict[Key, int] = field(default_factory=dict)
    removals: dict[Key, list[int]] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.cache.subscribe(Gadget, self._on_change)
        self.storage.listeners.append(self._on_commit)

    def _on_commit(self, entry: Entry) -> None:
        if entry.new is None:
            self.removals.setdefault(entry.key, []).append(entry.revision)

    def record(self, line: str) -> None:
        self.log.append(f"{asyncio.get_running_loop().time():8.2f} {line}")

    def _on_change(self, change: Change[Gadget]) -> None:
        state = change.new or change.old
        assert state is not None, "a change without states"
        self.record(f"changed {brief(change.old)} → {brief(change.new)}")
        before = self.states.get(state.key)
        if change.old is None or before is None:
            assert change.old is before, self.history()
        else:
            assert equal_but_for_version(before, change.old), self.history()
        if change.old is not None and change.new is not None:
            assert not equal_but_for_version(change.old, change.new), self.history()
        assert change.new is self.cache.get(Gadget, state.key), self.history()
        if change.new is None:
            del self.states[state.key]
        else:
            self.states[state.key] = change.new
        self.check_order()

    def check_order(self) -> None:
        """Check that the cache has not gone back in time."""
        if not self.is_strict:
            return
        for gadget in self.cache.list(Gadget):
            version = int(gadget.metadata.resource_version)
            assert self.newest.get(gadget.key, 0) <= version, self.history()
            self.newest[gadget.key] = version
        for key, version in self.newest.items():
            if self.cache.get(Gadget, key) is None:
                later = [removal for removal in self.removals.get(key, ()) if version <= removal]
                assert later, self.history()
                self.newest[key] = later[0]

    def has_seen_write(self, written: Gadget) -> None:
        """Check that the cache has the state of a returned write, or a newer one."""
        self.record(f"wrote {brief(written)}")
        if self.is_strict:
            version = int(written.metadata.resource_version)
            self.newest[written.key] = max(version, self.newest.get(written.key, 0))
            self.check_order()

    def has_seen_deletion(self, deleted: Gadget) -> None:
        """Check that an object whose deletion has returned is terminating or gone."""
        self.record(f"deleted {brief(deleted)}")
        shown = self.cache.get(Gadget, deleted.key)
        if self.is_strict and shown is not None and shown.metadata.uid == deleted.metadata.uid:
            assert shown.metadata.deletion_timestamp is not None, self.history()

    def is_at_rest(self) -> None:
        """Check that the cache equals the server, now that no event is pending."""
        self.record("at rest")
        stored = self.storage.objects.get(GADGETS, {})
        good = {key for key, body in stored.items() if isinstance(body["spec"]["size"], int)}
        shown = {gadget.key: gadget for gadget in self.cache.list(Gadget)}
        assert good <= shown.keys() <= stored.keys(), self.history()
        for key in stored:
            assert (self.cache.broken(Gadget, key) is None) is (key in good), self.history()
        for key in good:
            metadata = shown[key].metadata
            assert stored[key]["metadata"]["uid"] == metadata.uid, self.history()
            assert stored[key]["metadata"]["resourceVersion"] == metadata.resource_version, self.history()
            assert stored[key]["spec"]["size"] == shown[key].spec.size, self.history()
            assert metadata.deletion_timestamp == stored[key]["metadata"].get("deletionTimestamp")
        assert shown.keys() == self.states.keys(), self.history()
        for key, gadget in shown.items():
            assert equal_but_for_version(self.states[key], gadget), self.history()

    def history(self) -> str:
        return "\n".join(self.log)


def brief(state: Gadget | None) -> str:
    """A short text of a gadget's state."""
    if state is None:
        return "nothing"
    metadata = state.metadata
    going = "†" if metadata.deletion_timestamp else ""
    sizes = f"{state.spec.size}/{state.status.ready}"
    return f"{metadata.name}{going}({metadata.uid} v{metadata.resource_version} {sizes})"
