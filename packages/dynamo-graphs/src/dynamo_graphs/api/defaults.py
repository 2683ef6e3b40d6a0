"""The document as the API server validates it: without nulls, with all defaults."""

from functools import cache
from typing import Any

from dynamo_graphs.api.crd import RESOURCES
from kube_runtime.crd.definition import resource_schema
from kube_runtime.crd.embedded import embedded
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource

KINDS = {resource.KIND.name: resource for resource in RESOURCES}
"""Every kind that we define, by name."""


def defaulted(document: Object) -> Object:
    """The document as the API server stores it: nulls dropped, schema defaults filled in.

    A document of another kind comes back as it is.
    """
    resource = resource_of(document)
    if resource is None:
        return document
    return filled(document, whole_schema(resource))


def filled(document: Object, schema: Object) -> Object:
    """A document with nulls dropped and defaults filled in, wherever the schema describes it."""
    stored: Object = _filled(document, schema)
    return stored


def resource_of(document: Object) -> type[Resource] | None:
    """The kind of a document, if it is one that we define."""
    kind = document.get("kind")
    return KINDS.get(kind) if isinstance(kind, str) else None


@cache
def whole_schema(resource: type[Resource]) -> Object:
    """The structural schema of a kind, with the metadata spelled out."""
    schema = resource_schema(resource)
    return {**schema, "properties": {**schema["properties"], "metadata": embedded("ObjectMeta")}}


def _filled(value: object, schema: Object) -> Any:
    """A value with nulls dropped and defaults filled in, wherever the schema describes it."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [_filled(each, items) for each in value]
    if isinstance(value, float) and value.is_integer() and schema.get("type") == "integer":
        return int(value)  # the API server reads 2.0 as the integer 2
    if not isinstance(value, dict):
        return value
    properties = schema.get("properties", {})
    result: Object = {}
    for name, each in value.items():
        inner = properties.get(name, schema.get("additionalProperties"))
        if inner is None:
            result[name] = each
        elif each is not None:
            result[name] = _filled(each, inner)
    for name, inner in properties.items():
        if "default" in inner:
            result.setdefault(name, inner["default"])
    return result
