"""Every field of our kinds that takes a text, a list or a map, and documents in which one of them grows.

The fields come from the schemas, which come from the structs, so a new field is found without a change here.
"""

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from typing import Any

from kube_runtime.types.meta import Object

Path = tuple[str | int, ...]
ANY_KEY = "*"
TEXTS = ("a", "a.", "a/", "- ", "$(A)", '{"a":[')
"""Repeated, they make texts of which a rule or a renderer may try many readings."""
_LETTERS_PER_ITEM = 6
"""A list or map of n/6 entries is compared with a text of n letters."""
_DEPTH = 4
"""Below a field that embeds a Kubernetes type; what is deeper is treated as one of any depth is."""


@dataclass(frozen=True, slots=True)
class Growing:
    """One field, and how it is filled: `fill` returns its value at a size."""

    path: Path
    how: str
    fill: Callable[[int], Any]

    @property
    def name(self) -> str:
        """The field as a message names it."""
        return f"{'.'.join(map(str, self.path))} of {self.how}"


def growing_fields(schema: Object, path: Path = (), depth: int = 0) -> Iterator[Growing]:
    """Everything below a schema that a user can make longer."""
    if path and "description" not in schema:  # of an embedded type of Kubernetes
        depth += 1
    if depth > _DEPTH:
        return
    if _is_text(schema):
        texts = TEXTS if depth <= 1 else TEXTS[2:3]
        yield from (Growing(path, repr(text), _text(text)) for text in texts)
    elif schema.get("type") == "array":
        yield Growing(path, "different items", _items(schema["items"], is_same=False))
        yield Growing(path, "same items", _items(schema["items"], is_same=True))
        yield from growing_fields(schema["items"], (*path, 0), depth)
    elif isinstance(values := schema.get("additionalProperties"), dict):
        yield Growing(path, "many keys", _keys(values))
        yield from growing_fields(values, (*path, ANY_KEY), depth)
    elif properties := schema.get("properties"):
        for name, inner in properties.items():
            yield from growing_fields(inner, (*path, name), depth)
    elif schema.get("x-kubernetes-preserve-unknown-fields"):
        yield from _of_any_form(path)


def grown(document: Object, schema: Object, growing: Growing, size: int) -> Object:
    """A copy of the document in which that field has that size; what leads to it is made where it lacks."""
    copy = deepcopy(document)
    _put(copy, schema, growing.path, growing.fill(size))
    return copy


def _is_text(schema: Object) -> bool:
    is_either = bool(schema.get("x-kubernetes-int-or-string"))
    is_bound = "enum" in schema or schema.get("format") == "date-time"
    return is_either or (schema.get("type") == "string" and not is_bound)


def _text(piece: str) -> Callable[[int], Any]:
    return lambda size: piece * (size // len(piece))


def _items(schema: Object, *, is_same: bool) -> Callable[[int], Any]:
    def fill(size: int) -> Any:
        numbers = range(size // _LETTERS_PER_ITEM)
        return [least(schema, 0 if is_same else number) for number in numbers]

    return fill


def _keys(schema: Object) -> Callable[[int], Any]:
    def fill(size: int) -> Any:
        return {f"key-{number}": least(schema, number) for number in range(size // _LETTERS_PER_ITEM)}

    return fill


def _of_any_form(path: Path) -> Iterator[Growing]:
    numbers: Callable[[int], range] = lambda size: range(size // _LETTERS_PER_ITEM)  # noqa: E731
    yield Growing(path, "a list", lambda size: {"list": list(map(str, numbers(size)))})
    yield Growing(path, "a map", lambda size: {str(each): {"a": "b"} for each in numbers(size)})
    yield Growing(path, "a text", lambda size: {"text": TEXTS[2] * (size // 2)})


def least(schema: Object, number: int = 1) -> Any:
    """The smallest value that the schema takes and that says something; another one for another number."""
    if schema.get("enum"):
        return schema["enum"][0]
    if schema.get("type") == "object":
        wanted = {"name", "image", *schema.get("required", ())}
        properties = schema.get("properties", {})
        return {name: least(properties[name], number) for name in properties if name in wanted}
    if schema.get("format") == "date-time":
        return "2026-01-01T00:00:00Z"
    values = {"string": f"n{number}", "integer": number + 1, "boolean": True, "array": []}
    return values.get(schema.get("type", "integer"), {})


def _put(inside: Any, schema: Object, path: Path, value: Any) -> None:
    step, *rest = path
    if step == ANY_KEY:
        step = next(iter(inside), "key")
    below = _below(schema, path[0])
    if isinstance(step, int) and not inside:
        inside.append(least(below))
    if not rest:
        inside[step] = value
        return
    if not isinstance(step, int) and not inside.get(step):
        inside[step] = least(below)
    _put(inside[step], below, tuple(rest), value)


def _below(schema: Object, step: str | int) -> Object:
    if isinstance(step, int):
        items: Object = schema["items"]
        return items
    found: Object = schema["additionalProperties"] if step == ANY_KEY else schema["properties"][step]
    return found
