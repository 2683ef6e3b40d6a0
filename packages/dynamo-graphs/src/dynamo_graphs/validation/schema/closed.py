"""A structural schema as a JSON schema that refuses what the API server refuses.

The API server treats unknown fields as errors, knows the range of a number from its format, and allows two
types where `x-kubernetes-int-or-string` is set. A JSON schema must spell that out.
"""

from kube_runtime.crd.embedded import embedded
from kube_runtime.kind import Object

_COPIED = (
    "type",
    "required",
    "enum",
    "minimum",
    "minLength",
    "maxLength",
    "maxItems",
    "maxProperties",
    "pattern",
)
_RANGES = {"int32": 1 << 31, "int64": 1 << 63}


def closed(schema: Object, notes: tuple[str, ...] = ()) -> Object:
    """A structural schema as a JSON schema that allows no field which is not listed.

    `notes` are further keywords to copy, such as `description`, which validation does not need.
    """
    copied = (*_COPIED, *notes)
    result: Object = {keyword: schema[keyword] for keyword in copied if keyword in schema}
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    if edge := _RANGES.get(schema.get("format", "")):
        result["minimum"] = max(-edge, result.get("minimum", -edge))
        result["maximum"] = edge - 1
    elif schema.get("format") == "date-time":
        result["format"] = "date-time"
    if schema.get("x-kubernetes-embedded-resource"):
        result["properties"] = {"metadata": closed(embedded("ObjectMeta"), notes)}
    if "properties" in schema:
        fields = schema["properties"]
        result["properties"] = {name: closed(field, notes) for name, field in fields.items()}
        result["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if "additionalProperties" in schema:
        result["additionalProperties"] = closed(schema["additionalProperties"], notes)
    if "items" in schema:
        result["items"] = closed(schema["items"], notes)
    return result
