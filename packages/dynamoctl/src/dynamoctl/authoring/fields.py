"""`dynamoctl explain` and `dynamoctl schema`: the fields of our kinds, from the declarations of the CRDs."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

from cyclopts import CycloptsError
from rich.console import RenderableType
from rich.text import Text

from dynamo_graphs.api.crd import whole_schema
from dynamo_graphs.validation.schema import closed
from dynamo_graphs.validation.syntax import nearest
from dynamoctl.authoring.crds import kinds_by_name, selected
from dynamoctl.screen import Styled, show, show_json, table
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource

_DRAFT = "http://json-schema.org/draft-07/schema#"
"""The newest draft that common YAML language servers support."""

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
    """A field: its path in an object, its schema, and whether it is required."""

    path: str
    schema: Object
    is_required: bool


def print_field(path: str, output: str) -> None:
    """Print a field and the fields below it; `path` may begin with a kind (default: the graph).

    Raises: CycloptsError if there is no such field.
    """
    resource, field = field_of(path)
    if output == "json":
        show_json(
            {"kind": resource.KIND.name, "path": field.path, "schema": closed(field.schema, _NOTES)}
        )
    else:
        show(*explained(resource, field))


def print_schema(kinds: Sequence[str]) -> None:
    """Print a JSON schema of these kinds, or of all kinds, for editors.

    Raises: CycloptsError for an unknown kind.
    """
    show_json(editor_schema(selected(kinds)))


def editor_schema(resources: Sequence[type[Resource]]) -> Object:
    """A JSON schema of these kinds, with descriptions and defaults."""
    schemas = [_of_kind(resource) for resource in resources]
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
    names = [resource.KIND.name for resource in resources]
    return {
        "$schema": _DRAFT,
        "type": "object",
        "required": ["apiVersion", "kind"],
        "properties": {"apiVersion": {"const": head}, "kind": {"enum": names}},
        "allOf": cases,
    }


def field_of(path: str) -> tuple[type[Resource], FieldSchema]:
    """The field at a path such as `dgd.spec.services.resources`; keys of maps may be left out.

    Raises: CycloptsError.
    """
    parts = [part for part in path.split(".") if part]
    resource = selected(())[0]
    if parts and not parts[0].islower():
        kinds = {type_.KIND.name: type_ for type_ in selected(())}
        resource = kinds.get(parts[0], resource)
        parts = parts[1:] if parts[0] in kinds else parts
    elif parts and parts[0] in (by_name := kinds_by_name(selected(()))):
        resource = by_name[parts.pop(0)]
    schema = whole_schema(resource)
    if parts and parts[0] not in schema["properties"]:
        parts.insert(0, "spec")  # may be left out
    field = FieldSchema("", schema, is_required=True)
    for part, following in zip_longest(parts, parts[1:], fillvalue=""):
        field = _below(field, part, following)
    return resource, field


def explained(resource: type[Resource], field: FieldSchema) -> list[RenderableType]:
    """The parts of a screen: the field, its rules, and a row for each field below it."""
    rows = [
        ("KIND", resource.KIND.name),
        ("FIELD", field.path or "(the object)"),
        ("TYPE", type_of(field.schema)),
    ]
    if field.path:
        rows.append(("REQUIRED", "yes" if field.is_required else "no"))
    if "default" in field.schema:
        rows.append(("DEFAULT", str(field.schema["default"])))
    inner = _inner(field.schema)
    rows += [(rule.upper(), _shown(field.schema[rule])) for rule in _RULES if rule in field.schema]
    parts: list[RenderableType] = [table((), [(Styled(name, "bold"), text) for name, text in rows])]
    if text := field.schema.get("description"):
        parts += ["", Text(text)]
    required = inner.get("required", ())
    fields = [
        (Styled(name, "bold"), type_of(schema) + (" *" if name in required else ""), _first(schema))
        for name, schema in inner.get("properties", {}).items()
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


def _below(field: FieldSchema, part: str, following: str) -> FieldSchema:
    if "additionalProperties" in field.schema:
        entry = field.schema["additionalProperties"]
        field = FieldSchema(f"{field.path}.<name>", entry, is_required=False)
        fields = entry.get("properties", {})
        if part.startswith("<") or not fields or (part not in fields and following in fields):
            return field  # a key that the user chose
    elif "items" in field.schema:
        field = FieldSchema(f"{field.path}[]", field.schema["items"], is_required=False)
    fields = field.schema.get("properties", {})
    name = part.removesuffix("[]")
    if name not in fields:
        hint = nearest(name, fields) or _listed(fields)
        raise CycloptsError(f'unknown field "{name}" of {field.path or "the object"}{hint}')
    is_required = name in field.schema.get("required", ())
    return FieldSchema(f"{field.path}.{name}".lstrip("."), fields[name], is_required)


def _inner(schema: Object) -> Object:
    """The schema of the entries of a map or list, else the schema itself."""
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


def _listed(fields: Object) -> str:
    return f" (fields: {', '.join(sorted(fields))})" if fields else " (it has no fields)"


def _shown(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)


def _first(schema: Object) -> str:
    """The first sentence of a description."""
    return str(schema.get("description", "")).partition(". ")[0].rstrip(".")
