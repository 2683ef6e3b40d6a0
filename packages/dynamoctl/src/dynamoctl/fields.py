"""`dynamoctl explain` and `dynamoctl schema`: the fields of our kinds, from the declarations of the CRDs."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest

from cyclopts import CycloptsError
from rich.console import RenderableType
from rich.text import Text

from dynamo_graphs.api.defaults import whole_schema
from dynamo_graphs.validation.schema.closed import closed
from dynamo_graphs.validation.syntax import nearest
from dynamoctl.crds import selected
from dynamoctl.screen import Styled, show, show_json, table
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource

_DRAFT = "http://json-schema.org/draft-07/schema#"
"""The newest draft that the common language servers for YAML know."""

_NOTES = ("description", "default")
_RULES = (
    "enum",
    "minimum",
    "minLength",
    "maxLength",
    "maxItems",
    "maxProperties",
    "pattern",
    "format",
)


@dataclass(frozen=True, slots=True)
class FieldSchema:
    """A field: its path as it is written in an object, its schema, and whether it must be there."""

    path: str
    schema: Object
    is_required: bool


def print_field(path: str, output: str) -> None:
    """Print what a field means, and the fields below it; `path` begins with a kind, or a graph is meant.

    Raises: CycloptsError if there is no such field.
    """
    resource, found = field_of(path)
    if output == "json":
        show_json(
            {"kind": resource.KIND.name, "path": found.path, "schema": closed(found.schema, _NOTES)}
        )
    else:
        show(*explained(resource, found))


def print_schema(kinds: Sequence[str]) -> None:
    """Print a JSON schema of these kinds, or of all kinds, for editors.

    Raises: CycloptsError for an unknown kind.
    """
    show_json(editor_schema(selected(kinds)))


def editor_schema(resources: Sequence[type[Resource]]) -> Object:
    """A JSON schema that accepts objects of these kinds, with the texts and defaults of their fields."""
    schemas = [_of_kind(each) for each in resources]
    if len(schemas) == 1:
        return {"$schema": _DRAFT, **schemas[0]}
    cases = [
        {
            "if": {"properties": {"kind": {"const": resource.KIND.name}}, "required": ["kind"]},
            "then": schema,
        }
        for resource, schema in zip(resources, schemas, strict=True)
    ]
    head = resources[0].KIND.api_version
    names = [each.KIND.name for each in resources]
    return {
        "$schema": _DRAFT,
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"apiVersion": {"const": head}, "kind": {"enum": names}},
        "allOf": cases,
    }


def field_of(path: str) -> tuple[type[Resource], FieldSchema]:
    """The field at a path such as `dgd.spec.services.resources`; names of map entries may be left out.

    Raises: CycloptsError.
    """
    parts = [each for each in path.split(".") if each]
    resource = selected(())[0]
    if parts and not parts[0].islower():
        kinds = {each.KIND.name: each for each in selected(())}
        resource = kinds.get(parts[0], resource)
        parts = parts[1:] if parts[0] in kinds else parts
    elif parts and parts[0] in _kind_names():
        resource = _kind_names()[parts.pop(0)]
    schema = whole_schema(resource)
    if parts and parts[0] not in schema["properties"]:
        parts.insert(0, "spec")  # what users write
    found = FieldSchema("", schema, is_required=True)
    for part, following in zip_longest(parts, parts[1:], fillvalue=""):
        found = _below(found, part, following)
    return resource, found


def explained(resource: type[Resource], found: FieldSchema) -> list[RenderableType]:
    """The parts of a screen: the field, its rules, and a row for each field below it."""
    rows = [
        ("KIND", resource.KIND.name),
        ("FIELD", found.path or "(the object)"),
        ("TYPE", type_of(found.schema)),
    ]
    if found.path:
        rows.append(("REQUIRED", "yes" if found.is_required else "no"))
    if "default" in found.schema:
        rows.append(("DEFAULT", str(found.schema["default"])))
    inner = _inner(found.schema)
    rows += [(rule.upper(), _shown(found.schema[rule])) for rule in _RULES if rule in found.schema]
    parts: list[RenderableType] = [table((), [(Styled(name, "bold"), text) for name, text in rows])]
    if text := found.schema.get("description"):
        parts += ["", Text(text)]
    required = inner.get("required", ())
    fields = [
        (Styled(name, "bold"), type_of(each) + (" *" if name in required else ""), _first(each))
        for name, each in inner.get("properties", {}).items()
    ]
    if fields:
        parts += ["", table(("FIELD", "TYPE", "DESCRIPTION"), fields)]
        if required:
            parts.append("* is required")
    return parts


def type_of(schema: Object) -> str:
    """The type of a value in words, such as `map of objects` or `list of strings`."""
    if schema.get("x-kubernetes-int-or-string"):
        return "integer or string"
    name = str(schema.get("type", "any value"))
    if "additionalProperties" in schema:
        return f"map of {type_of(schema['additionalProperties'])}s"
    if "items" in schema:
        return f"list of {type_of(schema['items'])}s"
    return name


def _below(found: FieldSchema, part: str, following: str) -> FieldSchema:
    if "additionalProperties" in found.schema:
        entry = found.schema["additionalProperties"]
        found = FieldSchema(f"{found.path}.<name>", entry, is_required=False)
        fields = entry.get("properties", {})
        if part.startswith("<") or not fields or (part not in fields and following in fields):
            return found  # the name that a user gave to the entry
    elif "items" in found.schema:
        found = FieldSchema(f"{found.path}[]", found.schema["items"], is_required=False)
    fields = found.schema.get("properties", {})
    name = part.removesuffix("[]")
    if name not in fields:
        hint = nearest(name, fields) or _listed(fields)
        raise CycloptsError(f"unknown field {name!r} of {found.path or 'the object'}{hint}")
    is_required = name in found.schema.get("required", ())
    return FieldSchema(f"{found.path}.{name}".lstrip("."), fields[name], is_required)


def _inner(schema: Object) -> Object:
    """The schema whose fields a user writes: that of the entries of a map or a list."""
    for keyword in ("additionalProperties", "items"):
        if keyword in schema:
            return _inner(schema[keyword])
    return schema


def _of_kind(resource: type[Resource]) -> Object:
    schema = closed(whole_schema(resource), _NOTES)
    schema["properties"] |= {
        "apiVersion": {"const": resource.KIND.api_version},
        "kind": {"const": resource.KIND.name},
    }
    return {**schema, "required": ["apiVersion", "kind", "metadata"], "additionalProperties": False}


def _kind_names() -> dict[str, type[Resource]]:
    return {name: each for each in selected(()) for name in _names(each)}


def _names(resource: type[Resource]) -> Iterator[str]:
    from kube_runtime.crd.definition import definition_of

    yield from (
        *definition_of(resource).short_names,
        resource.KIND.plural,
        resource.KIND.name.lower(),
    )


def _listed(fields: Object) -> str:
    return f" (fields: {', '.join(sorted(fields))})" if fields else " (it has no fields)"


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _first(schema: Object) -> str:
    """The first sentence of a description."""
    return str(schema.get("description", "")).partition(". ")[0].rstrip(".")
