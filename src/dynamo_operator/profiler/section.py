"""Typed values of a section of the profiler's configuration, each refused with its path if it cannot be used.

A key may be spelled in camelCase or in snake_case; given both ways, the first counts, as in
Dynamo's profiler.
"""

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynamo_operator.profiler.refusal import Refusal

_HUMP = re.compile(r"(?<!^)([A-Z])")


@dataclass(frozen=True, slots=True)
class Section:
    """One mapping, and where it stands."""

    fields: Mapping[str, Any]
    path: str = ""

    def section(self, name: str) -> "Section":
        """The mapping of that name; empty if there is none."""
        found = self._value(name)
        if found is not None and not isinstance(found, Mapping):
            raise self._refusal(name, "must be a mapping")
        return Section(found or {}, self._path(name))

    def has(self, name: str) -> bool:
        """Whether it says something there, be it an empty mapping."""
        return self._value(name) is not None

    def number(self, name: str, default: float, *, most: float, over: float = 0) -> float:
        """A number greater than `over` and not above `most`."""
        found = self._value(name)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int | float) or math.isnan(found):
            raise self._refusal(name, "must be a number")
        if not over < found <= most:
            raise self._refusal(name, f"must be above {over:g} and at most {most:g}")
        return float(found)

    def whole(self, name: str, default: int, *, least: int, most: int) -> int:
        """A whole number in these bounds."""
        found = self._value(name)
        if found is None:
            return default
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if not is_number or found != found // 1:
            raise self._refusal(name, "must be a whole number")
        if not least <= found <= most:
            raise self._refusal(name, f"must be from {least} to {most}")
        return int(found)

    def text(self, name: str, default: str = "") -> str:
        """A string."""
        found = self._value(name)
        if found is None:
            return default
        if not isinstance(found, str):
            raise self._refusal(name, "must be a string")
        return found

    def flag(self, name: str) -> bool:
        """True or false; false if nothing is said."""
        found = self._value(name)
        if found is not None and not isinstance(found, bool):
            raise self._refusal(name, "must be true or false")
        return bool(found)

    def _value(self, name: str) -> Any:
        found = self.fields.get(name)
        return self.fields.get(_HUMP.sub(r"_\1", name).lower()) if found is None else found

    def _path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _refusal(self, name: str, rule: str) -> Refusal:
        return Refusal(f"{self._path(name)} {rule}, and is {self._value(name)!r:.80}")
