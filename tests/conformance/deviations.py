"""The differences that are meant: rows of `deviations.yaml`, each under an id of `docs/deviations.md`."""

import re
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path

import msgspec

from conformance.compare import Difference, text

LATER = "later"
"""In place of an id: what the recorded operator does and ours cannot yet."""

_FILE = Path(__file__).with_name("deviations.yaml")


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename={"is_": "is"}):
    """What one deviation explains. In every pattern `*` stands for any text; left out, all is meant.

    `but` are cases that it does not explain.
    """

    id: str
    objects: tuple[str, ...]
    paths: tuple[str, ...] = ("",)
    is_: tuple[str, ...] = ("missing", "extra", "changed")
    cases: tuple[str, ...] = ("*",)
    but: tuple[str, ...] = ()
    modes: tuple[str, ...] = ("*",)
    theirs: str = "*"
    ours: str = "*"

    def explains(self, difference: Difference, case: str, mode: str) -> bool:
        """Whether that difference is this deviation."""
        return (
            difference.is_ in self.is_
            and matches(self.cases, case)
            and not matches(self.but, case)
            and matches(self.modes, mode)
            and matches(self.objects, difference.object)
            and matches(self.paths, difference.path)
            and (difference.is_ == "extra" or matches((self.theirs,), text(difference.theirs)))
            and (difference.is_ == "missing" or matches((self.ours,), text(difference.ours)))
        )


@cache
def rows() -> tuple[Row, ...]:
    return msgspec.yaml.decode(_FILE.read_bytes(), type=tuple[Row, ...])


def explanation(difference: Difference, case: str, mode: str, rows: Sequence[Row]) -> Row | None:
    """The row that explains a difference; None if it is unintended."""
    return next((row for row in rows if row.explains(difference, case, mode)), None)


def matches(patterns: Iterable[str], value: str) -> bool:
    """Whether a text matches one of the patterns, in which `*` stands for any text."""
    return any(_pattern(each).fullmatch(value) for each in patterns)


@cache
def _pattern(glob: str) -> re.Pattern[str]:
    return re.compile(".*".join(map(re.escape, glob.split("*"))), re.DOTALL)
