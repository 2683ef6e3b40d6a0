"""Conversion knows every field of both schemas, so that none of them is lost unnoticed."""

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
NOT_IN_THE_SCHEMA = {
    "v1alpha1": set[str](),
    "v1beta1": {
        *("spec.components[].disruptionBudget", "spec.disruptionBudget"),
        *("spec.progressDeadlineSeconds", "spec.replicas"),
        *("status.backendFramework", "status.gpus", "status.progress", "status.readyServices"),
        *(
            "status.replicas",
            "status.selector",
            "status.rollingUpdate.fromHash",
            "status.rollingUpdate.toHash",
        ),
        *(
            f"status.{of}.{field}"
            for of in ("component", "components{}")
            for field in ("blockedPods", "message", "reason")
        ),
        *("status.acceptedSpec", "status.additionalResources", "status.completionTime", "status.startTime"),
        *("status.message", "status.conditions", "status.desiredReplicas", "status.observedGeneration"),
    },
}
"""Fields that conversion carries, and the API server drops: those of this operator alone, in v1beta1."""


TYPES: dict[type, str] = {
    shapes.Text: "string",
    shapes.Flag: "boolean",
    shapes.Integer: "integer",
    shapes.Number: "number",
}


def differing(schema: Object, shape: Shape, path: str = "") -> Iterator[tuple[str, str]]:
    """Where both differ: a field is `unknown` to conversion, `not in the schema`, or of another `type`."""
    match shape:
        case shapes.Struct(fields, is_open=is_open):
            properties = schema.get("properties", {})
            for name in sorted({*properties, *fields}):
                inner = f"{path}.{name}".lstrip(".")
                if name not in fields:
                    yield from () if is_open else [("unknown", inner)]
                elif name not in properties:
                    yield "not in the schema", inner
                else:
                    yield from differing(properties[name], fields[name], inner)
        case shapes.ListOf(item):
            yield from differing(schema.get("items", {}), item, f"{path}[]")
        case shapes.MapOf(value):
            yield from differing(schema.get("additionalProperties", {}), value, f"{path}{{}}")
        case _:
            types = {
                shapes.Text: "string",
                shapes.Flag: "boolean",
                shapes.Integer: "integer",
                shapes.Number: "number",
            }
            expected = types.get(type(shape))
            if expected is not None and schema.get("type") != expected:
                yield "type", path


def differences_of(resource: type[Resource]) -> list[tuple[str, str]]:
    schema = resource_schema(resource)["properties"]
    shape = shape_of(resource.KIND.version, NAMES[resource.KIND.name])
    assert isinstance(shape, shapes.Struct)
    return [
        difference
        for part in ("spec", "status")
        for difference in differing(schema[part], shape.fields[part], part)
    ]


@pytest.mark.parametrize("resource", CONVERTED)
def test_conversion_knows_every_field_with_its_type(resource: type[Resource]) -> None:
    carried = {("not in the schema", path) for path in NOT_IN_THE_SCHEMA[resource.KIND.version]}
    assert set() == {*differences_of(resource)} - carried


def test_what_the_api_server_drops_is_listed() -> None:
    dropped = {path for resource in CONVERTED for _, path in differences_of(resource)}
    assert NOT_IN_THE_SCHEMA["v1beta1"] == dropped
