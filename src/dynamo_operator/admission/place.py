"""What stands at the path of a problem, in the document that it was found in.

The hard part is that keys have dots and paths have no quotes: `metadata.annotations.nvidia.com/x` is three
steps and not four. So at each step the longest key that fits is taken.
"""

import re
from typing import Any, Final

_INDEX: Final = re.compile(r"\[(\d+)\]")
_SCALARS: Final = (str, int, float, bool)


def scalar_at(document: Any, path: str) -> Any:
    """The text, number or boolean at that path; None if there is another thing, or nothing."""
    value, rest = document, path
    while rest:
        if isinstance(value, dict):
            key = max((key for key in value if _leads(key, rest)), key=len, default=None)
            if key is None:
                return None
            value, rest = value[key], rest[len(key) :].removeprefix(".")
            continue
        found = _INDEX.match(rest)
        if not isinstance(value, list) or found is None or int(found[1]) >= len(value):
            return None
        value, rest = value[int(found[1])], rest[found.end() :].removeprefix(".")
    return value if isinstance(value, _SCALARS) else None


def _leads(key: str, path: str) -> bool:
    return bool(key) and path.startswith(key) and path[len(key) : len(key) + 1] in ("", ".", "[")
