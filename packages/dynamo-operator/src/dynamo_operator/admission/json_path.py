"""Look up the values at the paths of problems in a document.

Keys may contain dots, and paths have no quotes: `metadata.annotations.nvidia.com/x` has three steps, not
four. So at each step the longest matching key wins.

A document may have as many problems as fields. So one walk over the document follows all paths together:
sorted paths through the same value are adjacent, and a range represents them. The time grows with the size
of the document and of the paths, times the logarithm of their number.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection, Iterator, Sequence
from typing import Final, NamedTuple, TypeAlias

Container: TypeAlias = dict[str, object] | list[object]
_SCALARS: Final = (str, int, float, bool)


class _Visit(NamedTuple):
    """A value, the range `[low, high)` of paths to or through it, and the length `end` of its own path."""

    value: object
    low: int
    high: int
    end: int


def scalars_at(document: Container, paths: Collection[str]) -> dict[str, object]:
    """The string, number or boolean at each path; other paths are left out."""
    texts = sorted(set(paths))
    scalars: dict[str, object] = {}
    visits = list(_inside(texts, document, 0, len(texts), 0))
    while visits:
        visit = visits.pop()
        value, low, high, end = visit
        if len(texts[low]) == end and isinstance(value, _SCALARS):
            scalars[texts[low]] = value
        if isinstance(value, dict | list):
            for separator in ".[":
                span = _span(texts, low, high, end, separator)
                visits += _inside(texts, value, *span, end + (separator == "."))
    return scalars


def _inside(
    texts: Sequence[str], value: Container, low: int, high: int, at: int
) -> Iterator[_Visit]:
    """The children of a value on the paths of a range, the one with the shortest key last.

    That one is visited first, so the value at a longer matching key replaces its result.
    """
    if low == high:
        return
    if isinstance(value, dict):
        steps = sorted(value.items(), key=lambda step: len(step[0]), reverse=True)
    else:
        steps = [(f"[{index}]", part) for index, part in enumerate(value)]
    for step, part in steps:
        first, last = _span(texts, low, high, at, step)
        if first < last:
            yield _Visit(part, first, last, at + len(step))


def _span(texts: Sequence[str], low: int, high: int, at: int, step: str) -> tuple[int, int]:
    """The part of a range of paths, equal up to `at`, that continues with `step`."""
    if high - low == 1:
        return low, low + texts[low].startswith(step, at)
    end = at + len(step)
    first = bisect_left(texts, step, low, high, key=lambda text: text[at:end])
    return first, bisect_right(texts, step, first, high, key=lambda text: text[at:end])
