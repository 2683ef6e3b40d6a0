"""What a simulated API server stores: objects, one counter of revisions, and the history of changes.

It is as strict as the real one where the runtime could cheat: a write that changes nothing has no new
version, a uid is never used twice, and history can be compacted.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kube_runtime.kind import Key, Object, key_of

_SERVER_SIDE = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")


@dataclass(frozen=True)
class Entry:
    """One change: the state before and after it. None means: no object."""

    revision: int
    collection: str
    key: Key
    old: Object | None
    new: Object | None


class Refused(Exception):
    """An answer of 400 or more."""

    def __init__(self, code: int, reason: str, message: str = "") -> None:
        super().__init__(message or reason)
        self.code = code
        self.reason = reason


@dataclass
class Storage:
    """Objects by collection (a path such as `/api/v1/services`) and key."""

    objects: dict[str, dict[Key, Object]] = field(default_factory=dict)
    history: list[Entry] = field(default_factory=list)
    revision: int = 1
    compacted: int = 0
    listeners: list[Callable[[Entry], None]] = field(default_factory=list)
    _uids: Iterator[int] = field(default_factory=lambda: count(1))
    _applied: dict[tuple[str, Key, str], Object] = field(default_factory=dict)

    def read(self, collection: str, key: Key) -> Object:
        """The object of that key."""
        found = self.objects.get(collection, {}).get(key)
        if found is None:
            raise Refused(404, "NotFound", f"{key} not found")
        return found

    def create(self, collection: str, wanted: Object) -> Object:
        """Store an object that was not there."""
        key = key_of(wanted)
        if key in self.objects.get(collection, {}):
            raise Refused(409, "AlreadyExists", f"{key} already exists")
        new = copy.deepcopy(wanted)
        for name in _SERVER_SIDE:
            new["metadata"].pop(name, None)
        new["metadata"] |= {
            "uid": f"uid-{next(self._uids)}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 1,
        }
        return self._commit(collection, key, None, new)

    def replace(self, collection: str, wanted: Object, subresource: str = "") -> Object:
        """Store another state of an object; a version or uid in it is a condition."""
        key = key_of(wanted)
        old = self.read(collection, key)
        for name in ("resourceVersion", "uid"):
            asked = wanted["metadata"].get(name)
            if asked and asked != old["metadata"][name]:
                raise Refused(409, "Conflict", f"{name} of {key} is another")
        new = copy.deepcopy(wanted)
        if subresource:
            new = {**old, subresource: new.get(subresource)}
        new["metadata"] = {**new["metadata"]}
        for name in _SERVER_SIDE:
            if name in old["metadata"]:
                new["metadata"][name] = old["metadata"][name]
            else:
                new["metadata"].pop(name, None)
        if new.get("roleRef") != old.get("roleRef"):
            raise Refused(422, "Invalid", "roleRef: Invalid value: cannot change roleRef")
        if new == old:
            return old
        if new.get("spec") != old.get("spec"):
            new["metadata"]["generation"] += 1
        if "deletionTimestamp" in old["metadata"] and not new["metadata"].get("finalizers"):
            return self._commit(collection, key, old, None)
        return self._commit(collection, key, old, new)

    def merge(self, collection: str, key: Key, patch: Object, subresource: str = "") -> Object:
        """A JSON merge patch."""
        old = self.read(collection, key)
        return self.replace(collection, merged(old, patch), subresource)

    def apply(self, collection: str, wanted: Object, manager: str) -> Object:
        """Server-side apply without conflicts: lists are atomic, and what a manager drops goes."""
        key = key_of(wanted)
        uid = wanted["metadata"].get("uid")
        old = self.objects.get(collection, {}).get(key)
        if old is None:
            if uid:
                raise Refused(409, "Conflict", f"uid of {key} is another")
            new = self.create(collection, wanted)
        else:
            before = self._applied.get((collection, key, manager), {})
            state = merged(without(old, before, wanted), wanted)
            new = self.replace(collection, state)
        self._applied[collection, key, manager] = copy.deepcopy(wanted)
        return new

    def delete(self, collection: str, key: Key, preconditions: Object) -> Object | None:
        """Delete, or begin to if there are finalizers. None means: it is gone."""
        old = self.read(collection, key)
        for name, asked in preconditions.items():
            if asked != old["metadata"][name]:
                raise Refused(409, "Conflict", f"{name} of {key} is another")
        if not old["metadata"].get("finalizers"):
            self._commit(collection, key, old, None)
            return None
        if "deletionTimestamp" in old["metadata"]:
            return old
        metadata = {**old["metadata"], "deletionTimestamp": "2026-01-01T00:00:01Z"}
        return self._commit(collection, key, old, {**old, "metadata": metadata})

    def tick(self) -> None:
        """Have the revision move on, as it does for changes of other kinds."""
        self.revision += 1

    def compact(self) -> None:
        """Forget all history."""
        self.compacted = self.revision
        self.history.clear()

    def _commit(self, collection: str, key: Key, old: Object | None, new: Object | None) -> Object:
        self.revision += 1
        stored = self.objects.setdefault(collection, {})
        if new is None:
            gone = copy.deepcopy(stored.pop(key))
            for applied in [each for each in self._applied if each[:2] == (collection, key)]:
                del self._applied[applied]
            gone["metadata"]["resourceVersion"] = str(self.revision)
            result = old = gone
        else:
            new["metadata"]["resourceVersion"] = str(self.revision)
            result = stored[key] = new
        entry = Entry(self.revision, collection, key, old, new)
        self.history.append(entry)
        for listener in tuple(self.listeners):
            listener(entry)
        return result


def merged(old: Any, patch: Any) -> Any:
    """RFC 7396."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    result = dict(old) if isinstance(old, dict) else {}
    for name, value in patch.items():
        if value is None:
            result.pop(name, None)
        else:
            result[name] = merged(result.get(name), value)
    return result


def without(state: Any, before: Any, now: Any) -> Any:
    """`state` less what `before` had and `now` has not."""
    if not (isinstance(state, dict) and isinstance(before, dict) and isinstance(now, dict)):
        return state
    return {
        name: without(value, before.get(name), now.get(name))
        for name, value in state.items()
        if name not in before or name in now
    }
