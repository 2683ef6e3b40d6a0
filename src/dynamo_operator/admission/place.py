"""What stands at the path of a problem, in the document that it was found in.

The hard part is that keys have dots and paths have no quotes: `metadata.annotations.nvidia.com/x` is three
steps and not four. So at each step the longest key that fits is taken.
"""

import re
from collections.abc import Iterator
from typing import Any, Final

from dynamo_operator.kube.kind import Object

_INDEX: Final = re.compile(r"\[(\d+)\]")
_SCALARS: Final = (str, int, float, bool)


def scalar_at(document: Any, path: str) -> Any:
    """The text, number or boolean at that path; None if there is another thing, or nothing."""
    value, rest = document, path
    while rest:
        if isinstance(value, dict):
            key = next((each for each in _steps(rest, value) if each in value), None)
            if key is None:
                return None
            value, rest = value[key], rest[len(key) :].removeprefix(".")
            continue
        found = _INDEX.match(rest)
        if not isinstance(value, list) or found is None or int(found[1]) >= len(value):
            return None
        value, rest = value[int(found[1])], rest[found.end() :].removeprefix(".")
    return value if isinstance(value, _SCALARS) else None


def _steps(path: str, found: Object) -> Iterator[str]:
    """What the next step may be, the longest first: the path up to a dot, to a bracket, or to its end.

    To look at each key in its place would take long where all of many keys are wrong.
    """
    longest = max(map(len, found), default=0)
    if len(path) <= longest:
        yield path
    for end in range(min(len(path) - 1, longest), 0, -1):
        if path[end] in ".[":
            yield path[:end]
