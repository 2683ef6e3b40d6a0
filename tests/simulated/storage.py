"""The storage of a simulated API server: objects, one counter of revisions, and the history of changes.

It is as strict as the real one where it matters: a write that changes nothing keeps the version, uids are
never reused, and the history can be compacted.
"""

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import count
from typing import Any

from kube_runtime.types.meta import Key, Object, key_of

_SERVER_SIDE = ("uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp")


@dataclass(frozen=True)
class Entry:
    """One change, with the states before and after it, None where the object does not exist."""

    revision: int
    collection: str
    key: Key
    old: Object | None
    new: Object | None


class Refused(Exception):
    """An error response."""

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
        stored = self.objects.get(collection, {}).get(key)
        if stored is None:
            raise Refused(404, "NotFound", f"{key} not found")
        return stored

    def create(self, collection: str, desired: Object) -> Object:
        key = key_of(desired)
        if key in self.objects.get(collection, {}):
            raise Refused(409, "AlreadyExists", f"{key} already exists")
        new = copy.deepcopy(desired)
        for name in _SERVER_SIDE:
            new["metadata"].pop(name, None)
        new["metadata"] |= {
            "uid": f"uid-{next(self._uids)}",
            "creationTimestamp": "2026-01-01T00:00:00Z",
            "generation": 1,
        }
        return self._commit(collection, key, None, new)

    def replace(self, collection: str, desired: Object, subresource: str = "") -> Object:
        """Store a new state of an object; its version and uid, if given, must match."""
        key = key_of(desired)
        old = self.read(collection, key)
        for name in ("resourceVersion", "uid"):
            expected = desired["metadata"].get(name)
            if expected and expected != old["metadata"][name]:
                raise Refused(409, "Conflict", f"{name} of {key} does not match")
        new = copy.deepcopy(desired)
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
        old = self.read(collection, key)
        return self.replace(collection, merged(old, patch), subresource)

    def apply(self, collection: str, desired: Object, manager: str) -> Object:
        """Server-side apply without conflicts; lists are atomic, and fields that a manager omits go."""
        key = key_of(desired)
        uid = desired["metadata"].get("uid")
        old = self.objects.get(collection, {}).get(key)
        if old is None:
            if uid:
                raise Refused(409, "Conflict", f"uid of {key} does not match")
            new = self.create(collection, desired)
        else:
            before = self._applied.get((collection, key, manager), {})
            state = merged(without(old, before, desired), desired)
            new = self.replace(collection, state)
        self._applied[collection, key, manager] = copy.deepcopy(desired)
        return new

    def delete(self, collection: str, key: Key, preconditions: Object) -> Object | None:
        """Delete an object; return it if finalizers remain, else None."""
        old = self.read(collection, key)
        for name, expected in preconditions.items():
            if expected != old["metadata"][name]:
                raise Refused(409, "Conflict", f"{name} of {key} does not match")
        if not old["metadata"].get("finalizers"):
            self._commit(collection, key, old, None)
            return None
        if "deletionTimestamp" in old["metadata"]:
            return old
        metadata = {**old["metadata"], "deletionTimestamp": "2026-01-01T00:00:01Z"}
        return self._commit(collection, key, old, {**old, "metadata": metadata})

    def tick(self) -> None:
        self.revision += 1

    def compact(self) -> None:
        self.compacted = self.revision
        self.history.clear()

    def _commit(self, collection: str, key: Key, old: Object | None, new: Object | None) -> Object:
        self.revision += 1
        stored = self.objects.setdefault(collection, {})
        if new is None:
            gone = copy.deepcopy(stored.pop(key))
            for applied in [by for by in self._applied if by[:2] == (collection, key)]:
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
    """The result of a JSON merge patch (RFC 7396)."""
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
    """`state` without the fields that are in `before` and not in `now`."""
    if not (isinstance(state, dict) and isinstance(before, dict) and isinstance(now, dict)):
        return state
    return {
        name: without(value, before.get(name), now.get(name))
        for name, value in state.items()
        if name not in before or name in now
    }
