"""How a kind is declared: the text and rules of its fields, its columns and subresources.

The declarations sit on the structs, once, and feed the CustomResourceDefinition, the offline check
and the reference pages. They are not enforced when an object is decoded: the API server has done
that, and an object stored under an older schema must stay readable.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from kube_runtime.kind import Object

NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
PATTERN = rf"^(\+|-)?{NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{NUMBER}))?$"
"""Source: the schema that Kubernetes' own CustomResourceDefinitions give to a quantity."""
INT_OR_PERCENT_PATTERN = r"^([0-9]+|(100|[0-9]{1,2})%)$"


@dataclass(frozen=True, slots=True)
class Rule:
    """A validation rule over several fields of one object.

    `expression` is CEL for the API server and guards every optional field with `has()`; `holds`
    says the same in Python for the offline check. A cluster test holds the two together.
    """

    expression: str
    message: str
    holds: Callable[[Object], bool]


@dataclass(frozen=True, slots=True)
class Transition:
    """A rule about what may become of an object, which the API server checks when it is changed.

    `expression` is CEL over `self` and `oldSelf`; `path` is the field that is blamed, such as `.source`.
    The webhooks have the same rules in Python; this holds without them.
    """

    expression: str
    message: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class Field:
    """Text and rules of one field, for `Annotated[type, Field(...)]`.

    `embeds` names a Kubernetes type whose schema the field has (`embedded.py`); `shape` is a struct
    that only describes a field which is kept as plain JSON. The API server fills in `default`.
    `required` None means: required if the struct gives no default.
    """

    text: str
    minimum: int | None = None
    min_length: int | None = None
    max_length: int | None = None
    max_items: int | None = None
    max_properties: int | None = None
    pattern: str | None = None
    format: Literal["int32", "int64", "date-time"] | None = None
    options: tuple[str, ...] = ()
    default: Any = msgspec.UNSET
    required: bool | None = None
    embeds: str = ""
    shape: type[msgspec.Struct] | None = None
    free_form: bool = False
    embedded_resource: bool = False


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    path: str
    type: Literal["string", "integer", "date"] = "string"
    priority: int = 0
    """1 puts the column into `-o wide` only."""


AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True)
class Scale:
    """The fields behind the scale subresource."""

    spec_replicas: str
    status_replicas: str
    selector: str


@dataclass(frozen=True, slots=True)
class Definition:
    """What a kind's CustomResourceDefinition says besides the schema."""

    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = (AGE,)
    status: bool = True
    scale: Scale | None = None


Rules = tuple[Rule, ...]
"""Type of the class attribute `RULES` of a struct."""

Transitions = tuple[Transition, ...]
"""Type of the class attribute `TRANSITIONS` of a struct."""


def immutable(field: str, shown: str) -> Transition:
    """The rule that a text, which may be absent, stays as it was when the object was created."""
    now, before = (f"(has({of}.{field}) ? {of}.{field} : '')" for of in ("self", "oldSelf"))
    message = f"{shown} is immutable and cannot be changed after creation"
    return Transition(f"{now} == {before}", message, f".{field}")


@dataclass(frozen=True, slots=True)
class IntOrText:
    """Marks a type as an integer or text, such as `8Gi`, `25%` or `30m`: its name, and the text's pattern."""

    name: str
    pattern: str = ""


Quantity: TypeAlias = Annotated[int | str, IntOrText("quantity", PATTERN)]
IntOrPercent: TypeAlias = Annotated[
    int | str, IntOrText("integer or percentage", INT_OR_PERCENT_PATTERN)
]
Duration: TypeAlias = Annotated[int | str, IntOrText("duration")]
