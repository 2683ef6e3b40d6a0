"""Typed values of a section of the profiler's configuration; problems are collected with their paths.

A key may be spelled in camelCase or in snake_case; given both ways, the first counts, as in Dynamo's
profiler. All problems are reported at once: a value that cannot be used is read as its default, and no
result is used once there is a problem.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

from kube_runtime.kind import Fields

D = TypeVar("D", float, None)
T = TypeVar("T")
_HUMP = re.compile(r"(?<!^)([A-Z])")


@dataclass(frozen=True, slots=True)
class Section:
    """One mapping, where it stands, and what is wrong in it and in the sections inside of it."""

    fields: Fields
    path: str = ""
    mistakes: list[str] = field(default_factory=list)

    def section(self, name: str) -> "Section":
        """The mapping of that name; empty if there is none."""
        value = self._value(name)
        if value is not None and not isinstance(value, Mapping):
            self._refuse(name, "must be a mapping")
            return Section({}, self._path(name))  # its missing entries are not reported again
        return Section(value or {}, self._path(name), self.mistakes)

    def has(self, name: str) -> bool:
        """Whether it says something there, be it an empty mapping."""
        return self._value(name) is not None

    def number(self, name: str, default: D, *, most: float, over: float = 0) -> float | D:
        """A number greater than `over` and not above `most`."""
        value = self._value(name)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, int | float) or math.isnan(value):
            self._refuse(name, "must be a number")
        elif not over < value <= most:
            self._refuse(name, f"must be above {over:g} and at most {most:g}")
        else:
            return float(value)
        return default

    def whole(self, name: str, default: int, *, least: int, most: int) -> int:
        """A whole number in these bounds."""
        value = self._value(name)
        if value is None:
            return default
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        if not is_number or value != value // 1:
            self._refuse(name, "must be a whole number")
        elif not least <= value <= most:
            self._refuse(name, f"must be from {least} to {most}")
        else:
            return int(value)
        return default

    def text(self, name: str, default: str = "") -> str:
        """A string."""
        return self._of_type(str, name, default, "must be a string")

    def word(
        self, name: str, fits: Callable[[str], bool], rule: str, default: str | None = None
    ) -> str:
        """A string that fits; it has to be given unless it has a default. `rule` says what fits."""
        value = self._value(name)
        if value is None and default is not None:
            return default
        if isinstance(value, str) and fits(value):
            return value
        self._refuse(name, rule)
        return ""

    def flag(self, name: str) -> bool:
        """True or false; false if not set."""
        return self._of_type(bool, name, default=False, rule="must be true or false")

    def note(self, text: str) -> None:
        """Add a mistake that is more than one value's."""
        self.mistakes.append(text)

    def _of_type(self, type_: type[T], name: str, default: T, rule: str) -> T:
        value = self._value(name)
        if isinstance(value, type_):
            return value
        if value is not None:
            self._refuse(name, rule)
        return default

    def _value(self, name: str) -> Any:
        value = self.fields.get(name)
        return self.fields.get(_HUMP.sub(r"_\1", name).lower()) if value is None else value

    def _path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _refuse(self, name: str, rule: str) -> None:
        value = self._value(name)
        self.note(f"{self._path(name)} {rule}, and is {('' if value is None else value)!r:.80}")
