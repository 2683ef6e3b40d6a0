"""What the API server makes of a document before it looks at it: no nulls, and all defaults."""

from typing import Any

from kube_runtime.kind import Object


def filled(value: Any, schema: Object) -> Any:
    """A value with nulls dropped and defaults filled in, wherever the schema describes it."""
    if isinstance(value, list):
        items = schema.get("items", {})
        return [filled(each, items) for each in value]
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
            result[name] = filled(each, inner)
    for name, inner in properties.items():
        if "default" in inner:
            result.setdefault(name, inner["default"])
    return result
