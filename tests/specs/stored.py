"""Objects as an API server stores them: drawn from the whole schema of a kind, valid, with its defaults.

Texts are few, so that containers, variables and mounts of different places of an object meet.
"""

import re
from random import Random
from typing import Any

from dynamo_operator.crds import defaulted, whole_schema
from kube_runtime.types.meta import Object, Resource

_TEXTS = (
    *(
        "a",
        "b",
        "x",
        "ä y",
        "main",
        "sidecar-frontend",
        "/a",
        "/b",
        "worker",
        "frontend",
        "prefill",
        "decode",
    ),
    *("1.2.3", "latency", "Ready", "Pending", "1", "1000m", "0.5", "1024Mi", "1Gi", "8", "0", "2.5Gi", "1e3"),
    *("", "a.b", "25%"),
)
_PLACES = ("a", "b", "main", "sidecar-frontend")
"""Names of containers, variables and volumes."""
_PATHS = ("/a", "/b")
_BY_NAME = {
    "name": _PLACES,
    "frontendSidecar": _PLACES,
    "pvcName": _PLACES,
    "mountPath": _PATHS,
    "mountPoint": _PATHS,
    "componentType": ("worker", "frontend", "prefill", "decode", "a"),
    "subComponentType": ("prefill", "decode", "a"),
}
_KEYS = ("a", "B", "example.com/c", "main", "cpu", "memory", "nvidia.com/gpu")
_FREE: tuple[Object, ...] = (
    {},
    {"free": [{"x": 1, "y": [None, ""]}, 2.5]},
    {"sla": {"ttft": 300, "isl": 5}, "deployment": {"modelCache": {"pvcName": "a", "other": 1}}},
    {
        "sla": {"osl": 5, "itl": 0.5, "optimizationType": "latency"},
        "planner": {"a": 1},
        "deployment": {"b": 1},
    },
)
"""What fields of free JSON hold; two of them are profiling configurations of requests."""
_FIELDS = 5
"""About as many fields of an object are set: fewer where all of them are small."""


def stored_object(kind: type[Resource], dice: Random) -> Object:
    """An object of that kind."""
    properties = whole_schema(kind)["properties"]
    parts = ("spec", "status") if dice.random() < 0.7 else ("spec",)
    body = {name: _value(properties[name], dice, name) for name in parts}
    labels = _value({"type": "object", "additionalProperties": {"type": "string"}}, dice, "labels")
    metadata = {"name": dice.choice(("a", "x")), "namespace": "n", "labels": labels, "generation": 3}
    head = {"apiVersion": kind.KIND.api_version, "kind": kind.KIND.name, "metadata": metadata}
    return defaulted({**head, **body})


def _value(schema: Object, dice: Random, name: str) -> Any:
    if "enum" in schema:
        return dice.choice(schema["enum"])
    if schema.get("x-kubernetes-int-or-string") and "pattern" not in schema:  # no quantity: it becomes a text
        return dice.choice((dice.choice((0, 1, 2)), _text(schema, dice, name)))
    match schema.get("type", "string" if "pattern" in schema else None):
        case "string":
            return _text(schema, dice, name)
        case "boolean":
            return dice.random() < 0.5
        case "integer" | "number":
            return _number(schema, dice)
        case "array":
            return _list(schema, dice, name)
        case "object":
            return _object(schema, dice)
        case _:
            return dice.choice((*_FREE, "a", 0, [1]))


def _text(schema: Object, dice: Random, name: str) -> str:
    if schema.get("format") == "date-time":
        return "2026-01-02T03:04:05Z"
    if schema.get("format") == "byte":
        return "YQ=="
    fitting = [text for text in _BY_NAME.get(name, _TEXTS) if _fits(text, schema)]
    return dice.choice(fitting or [text for text in _TEXTS if _fits(text, schema)])


def _fits(text: str, schema: Object) -> bool:
    least = max(schema.get("minLength", 0), int("default" in schema))  # "" means the default
    is_long_enough = least <= len(text) <= schema.get("maxLength", len(text))
    return is_long_enough and re.search(schema.get("pattern", ""), text) is not None


def _number(schema: Object, dice: Random) -> float:
    least, most = schema.get("minimum", 0), schema.get("maximum", 300)
    numbers: tuple[float, ...] = (0, 1, 2, 7, 300, least, *((0.5,) if schema["type"] == "number" else ()))
    return dice.choice([number for number in numbers if least <= number <= most])


def _list(schema: Object, dice: Random, name: str) -> list[Any]:
    drawn = [_value(schema["items"], dice, name) for _ in range(dice.choice((0, 1, 1, 2, 3)))]
    drawn = drawn[: schema.get("maxItems")]
    match schema.get("x-kubernetes-list-type"):
        case "map":
            keys = schema["x-kubernetes-list-map-keys"]
            return [*{tuple(item.get(key) for key in keys): item for item in drawn}.values()]
        case "set":
            return [*dict.fromkeys(drawn)]
        case _:
            return drawn


def _object(schema: Object, dice: Random) -> Object:
    inner = schema.get("additionalProperties")
    if isinstance(inner, dict):
        return {name: _value(inner, dice, name) for name in dice.sample(_KEYS, dice.choice((0, 1, 1, 2)))}
    fields, required = schema.get("properties", {}), schema.get("required", ())
    chance = min(0.6, _FIELDS / max(1, len(fields)))
    result = {
        name: _value(field, dice, name)
        for name, field in fields.items()
        if name in required or dice.random() < chance
    }
    if (
        "mainContainer" in fields and "containers" in result
    ):  # the names of containers that the operator makes are not for others
        made = ("main", "sidecar-frontend")
        result["containers"] = [item for item in result["containers"] if item["name"] not in made]
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        result |= dice.choice(_FREE)
    return result
