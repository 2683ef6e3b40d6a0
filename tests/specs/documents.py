"""Documents drawn from the schema of our kinds: of the right types, and odd in every other way.

Few such documents are valid. So the odd values are those that mean something somewhere, and a service
mostly gets an image, without which nothing is rendered.
"""

from collections.abc import Callable
from random import Random
from typing import Any

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.schema import resource_schema
from kube_runtime.types.meta import Object, Resource

TEXTS = (
    *("", " ", "a", "A.b", "a" * 70, "é", "\x00", "\n", "-", "a b", "${X}", "'\"'", "/", "/x", "a:b"),
    *("1e400", "1e999999999", "1e1000000000000", "5Gi", "0", "-1", "25%", "true", "null", "{}", "[]"),
    *('{"a":1}', '{"a":{"ServiceArgs":{"Workers":2,"Resources":{"cpu":1}}}}', "9" * 5000),
    *("main", "system", "http", "shared-memory", "example.com", "x.y/z", "nvcr.io/a/b:c"),
    *("python3", "python3 -m dynamo.vllm", "vllm", "DYN_DEPLOYMENT_CONFIG"),
    *("worker", "frontend", "planner", "prefill", "decode", "epp"),
)
TYPES = ("", "x", "worker", "frontend", "planner", "prefill", "decode", "epp")
NUMBERS = (0, 1, 2, -1, 65535, 65536, 2**31 - 1, 2**31, 2**63 - 1, -(2**63))
NAMES = ("a", "x.y", "a" * 60, "a.b." + "c" * 200)
SERVICES = ("a", "A", "frontend", "a.b", "x" * 70, "a-d")
_SHALLOW = 6
"""Above this depth about four fields of a map are set, below it fewer, so that documents end."""


def odd_document(kind: type[Resource], dice: Random) -> Object:
    """A document of that kind."""
    schema = resource_schema(kind)["properties"]["spec"]
    spec = _value(schema, dice)
    if kind is DynamoGraphDeployment:
        one = schema["properties"]["services"]["additionalProperties"]
        keys = dice.sample(SERVICES, dice.choice((1, 1, 2)))
        spec["services"] = {key: _with_image(_value(one, dice, 2), dice) for key in keys}
    elif kind is DynamoComponentDeployment:
        spec = _with_image(spec, dice)
    return {
        "apiVersion": kind.KIND.api_version,
        "kind": kind.KIND.name,
        "metadata": {"name": dice.choice(NAMES), "namespace": "n"},
        "spec": spec,
    }


def _with_image(spec: Object, dice: Random) -> Object:
    if dice.random() < 0.8:
        pod = spec.setdefault("extraPodSpec", {})
        pod.setdefault("mainContainer", {})["image"] = "img"
    return spec


def _value(schema: Object, dice: Random, depth: int = 0, name: str = "") -> Any:
    if schema.get("x-kubernetes-int-or-string"):
        return dice.choice((*TEXTS, *NUMBERS))
    if "enum" in schema and dice.random() < 0.9:
        return dice.choice(schema["enum"])
    items = schema.get("items", {})
    simple: dict[str, Callable[[], Any]] = {
        "string": lambda: dice.choice(TYPES if name == "componentType" else TEXTS),
        "integer": lambda: dice.choice(NUMBERS),
        "number": lambda: dice.choice((0, 1.5, -1, 1e300)),
        "boolean": lambda: dice.random() < 0.5,
        "array": lambda: [_value(items, dice, depth + 1) for _ in range(dice.choice((0, 1, 1, 2)))],
    }
    if draw := simple.get(schema.get("type", "")):
        return draw()
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        keys = [dice.choice(TEXTS[1:]) for _ in range(dice.choice((0, 1, 2)))]
        return {key: _value(values, dice, depth + 1) for key in keys}
    return _fields(schema, dice, depth)


def _fields(schema: Object, dice: Random, depth: int) -> Object:
    properties, required = schema.get("properties", {}), schema.get("required", ())
    chance = min(0.6, (4.0 if depth < _SHALLOW else 1.5) / max(1, len(properties)))
    return {
        name: _value(each, dice, depth + 1, name)
        for name, each in properties.items()
        if name in required or dice.random() < chance
    }
