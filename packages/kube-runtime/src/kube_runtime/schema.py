"""CustomResourceDefinitions from structs, with structural schemas. A running operator does not need them."""

import types
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin

import msgspec

from kube_runtime.crd import (
    PATTERN,
    ConversionWebhook,
    Definition,
    Field,
    IntOrText,
    JsonText,
    Rule,
    Rules,
    ServedVersion,
    Text,
    Transition,
    Transitions,
    definitions,
)
from kube_runtime.types.meta import Condition, Object, Resource, Struct

MAIN_CONTAINER_TEXT = (
    "Container laid over the component's main container; it needs no name. "
    "`kubectl explain pod.spec.containers` documents each field."
)


@cache
def int_or_string(pattern: str = "") -> Object:
    """The schema of an integer or string with that pattern; do not change it."""
    schema: Object = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
    return {**schema, "pattern": pattern} if pattern else schema


# These types come from the API server's own OpenAPI document (`tools/pod_schema.py` writes the data
# file), where one refers to another by name. A CustomResourceDefinition allows no references, so they
# are inlined here; the parts are shared in memory, hence not to be changed.
@cache
def embedded(name: str) -> Object:
    """The schema of a Kubernetes type by its short name, or of our own `ExtraPodSpec`."""
    if name == "ExtraPodSpec":
        main = {**embedded("Container"), "description": MAIN_CONTAINER_TEXT}
        pod = embedded("PodSpec")
        properties = {**pod["properties"], "mainContainer": _without(main, "name")}
        return {**_without(pod, "containers"), "properties": dict(sorted(properties.items()))}
    inlined: Object = _inlined(definitions()[name])
    return inlined


def _without(schema: Object, name: str) -> Object:
    required = [field for field in schema["required"] if field != name]
    rest = {keyword: value for keyword, value in schema.items() if keyword != "required"}
    return {**rest, "required": required} if required else rest


def _inlined(schema: object) -> Any:
    if isinstance(schema, list):
        return [_inlined(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    if isinstance(name := schema.get("$ref"), str):
        return embedded(name)
    if schema.get("quantity") is True:
        return int_or_string(PATTERN)
    if schema.get("x-kubernetes-int-or-string") is True:
        return int_or_string()
    return {keyword: _inlined(value) for keyword, value in schema.items()}


TYPE_PATTERN = (
    r"^([a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*/)?"
    r"(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])$"
)
REASON_PATTERN = r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$"


# For the schema only: conditions are decoded as `kube_runtime.types.meta.Condition`. Lists of conditions
# have no merge key, because stored objects were written without one.
class ConditionSchema(Struct):
    """One statement about an object, and since when it holds."""

    type: Annotated[str, Field("What the statement is about.", max_length=316, pattern=TYPE_PATTERN)]
    status: Annotated[Literal["True", "False", "Unknown"], Field("Whether it is so.")]
    reason: Annotated[
        str, Field("Why, in one word for programs.", min_length=1, max_length=1024, pattern=REASON_PATTERN)
    ]
    message: Annotated[str, Field("Why, in words for people; may be empty.", max_length=32768)]
    last_transition_time: Annotated[str, Field("When `status` last changed.", format="date-time")]
    observed_generation: Annotated[
        int | None, Field("Generation of the spec that the statement is about.", minimum=0, format="int64")
    ] = None


SHAPES: dict[type, type[msgspec.Struct]] = {Condition: ConditionSchema}
"""Structs without declarations, and the struct that declares their schema."""

_KEYWORDS = {
    "minimum": "minimum",
    "maximum": "maximum",
    "min_length": "minLength",
    "max_length": "maxLength",
    "max_items": "maxItems",
    "max_properties": "maxProperties",
    "pattern": "pattern",
    "format": "format",
    "list_type": "x-kubernetes-list-type",
}
_PRESERVE: Object = {"x-kubernetes-preserve-unknown-fields": True}
_SCALARS: dict[object, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}


class Declared(NamedTuple):
    """One declared field of a struct: its name on the wire, type, description and rules."""

    name: str
    type: Any
    field: Field
    required: bool


@cache
def declared(struct: type[msgspec.Struct]) -> tuple[Declared, ...]:
    """The declared fields of a struct, in its order."""
    fields: list[Declared] = []
    for info in msgspec.structs.fields(struct):
        _, marks = unwrapped(info.type)
        field = next((mark for mark in marks if isinstance(mark, Field)), None)
        if field is not None:
            required = info.required if field.required is None else field.required
            type_ = next((mark.type for mark in marks if isinstance(mark, JsonText)), info.type)
            fields.append(Declared(info.encode_name, type_, field, required))
    return tuple(fields)


# msgspec's own JSON schema has references and null unions, which a structural schema must not have.
# An optional field is not required here; the API server drops nulls before validation.
def object_schema(struct: type[msgspec.Struct], *, is_open: bool = False) -> Object:
    """The schema of a struct. An open one preserves unknown fields at every level."""
    members = list(declared(struct))
    schema: Object = {
        "type": "object",
        "properties": {
            member.name: field_schema(member.type, member.field, is_open=is_open)
            for member in sorted(members, key=lambda member: member.name)
        },
    }
    if required := sorted(member.name for member in members if member.required):
        schema["required"] = required
    declarations: tuple[Rule | Transition, ...] = (*rules_of(struct), *transitions_of(struct))
    if declarations:
        schema["x-kubernetes-validations"] = [rule.schema for rule in declarations]
    return {**schema, **_PRESERVE} if is_open else schema


def field_schema(type_: object, field: Field, *, is_open: bool = False) -> Object:
    """The schema of one field, with its description and rules."""
    schema = {**_value_schema(type_, field, is_open=is_open), "description": field.text}
    for attribute, keyword in _KEYWORDS.items():
        if (value := getattr(field, attribute)) is not None:
            schema[keyword] = value
    if field.options:
        schema["enum"] = list(field.options)
    if field.default is not msgspec.UNSET:
        schema["default"] = field.default
    if field.embedded_resource:
        schema["x-kubernetes-embedded-resource"] = True
    if field.list_keys:
        schema |= {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(field.list_keys)}
    if field.rules:
        own = schema.get("x-kubernetes-validations", ())
        schema["x-kubernetes-validations"] = [*own, *(rule.schema for rule in field.rules)]
    return schema


def rules_of(struct: type) -> Rules:
    """The rules over several fields that a struct declares."""
    rules: Rules = getattr(struct, "RULES", ())
    return rules


def transitions_of(struct: type) -> Transitions:
    """The transition rules that a struct declares."""
    transitions: Transitions = getattr(struct, "TRANSITIONS", ())
    return transitions


def summary(struct: type) -> str:
    """The docstring of a struct in one line."""
    return " ".join((struct.__doc__ or "").split())


def _value_schema(type_: object, field: Field, *, is_open: bool) -> Object:
    bare, marks = unwrapped(type_)
    if scalar := _scalar_schema(bare, marks):
        return scalar
    origin, arguments = get_origin(bare), get_args(bare)
    if origin is tuple:
        return {"type": "array", "items": _value_schema(arguments[0], field, is_open=is_open)}
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        struct = SHAPES.get(bare, bare)
        return {"description": summary(struct), **object_schema(struct, is_open=is_open)}
    is_map = origin is dict and get_origin(arguments[1]) is dict
    if not is_map and (outside := _json_schema(field)):
        return outside
    if origin is dict:
        values = _value_schema(arguments[1], field, is_open=is_open)
        return {"type": "object", "additionalProperties": values}
    raise TypeError(f"no schema for {type_}")


def _scalar_schema(bare: object, marks: tuple[object, ...]) -> Object | None:
    if mark := next((mark for mark in marks if isinstance(mark, IntOrText)), None):
        return int_or_string(mark.pattern)
    if text := next((mark for mark in marks if isinstance(mark, Text)), None):
        limits = {"pattern": text.pattern, "minLength": text.min_length, "maxLength": text.max_length}
        return {
            "type": "string",
            **{keyword: value for keyword, value in limits.items() if value is not None},
        }
    if bare is msgspec.Raw:
        return _PRESERVE
    if get_origin(bare) is Literal:
        return {"type": "string", "enum": list(get_args(bare))}
    return {"type": _SCALARS[bare]} if bare in _SCALARS else None


def _json_schema(field: Field) -> Object | None:
    if field.embeds:
        return _with(embedded(field.embeds), field.adds)
    if field.shape:
        return object_schema(field.shape, is_open=field.free_form)
    return {"type": "object", **_PRESERVE} if field.free_form else None


def _with(schema: Object, added: Mapping[str, Any]) -> Object:
    """The schema with keywords added at any depth. Its untouched parts are shared, not copied."""
    merged = dict(schema)
    for keyword, value in added.items():
        inner = merged.get(keyword)
        if isinstance(value, Mapping):
            merged[keyword] = _with(inner if isinstance(inner, dict) else {}, value)
        elif isinstance(value, tuple):  # of rules
            merged[keyword] = [rule.schema for rule in value]
        else:
            merged[keyword] = value
    return merged


def all_rules(struct: type[msgspec.Struct]) -> Iterator[Rule]:
    """The rules of a struct, its fields and the structs below it."""
    yield from rules_of(struct)
    for member in declared(struct):
        yield from member.field.rules
        yield from _added_rules(member.field.adds)
        for type_ in (*_structs(member.type), *((member.field.shape,) if member.field.shape else ())):
            yield from all_rules(type_)


def _added_rules(added: object) -> Iterator[Rule]:
    if isinstance(added, Rule):
        yield added
    elif isinstance(added, Mapping | tuple):
        for part in added.values() if isinstance(added, Mapping) else added:
            yield from _added_rules(part)


def _structs(type_: object) -> Iterator[type[msgspec.Struct]]:
    bare, _ = unwrapped(type_)
    if isinstance(bare, type) and issubclass(bare, msgspec.Struct):
        yield bare
    for argument in get_args(bare):
        yield from _structs(argument)


def unwrapped(type_: Any) -> tuple[object, tuple[object, ...]]:
    """A type without `Annotated` and None, and its annotations."""
    if get_origin(type_) is Annotated:
        bare, marks = unwrapped(get_args(type_)[0])
        return bare, (*type_.__metadata__, *marks)
    if get_origin(type_) in {Union, types.UnionType}:
        members = [member for member in get_args(type_) if member is not types.NoneType]
        if len(members) == 1:
            return unwrapped(members[0])
    return type_, ()


def custom_resource_definition(
    resource: type[Resource],
    annotations: Mapping[str, str] | None = None,
    versions: Sequence[ServedVersion] = (),
    conversion: ConversionWebhook | None = None,
) -> Object:
    """The CRD of a namespaced kind, by default with the one version of `resource`, whose names it has."""
    kind, metadata = resource.KIND, {"name": str(resource.KIND)}
    names = definition_of(resource)
    listed = versions or (ServedVersion(resource, is_stored=True),)
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata | ({"annotations": dict(annotations)} if annotations else {}),
        "spec": {
            "group": kind.group,
            "names": {
                "kind": kind.name,
                "listKind": f"{kind.name}List",
                "plural": kind.plural,
                "singular": kind.name.lower(),
                "shortNames": list(names.short_names),
                **({"categories": list(names.categories)} if names.categories else {}),
            },
            "scope": "Namespaced",
            "versions": [_version(version) for version in listed],
            **({"conversion": conversion.conversion} if conversion else {}),
        },
    }


def definition_of(resource: type[Resource]) -> Definition:
    """The `DEFINITION` of a kind: short names, columns and subresources."""
    definition: Definition = vars(resource).get("DEFINITION", Definition())
    return definition


@cache
def resource_schema(resource: type[Resource]) -> Object:
    """The structural schema of one kind, from `apiVersion` to `status`."""
    schema, version = object_schema(resource), resource.KIND.api_version
    text = f"Group and version of this kind, `{version}`."
    return {
        "description": summary(resource),
        "type": "object",
        "properties": {
            "apiVersion": {"description": text, "type": "string"},
            "kind": {"description": "Kind of the object.", "type": "string"},
            "metadata": {"type": "object"},
            **schema["properties"],
        },
    }


def _version(listed: ServedVersion) -> Object:
    resource = listed.resource
    definition = definition_of(resource)
    deprecation = {"deprecated": True, "deprecationWarning": listed.deprecation} if listed.deprecation else {}
    version: Object = {
        "name": resource.KIND.version,
        "served": listed.is_served,
        "storage": listed.is_stored,
        **deprecation,
        "additionalPrinterColumns": [
            {"name": column.name, "type": column.type, "jsonPath": column.path}
            | ({"priority": column.priority} if column.priority else {})
            for column in definition.columns
        ],
        "schema": {"openAPIV3Schema": resource_schema(resource)},
    }
    if definition.status:
        version["subresources"] = {"status": {}}
    if definition.scale:
        version["subresources"]["scale"] = {
            "specReplicasPath": definition.scale.spec_replicas,
            "statusReplicasPath": definition.scale.status_replicas,
            "labelSelectorPath": definition.scale.selector,
        }
    return version
