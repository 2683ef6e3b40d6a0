"""Conversion knows every field of both schemas, and they its own, so that none of them is lost unnoticed."""

from collections.abc import Iterator

import pytest

from dynamo_operator.crds import LATER_RESOURCES, RESOURCES
from dynamo_operator.versions import shapes
from dynamo_operator.versions.shapes import Shape
from kube_runtime.schema import resource_schema
from kube_runtime.types.meta import Object, Resource
from specs.versions import KINDS, shape_of

NAMES = {kind: name for name, kind in KINDS.items()}
CONVERTED = [resource for resource in (*RESOURCES, *LATER_RESOURCES) if resource.KIND.name in NAMES]
TYPES: dict[type, str] = {
    shapes.Text: "string",
    shapes.Flag: "boolean",
    shapes.Integer: "integer",
    shapes.Number: "number",
}


def misread(schema: Object, shape: Shape, path: str) -> Iterator[str]:
    """The fields of a schema that a shape does not have, or has with another type."""
    match shape:
        case shapes.Struct(fields, is_open=is_open):
            for name, inner in schema.get("properties", {}).items():
                if name in fields:
                    yield from misread(inner, fields[name], f"{path}.{name}")
                elif not is_open:
                    yield f"{path}.{name}"
        case shapes.ListOf(item):
            yield from misread(schema["items"], item, f"{path}[]")
        case shapes.MapOf(value):
            yield from misread(schema["additionalProperties"], value, f"{path}{{}}")
        case _:
            if schema.get("type") != TYPES.get(type(shape), schema.get("type")):
                yield path


def unstored(schema: Object, shape: Shape, path: str) -> Iterator[str]:
    """The fields of a shape that a schema drops."""
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return
    match shape:
        case shapes.Struct(fields):
            for name, inner in fields.items():
                if name not in schema.get("properties", {}):
                    yield f"{path}.{name}"
                else:
                    yield from unstored(schema["properties"][name], inner, f"{path}.{name}")
        case shapes.ListOf(item):
            yield from unstored(schema["items"], item, f"{path}[]")
        case shapes.MapOf(value):
            yield from unstored(schema["additionalProperties"], value, f"{path}{{}}")


@pytest.mark.parametrize("resource", CONVERTED)
def test_conversion_knows_every_field_with_its_type(resource: type[Resource]) -> None:
    schema = resource_schema(resource)["properties"]
    shape = shape_of(resource.KIND.version, NAMES[resource.KIND.name])
    assert isinstance(shape, shapes.Struct)
    parts = ("spec", "status")
    assert [] == [path for part in parts for path in misread(schema[part], shape.fields[part], part)]
    assert [] == [path for part in parts for path in unstored(schema[part], shape.fields[part], part)]
