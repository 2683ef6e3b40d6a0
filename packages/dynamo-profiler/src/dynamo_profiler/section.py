"""Typed values of a section of the profiler's configuration; problems are collected with their paths.

A key may be spelled in camelCase or in snake_case; given both ways, the first counts, as in Dynamo's
profiler. All problems are reported at once: a value that cannot be used is read as its default, and no
result is used once there is a problem.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from kube_runtime.kind import Fields

_HUMP = re.compile(r"(?<!^)([A-Z])")


@dataclass(frozen=True, slots=True)
class Section:
    """One mapping, where it stands, and what is wrong in it and in the sections inside of it."""

    fields: Fields
    path: str = ""
    mistakes: list[str] = field(default_factory=list)

    def section(self, name: str) -> "Section":
        """The mapping of that name; empty if there is none."""
        found = self._value(name)
        if found is not None and not isinstance(found, Mapping):
            self._refuse(name, "must be a mapping")
            return Section({}, self._path(name))  # its missing entries are not reported again
        return Section(found or {}, self._path(name), self.mistakes)

    def has(self, name: str) -> bool:
        """Whether it says something there, be it an empty mapping."""
        return self._value(name) is not None

    def number(self, name: str, default: float, *, most: float, over: float = 0) -> float:
        """A number greater than `over` and not above `most`."""
        found = self._value(name)
        if found is None:
            return default
        if isinstance(found, bool) or not isinstance(found, int | float) or math.isnan(found):
            self._refuse(name, "must be a number")
        elif not over < found <= most:
            self._refuse(name, f"must be above {over:g} and at most {most:g}")
        else:
            return float(found)
        return default

    def whole(self, name: str, default: int, *, least: int, most: int) -> int:
        """A whole number in these bounds."""
        found = self._value(name)
        if found is None:
            return default
        is_number = isinstance(found, int | float) and not isinstance(found, bool)
        if not is_number or found != found // 1:
            self._refuse(name, "must be a whole number")
        elif not least <= found <= most:
            self._refuse(name, f"must be from {least} to {most}")
        else:
            return int(found)
        return default

    def text(self, name: str, default: str = "") -> str:
        """A string."""
        found = self._value(name)
        if found is None:
            return default
        if not isinstance(found, str):
            self._refuse(name, "must be a string")
            return default
        return found

    def word(self, name: str, fits: Callable[[str], bool], rule: str) -> str:
        """A string that fits; it has to be given. `rule` says what fits."""
        found = self._value(name)
        if isinstance(found, str) and fits(found):
            return found
        self._refuse(name, rule)
        return ""

    def flag(self, name: str) -> bool:
        """True or false; false if not set."""
        found = self._value(name)
        if found is not None and not isinstance(found, bool):
            self._refuse(name, "must be true or false")
            return False
        return bool(found)

    def note(self, text: str) -> None:
        """Add a mistake that is more than one value's."""
        self.mistakes.append(text)

    def _value(self, name: str) -> Any:
        found = self.fields.get(name)
        return self.fields.get(_HUMP.sub(r"_\1", name).lower()) if found is None else found

    def _path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _refuse(self, name: str, rule: str) -> None:
        found = self._value(name)
        self.note(f"{self._path(name)} {rule}, and is {('' if found is None else found)!r:.80}")
