"""What becomes of an API server's OpenAPI document on the way into our schemas."""

import runpy
from pathlib import Path
from typing import Any

import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[4] / "tools/pod_schema.py"))


def field(schema: Any, name: str = "f", *, is_required: bool = False) -> Any:
    return TOOL["field"](name, schema, is_required=is_required)


def reference(name: str) -> Any:
    return {"$ref": f"#/components/schemas/io.k8s.api.core.v1.{name}"}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"type": "string", "description": "text", "enum": ["a"]}, {"type": "string"}),
        ({"description": "text", "default": {}, "allOf": [reference("Probe")]}, {"$ref": "Probe"}),
        (
            {"type": "array", "items": {"default": {}, "allOf": [reference("Container")]}},
            {"type": "array", "items": {"$ref": "Container"}},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "string", "default": ""}},
            {"type": "object", "additionalProperties": {"type": "string"}},
        ),
        ({"type": "object"}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
        (
            {"type": "integer", "format": "int32", "x-kubernetes-patch-strategy": "merge"},
            {"type": "integer", "format": "int32"},
        ),
    ],
)
def test_only_what_a_structural_schema_may_have_is_kept(given: Any, expected: Any) -> None:
    assert expected == field(given)


def test_a_default_is_kept_where_the_field_may_be_left_out() -> None:
    assert {"type": "string", "default": ""} == field({"type": "string", "default": ""})


def test_the_zero_default_of_a_required_field_is_left_out() -> None:
    zero = {"type": "integer", "default": 0}
    assert {"type": "integer"} == field(zero, is_required=True)


def test_embedded_metadata_keeps_labels_and_annotations() -> None:
    metadata = field({"default": {}, "allOf": [reference("ObjectMeta")]}, "metadata")
    assert ["annotations", "labels"] == list(metadata["properties"])
