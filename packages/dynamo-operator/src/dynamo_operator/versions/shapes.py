"""Shapes of JSON values, and reading a value by its shape.

A value that was read has what the Go API types hold of it: no nulls, no fields that are not declared, and no
zero values where they mean the same as absent ones. Everything that converts relies on that.
"""

import json
from base64 import b64decode
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from dynamo_operator.versions.quantities import is_quantity
from kube_runtime.types.meta import cut

_SHOWN = 60
"""Characters of a refused value in a message."""
NO_QUANTITY = 10**64
"""Numbers from here on are none."""


class ConversionError(ValueError):
    """A value that no conversion reads: `spec.services.W.envs: invalid value 3 (expected a list)`."""

    def __init__(self, problem: str, *steps: str | int) -> None:
        super().__init__(problem)
        self.problem = problem
        self._inner_first = [*reversed(steps)]

    def within(self, *steps: str | int) -> "ConversionError":
        """The same error, as of the value that has this one below these steps."""
        self._inner_first.extend(reversed(steps))
        return self

    @property
    def path(self) -> str:
        """Where the value is, such as `spec.components[2].podTemplate`; "" is the object."""
        steps = (f"[{step}]" if isinstance(step, int) else f".{step}" for step in reversed(self._inner_first))
        return "".join(steps).removeprefix(".")

    def __str__(self) -> str:
        return f"{self.path}: {self.problem}" if self._inner_first else self.problem


def invalid(value: object, expected: str) -> ConversionError:
    """The error of a value of another type."""
    if isinstance(value, dict | list):
        shown = "{…}" if isinstance(value, dict) else "[…]"
    else:
        shown = cut(json.dumps(value, ensure_ascii=False), _SHOWN)
    return ConversionError(f"invalid value {shown} (expected {expected})")


class Shape(Protocol):
    """What a JSON value can be."""

    @property
    def zero(self) -> object:
        """What null in a list or a map stands for."""
        ...

    @property
    def keeps_zero(self) -> bool:
        """Whether a field with a zero value (0, false, an empty text, list, map or object) is not absent."""
        ...

    def read(self, value: object) -> Any:
        """The value without what the shape does not declare. Raises ConversionError."""


@dataclass(frozen=True, slots=True)
class Text:
    """A string."""

    keeps_zero: bool = False
    zero: object = ""

    def read(self, value: object) -> str:
        if isinstance(value, str):
            return value
        raise invalid(value, "a string")


@dataclass(frozen=True, slots=True)
class Base64:
    """Bytes, as base64 text."""

    keeps_zero: bool = False
    zero: object = ""

    def read(self, value: object) -> str:
        try:
            b64decode(TEXT.read(value), validate=True)
        except ValueError:
            raise invalid(value, "base64") from None
        return TEXT.read(value)


@dataclass(frozen=True, slots=True)
class Flag:
    """True or false."""

    keeps_zero: bool = False
    zero: object = False

    def read(self, value: object) -> bool:
        if isinstance(value, bool):
            return value
        raise invalid(value, "true or false")


@dataclass(frozen=True, slots=True)
class Integer:
    """A whole number; 2.0 is read as 2, as the API server does."""

    keeps_zero: bool = False
    bits: int = 32
    zero: object = 0

    def read(self, value: object) -> int:
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        bound = 1 << (self.bits - 1)
        if isinstance(value, int) and not isinstance(value, bool) and -bound <= value < bound:
            return value
        raise invalid(value, f"an integer of {self.bits} bits")


@dataclass(frozen=True, slots=True)
class Number:
    """A number."""

    keeps_zero: bool = False
    zero: object = 0

    def read(self, value: object) -> float:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return value
        raise invalid(value, "a number")


@dataclass(frozen=True, slots=True)
class Quantity:
    """A quantity, kept as it is typed; a number is a quantity, too."""

    keeps_zero: bool = True
    zero: object = "0"

    def read(self, value: object) -> str | int | float:
        if isinstance(value, str) and is_quantity(value):
            return value
        if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < NO_QUANTITY:
            return value
        raise invalid(value, 'a quantity, for example "8Gi"')


@dataclass(frozen=True, slots=True)
class Anything:
    """Any JSON, which is not looked into."""

    keeps_zero: bool = True
    zero: object = None

    def read(self, value: object) -> Any:
        return value


@dataclass(frozen=True, slots=True)
class AnyObject:
    """An object with any fields, which is not looked into."""

    keeps_zero: bool = True
    zero: object = None

    def read(self, value: object) -> dict[str, Any]:
        if isinstance(value, dict):
            return value
        raise invalid(value, "an object")


@dataclass(frozen=True, slots=True)
class ListOf:
    """A list."""

    item: Shape
    keeps_zero: bool = False

    @property
    def zero(self) -> object:
        return []

    def read(self, value: object) -> list[Any]:
        if not isinstance(value, list):
            raise invalid(value, "a list")
        index, items = 0, []
        try:
            for index, item in enumerate(value):  # noqa: B007 the error names it
                items.append(self.item.zero if item is None else self.item.read(item))
        except ConversionError as error:
            raise error.within(index) from None
        return items


@dataclass(frozen=True, slots=True)
class MapOf:
    """An object with names of the user's choice. `keeps_null`: a null is a value of its own."""

    value: Shape
    keeps_zero: bool = False
    keeps_null: bool = False

    @property
    def zero(self) -> object:
        return {}

    def read(self, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise invalid(value, "an object")
        name, entries = "", {}
        try:
            for name, entry in value.items():
                if entry is None:
                    entries[name] = None if self.keeps_null else self.value.zero
                else:
                    entries[name] = self.value.read(entry)
        except ConversionError as error:
            raise error.within(name) from None
        return entries


@dataclass(frozen=True, slots=True)
class Struct:
    """An object with declared fields.

    `is_open`: it may have others, which are kept unless they are an empty text or list. Types of Kubernetes
    are open: only what conversion looks at is declared.
    """

    fields: dict[str, Shape]
    keeps_zero: bool = False
    is_open: bool = False

    @property
    def zero(self) -> object:
        return {}

    def read(self, value: object) -> dict[str, Any]:
        if not isinstance(value, dict):
            raise invalid(value, "an object")
        name, read = "", {}
        try:
            for name, child in value.items():
                if child is None:
                    continue
                shape = self.fields.get(name)
                if shape is not None:
                    kept = shape.read(child)
                    if kept or shape.keeps_zero:
                        read[name] = kept
                elif self.is_open and child not in ("", []):
                    read[name] = child
        except ConversionError as error:
            raise error.within(name) from None
        return read


Fields: TypeAlias = dict[str, Shape]

TEXT = Text()
FLAG = Flag()
INTEGER = Integer()
LONG = Integer(bits=64)
NUMBER = Number()
QUANTITY = Quantity()
ANYTHING = Anything()
ANY_OBJECT = AnyObject()
TEXTS = ListOf(TEXT)
TEXT_MAP = MapOf(TEXT)

# Fields whose zero value is not the same as none, or has to be there.
KEPT_TEXT = Text(keeps_zero=True)
KEPT_FLAG = Flag(keeps_zero=True)
KEPT_INTEGER = Integer(keeps_zero=True)
KEPT_LONG = Integer(bits=64, keeps_zero=True)
KEPT_NUMBER = Number(keeps_zero=True)


def value(**fields: Shape) -> Struct:
    """An object with these fields, which is absent when it is empty."""
    return Struct(fields)


def pointer(**fields: Shape) -> Struct:
    """An object with these fields, whose presence counts also when it is empty."""
    return Struct(fields, keeps_zero=True)


def items(**fields: Shape) -> ListOf:
    """A list of objects with these fields."""
    return ListOf(Struct(fields))
