"""Typed values of a section of the profiler's configuration; mistakes are collected with their paths.

Keys may be in camelCase or in snake_case; camelCase wins, as in Dynamo's profiler. An invalid value is
recorded and read as its default, so that all mistakes are reported at once.
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
    """One mapping with its path, and the mistakes in it and in its sections."""

    fields: Fields
    path: str = ""
    mistakes: list[str] = field(default_factory=list)

    def section(self, name: str) -> "Section":
        """The section with this name; empty if absent."""
        value = self._value(name)
        if value is not None and not isinstance(value, Mapping):
            self._refuse(name, "must be a mapping")
            return Section({}, self._path(name))  # its missing entries are not reported again
        return Section(value or {}, self._path(name), self.mistakes)

    def has(self, name: str) -> bool:
        """Whether the key is set, if only to an empty mapping."""
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
        """A whole number within these bounds."""
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
        """A string for which `fits` is true, required unless it has a default. `rule` describes what fits."""
        value = self._value(name)
        if value is None and default is not None:
            return default
        if isinstance(value, str) and fits(value):
            return value
        self._refuse(name, rule)
        return ""

    def flag(self, name: str) -> bool:
        """A boolean, false by default."""
        return self._of_type(bool, name, default=False, rule="must be true or false")

    def add_mistake(self, text: str) -> None:
        """Record a mistake."""
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
        self.add_mistake(
            f"{self._path(name)} {rule}, and is {('' if value is None else value)!r:.80}"
        )
