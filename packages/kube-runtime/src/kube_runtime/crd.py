"""What a struct declares for its CRD, which `kube_runtime.schema` writes: fields, rules, columns."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated, Any, Final, Literal, TypeAlias

import msgspec

import kube_runtime as kube
from kube_runtime.types.meta import Object, Resource, from_json

NUMBER = r"(([0-9]+(\.[0-9]*)?)|(\.[0-9]+))"
PATTERN = rf"^(\+|-)?{NUMBER}(([KMGTPE]i)|[numkMGTPE]|([eE](\+|-)?{NUMBER}))?$"
"""Source: the schema of quantities in CRDs of Kubernetes."""
INT_OR_PERCENT_PATTERN = r"^([0-9]+|(100|[0-9]{1,2})%)$"


@dataclass(frozen=True, slots=True)
class Rule:
    """A validation rule over a value, such as several fields of one object.

    `expression` is CEL for the API server and guards every optional field with `has()`; `holds` is the same
    rule in Python for offline checks. A test on a real API server compares the two.
    """

    expression: str
    message: str
    holds: Callable[[Any], bool]

    @property
    def schema(self) -> Object:
        """The rule as an entry of `x-kubernetes-validations`."""
        return {"rule": self.expression, "message": self.message}


@dataclass(frozen=True, slots=True)
class Transition:
    """A transition rule, which the API server checks when an object is changed.

    `expression` is CEL over `self` and `oldSelf`; `path` is the field to report, such as `.source`. Webhooks
    may have the same rule in Python; this one holds without them. With `on_create` the rule is also checked
    when the value is new, and `oldSelf` is optional; this requires Kubernetes 1.30.
    """

    expression: str
    message: str
    path: str = ""
    on_create: bool = False

    @property
    def schema(self) -> Object:
        """The rule as an entry of `x-kubernetes-validations`."""
        place = {"fieldPath": self.path} if self.path else {}
        old = {"optionalOldSelf": True} if self.on_create else {}
        rule = {"rule": self.expression, "message": self.message}
        return {**rule, **place, **old, "reason": "FieldValueForbidden"}


# The CRD, offline checks and reference pages come from these declarations. Decoding does not
# enforce them: the API server has validated the object, and one that was stored under an older
# schema must stay readable.
@dataclass(frozen=True, slots=True)
class Field:
    """Description and rules of one field, for `Annotated[type, Field(...)]`.

    `embeds` names the Kubernetes type whose schema the field has, to which `adds` adds keywords at any depth;
    `shape` is a struct with the schema of a field that is decoded as plain JSON. The API server fills in
    `default`. By default a field is `required` if the struct has no default for it. `list_keys` identify the
    entries of a list; a `list_type` of `set` or `atomic` needs none.
    """

    text: str
    minimum: int | None = None
    maximum: int | None = None
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
    adds: Mapping[str, Any] = field(default_factory=dict)
    shape: type[msgspec.Struct] | None = None
    free_form: bool = False
    embedded_resource: bool = False
    list_type: Literal["atomic", "set"] | None = None
    list_keys: tuple[str, ...] = ()
    rules: "Rules" = ()


@dataclass(frozen=True, slots=True)
class Text:
    """Marks a string with a pattern and limits, for entries of lists and types that several fields share."""

    pattern: str | None = None
    min_length: int | None = None
    max_length: int | None = None


@dataclass(frozen=True, slots=True)
class JsonText:
    """Marks a field that stays JSON text when it is decoded: the type of its value."""

    type: Any


@dataclass(frozen=True, slots=True)
class Column:
    """One column of `kubectl get`."""

    name: str
    path: str
    type: Literal["string", "integer", "date"] = "string"
    priority: int = 0
    """1: only with `-o wide`."""


AGE = Column("Age", ".metadata.creationTimestamp", "date")


@dataclass(frozen=True, slots=True)
class Scale:
    """The paths of the scale subresource."""

    spec_replicas: str
    status_replicas: str
    selector: str


@dataclass(frozen=True, slots=True)
class Definition:
    """The parts of a CRD besides the schema."""

    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = (AGE,)
    status: bool = True
    scale: Scale | None = None


@dataclass(frozen=True, slots=True)
class ServedVersion:
    """One version of a kind in its CRD. Clients of one with a `deprecation` get that text as a warning."""

    resource: type[Resource]
    is_stored: bool = False
    is_served: bool = True
    deprecation: str = ""


CONVERSION_PATH: Final = "/convert"
"""The URL path of conversions, of every kind."""


@dataclass(frozen=True, slots=True)
class ConversionWebhook:
    """What converts objects between versions: a Service, or a server at `url` beside the cluster.

    `ca_bundle` is base64, "" if unknown.
    """

    namespace: str = ""
    service: str = ""
    path: str = CONVERSION_PATH
    ca_bundle: str = ""
    url: str = ""

    @property
    def conversion(self) -> Object:
        """The `spec.conversion` of a CRD."""
        service = {"namespace": self.namespace, "name": self.service, "path": self.path}
        bundle = {"caBundle": self.ca_bundle} if self.ca_bundle else {}
        client = {"url": self.url, **bundle} if self.url else {"service": service, **bundle}
        return {
            "strategy": "Webhook",
            "webhook": {"clientConfig": client, "conversionReviewVersions": ["v1"]},
        }


Rules = tuple[Rule, ...]
"""Type of the class attribute `RULES`."""

Transitions = tuple[Transition, ...]
"""Type of the class attribute `TRANSITIONS`."""


def immutable(field: str, shown: str) -> Transition:
    """The transition rule that an optional string never changes."""
    now, before = (f"(has({of}.{field}) ? {of}.{field} : '')" for of in ("self", "oldSelf"))
    message = f"{shown} is immutable and cannot be changed after creation"
    return Transition(f"{now} == {before}", message, f".{field}")


@dataclass(frozen=True, slots=True)
class IntOrText:
    """Marks a type as an integer or string, such as `8Gi`, `25%` or `30m`: its name, and a pattern."""

    name: str
    pattern: str = ""


Quantity: TypeAlias = Annotated[int | str, IntOrText("quantity", PATTERN)]
IntOrPercent: TypeAlias = Annotated[int | str, IntOrText("integer or percentage", INT_OR_PERCENT_PATTERN)]
Duration: TypeAlias = Annotated[int | str, IntOrText("duration")]


_DATA = Path(kube.__file__).parent / "schemas" / "kubernetes.json"
"""A plain path, because importing `importlib.resources` is slow."""


@cache
def definitions() -> dict[str, Object]:
    """The Kubernetes types by their short names, which refer to each other by `$ref`; do not change them."""
    return from_json(_DATA.read_bytes(), dict[str, Object])
