"""Schema errors in words: what was expected, what was found, and the likely intention."""

from collections.abc import Iterator, Sequence
from typing import Any

from jsonschema_rs import ValidationError, ValidationErrorKind

from dynamo_graphs.api.devices import GPU
from dynamo_graphs.validation import Problem, ProblemKind, dotted
from dynamo_graphs.validation.syntax import LONGEST_SHOWN, Suggestions, shown
from kube_runtime.crd.declare import INT_OR_PERCENT_PATTERN, PATTERN
from kube_runtime.kind import Object

_ARTICLES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "an integer",
    "number": "a number",
    "object": "an object",
    "string": "text",
}
_BOUNDS = {
    "minimum": "must be at least {limit}, got {got}",
    "maximum": "must be at most {limit}, got {got}",
    "minLength": "must have at least {limit} character(s)",
    "maxLength": "must have at most {limit} characters",
    "maxItems": "must have at most {limit} entries, got {size}",
    "maxProperties": "must have at most {limit} entries, got {size}",
}
_PATTERNS = {
    INT_OR_PERCENT_PATTERN: "is neither a number of pods nor a percentage such as 25%",
    PATTERN: "is not a quantity such as 8Gi, 500m or 2",
}


def problems_of(
    error: ValidationError, schema: Object, suggestions: Suggestions
) -> Iterator[Problem]:
    """The problems in one error of the validator. `schema` is the whole schema."""
    where = tuple(error.instance_path)
    match error.kind:
        case ValidationErrorKind.AdditionalProperties(unexpected=names):
            fields = _at(schema, error.schema_path[:-1])
            for name in names:
                hint = _resource_hint(name, fields)
                hint = hint or suggestions.nearest(name, fields["properties"])
                hint = hint or _deeper_field_hint(name, fields)
                message = f"unknown field{hint}"
                yield Problem(dotted((*where, name)), message, ProblemKind.UNKNOWN_FIELD)
        case ValidationErrorKind.Required(property=name):
            message = "this field is required"
            yield Problem(dotted((*where, name)), message, ProblemKind.REQUIRED)
        case ValidationErrorKind.Enum(options=options):
            texts = [str(option) for option in options]
            hint = suggestions.nearest(error.instance, texts)
            message = f"unsupported value {shown(error.instance)} (expected {joined(texts)}{hint})"
            yield Problem(dotted(where), message, ProblemKind.NOT_SUPPORTED)
        case kind:
            yield Problem(dotted(where), _message(kind, error), ProblemKind.INVALID)


def joined(options: Sequence[str], word: str = "or", quote: str = '"') -> str:
    """Options as text, such as `"vllm", "sglang" or "trtllm"`."""
    quoted = [f"{quote}{option}{quote}" for option in options]
    if len(quoted) == 1:
        return quoted[0]
    return f"{', '.join(quoted[:-1])} {word} {quoted[-1]}"


def _message(kind: ValidationErrorKind, error: ValidationError) -> str:
    """The message for a wrong value."""
    got = error.instance
    match kind:
        case ValidationErrorKind.Type(types=types):
            expected = joined([_ARTICLES[type_] for type_ in sorted(types)], quote="")
            return f"expected {expected}, got {_described(got)}"
        case ValidationErrorKind.Pattern(pattern=pattern):
            return f"{shown(got)} {_PATTERNS.get(pattern, f'does not match {pattern}')}"
        case ValidationErrorKind.Format():
            return f"invalid time {shown(got)} (expected for example 2026-01-31T12:00:00Z)"
    if template := _BOUNDS.get(kind.name):
        size = len(got) if isinstance(got, list | dict | str) else 0
        return template.format(limit=kind.value, got=got, size=size)
    return error.message


def _described(value: object) -> str:
    """A value with its type, such as `the text "two"`."""
    match value:
        case None:
            return "nothing (null)"
        case bool():
            return str(value).lower()
        case str():
            return f"the text {shown(value)}"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            return f"the number {value}"


def _resource_hint(name: str, fields: Object) -> str:
    """A hint if resources are written as in a container: `nvidia.com/gpu` instead of `gpu`."""
    properties = fields["properties"]
    if name == GPU and "gpu" in properties:
        return '; use "gpu", for example gpu: "1"'
    if "/" in name and "custom" in properties and len(name) <= LONGEST_SHOWN:
        return (
            '; put resources with other names under "custom", for example custom: '
            f'{{"{name}": "1"}}'
        )
    return ""


def _deeper_field_hint(name: str, fields: Object) -> str:
    """A hint at a deeper field of that name, such as `image` in the main container."""
    level = list(fields["properties"].items())
    for _ in range(2):
        if paths := [path for path, schema in level if name in schema.get("properties", {})]:
            main = (path for path in paths if path.startswith("extraPodSpec.main"))
            return f'; did you mean "{next(main, paths[0])}.{name}"?'
        level = [
            (f"{path}.{field}", inner)
            for path, schema in level
            for field, inner in schema.get("properties", {}).items()
        ]
    return ""


def _at(schema: Any, path: Sequence[str | int]) -> Object:
    """The part of a schema at a path of keywords."""
    for part in path:
        schema = schema[part]
    subschema: Object = schema
    return subschema
