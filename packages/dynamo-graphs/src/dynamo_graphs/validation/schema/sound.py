"""What is left of a document without the values that its schema refuses.

Other rules then validate the rest: one wrong field must not hide what they would report.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from dynamo_graphs.validation import Problem
from kube_runtime.kind import Object

_INDEX: Final = re.compile(r"\[(\d+)\]")


def without(document: Object, problems: Iterable[Problem]) -> Object:
    """A copy of the document without what stands at the paths of the problems; list items stay as `None`."""
    copy: Object = _copied(document)
    for problem in problems:
        _remove(copy, problem.path)
    return copy


def _copied(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _copied(each) for key, each in value.items()}
    return [_copied(each) for each in value] if isinstance(value, list) else value


def _remove(document: object, path: str) -> None:
    """Removes a key, or empties a list item; a path that leads nowhere changes nothing."""
    value, rest = document, path
    while rest:
        if isinstance(value, dict):
            key = next((each for each in _steps(rest) if each in value), None)
            if key is None:
                return
            rest = rest[len(key) :].removeprefix(".")
            if not rest:
                del value[key]
                return
            value = value[key]
            continue
        found = _INDEX.match(rest)
        if found is None or not isinstance(value, list) or int(found[1]) >= len(value):
            return
        index, rest = int(found[1]), rest[found.end() :].removeprefix(".")
        if not rest:
            value[index] = None
            return
        value = value[index]


def _steps(path: str) -> Iterator[str]:
    """What the next key may be, the longest first: keys hold dots, and paths have no quotes."""
    yield path
    for end in range(len(path) - 1, 0, -1):
        if path[end] in ".[":
            yield path[:end]
