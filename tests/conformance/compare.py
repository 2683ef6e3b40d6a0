"""Compare two sets of objects, path by path.

Most lists are keyed by something, so that one additional entry is one difference and not a shift of all
that follow; whether order matters is a second question.
"""

import json
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from kube_runtime.types.meta import Object

_KEYS = {
    "cliques": "name",
    "conditions": "type",
    "containers": "name",
    "env": "name",
    "envs": "name",
    "hosts": "host",
    "imagePullSecrets": "name",
    "initContainers": "name",
    "ownerReferences": "name",
    "podCliqueScalingGroups": "name",
    "ports": "name",
    "pvcs": "name",
    "scalingGroups": "name",
    "tolerations": "key",
    "volumeMounts": "mountPath",
    "volumes": "name",
}
"""The field that identifies an entry, by the list's name."""

_ORDERED = frozenset(("containers", "initContainers", "env", "envs"))


class Absent(Enum):
    """What stands for a value that is not there."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True)
class Difference:
    """One place where two objects differ. An empty path is the object itself."""

    object: str
    path: str
    theirs: Any
    ours: Any

    @property
    def is_(self) -> str:
        """`missing` with us, `extra` with us, or `changed`."""
        if self.ours is ABSENT:
            return "missing"
        return "extra" if self.theirs is ABSENT else "changed"

    def __str__(self) -> str:
        where = f"{self.object} {self.path}".rstrip()
        match self.is_:
            case "missing":
                return f"{where}: missing, theirs {text(self.theirs)}"
            case "extra":
                return f"{where}: extra, ours {text(self.ours)}"
        return f"{where}: theirs {text(self.theirs)}, ours {text(self.ours)}"


def text(value: Any) -> str:
    """A value as it is shown, and as deviations match it: strings as they are, the rest as JSON."""
    return value if isinstance(value, str) else json.dumps(value, sort_keys=True)


def differences(theirs: Mapping[str, Object], ours: Mapping[str, Object]) -> Iterator[Difference]:
    """Where two sets of normal objects, by `Kind/name`, differ."""
    for name in sorted(theirs.keys() | ours.keys()):
        for path, their, our in _differ("", theirs.get(name, ABSENT), ours.get(name, ABSENT)):
            yield Difference(name, path, their, our)


def event_differences(theirs: set[str], ours: set[str]) -> Iterator[Difference]:
    for event in sorted(theirs ^ ours):
        sides = (event, ABSENT) if event in theirs else (ABSENT, event)
        yield Difference("Events", event, *sides)


_Found = Iterator[tuple[str, Any, Any]]


def _differ(path: str, theirs: Any, ours: Any) -> _Found:
    match theirs, ours:
        case dict(), dict():
            for name in sorted(theirs.keys() | ours.keys()):
                yield from _differ(_below(path, name), theirs.get(name, ABSENT), ours.get(name, ABSENT))
        case list(), list():
            yield from _differ_lists(path, theirs, ours)
        case _ if theirs != ours:
            yield path, theirs, ours
        case _:
            return


def _differ_lists(path: str, theirs: list[Any], ours: list[Any]) -> _Found:
    name = path.rpartition(".")[2]
    field = _KEYS.get(name, "")
    if not all(isinstance(each, dict) for each in (*theirs, *ours)):
        if theirs != ours:
            yield path, theirs, ours
        return
    their_entries, our_entries = _keyed(theirs, field), _keyed(ours, field)
    for key in sorted(their_entries.keys() | our_entries.keys()):
        yield from _differ(f"{path}[{key}]", their_entries.get(key, ABSENT), our_entries.get(key, ABSENT))
    if name in _ORDERED:
        both = their_entries.keys() & our_entries.keys()
        their_order = [each for each in their_entries if each in both]
        our_order = [each for each in our_entries if each in both]
        if their_order != our_order:
            yield f"{path}#order", their_order, our_order


def _keyed(entries: list[Any], field: str) -> dict[str, Any]:
    """The entries by key; a key that is there again gets a number, and so does what has none."""
    seen: Counter[str] = Counter()
    found = {}
    for entry in entries:
        key = str(entry.get(field, ""))
        seen[key] += 1
        number = f"#{seen[key]}" if seen[key] > 1 or not key else ""
        found[key + number] = entry
    return found


def _below(path: str, name: str) -> str:
    if "." in name or "/" in name:
        return f"{path}[{name}]"
    return f"{path}.{name}" if path else name
