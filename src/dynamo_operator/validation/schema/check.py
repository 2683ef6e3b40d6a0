"""Checks a document against our schemas offline, as the API server does with strict validation.

The hard part is to say all that is wrong at once and in words: the API server stops at unknown
fields, and a JSON schema validator speaks of keywords. Three passes over the document: drop nulls
and fill defaults as the API server does, validate, and then look for what a JSON schema cannot say
(duplicate list keys, rules over several fields).
"""

from collections.abc import Iterator
from functools import cache
from typing import Any

import jsonschema_rs

from dynamo_operator.api.crd import RESOURCES, resource_schema
from dynamo_operator.api.declare import Rule
from dynamo_operator.api.embedded import embedded
from dynamo_operator.api.graph import PersistentVolumeClaimSpec
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.meta import Resource
from dynamo_operator.validation import Problem, ProblemKind
from dynamo_operator.validation.schema.metadata import metadata_problems
from dynamo_operator.validation.schema.paths import dotted
from dynamo_operator.validation.schema.wording import joined, nearest, problems_of

RULES: dict[str, Rule] = {rule.expression: rule for rule in PersistentVolumeClaimSpec.RULES}
"""The rules of all kinds by their expression in the schema."""

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


def schema_problems(document: Object) -> tuple[Problem, ...]:
    """Everything for which the API server would refuse a document of one of our kinds, by path.

    `status` is not looked at: the API server ignores it in what users apply.
    """
    resource, problems = _resource_of(document)
    if resource is None:
        return tuple(problems)
    schema = _whole_schema(resource)
    spec = _filled({key: value for key, value in document.items() if key != "status"}, schema)
    for error in _validator(resource).iter_errors(spec):
        problems.extend(problems_of(error, _closed_schema(resource)))
    problems.extend(metadata_problems(spec.get("metadata")))
    problems.extend(_beyond_schema(spec, schema, ()))
    return tuple(sorted(set(problems)))


def defaulted(document: Object) -> Object:
    """The document as the API server stores it: nulls dropped, schema defaults filled in.

    A document of another kind comes back as it is.
    """
    resource = _kind_of(document)
    if resource is None:
        return document
    filled: Object = _filled(document, _whole_schema(resource))
    return filled


def _by_kind() -> dict[str, type[Resource]]:
    return {resource.KIND.name: resource for resource in RESOURCES}


def _resource_of(document: Object) -> tuple[type[Resource] | None, list[Problem]]:
    """The kind of a document, and what is wrong with `apiVersion` and `kind`."""
    problems = []
    for field, options in (
        ("apiVersion", [RESOURCES[0].KIND.api_version]),
        ("kind", list(_by_kind())),
    ):
        value = document.get(field)
        if value is None:
            problems.append(Problem(field, "this field is required", ProblemKind.REQUIRED))
        elif value not in options:
            message = f'"{value}" is not supported; use {joined(options)}{nearest(value, options)}'
            problems.append(Problem(field, message, ProblemKind.NOT_SUPPORTED))
    return _kind_of(document), problems


def _kind_of(document: Object) -> type[Resource] | None:
    kind = document.get("kind")
    return _by_kind().get(kind) if isinstance(kind, str) else None


@cache
def _whole_schema(resource: type[Resource]) -> Object:
    """The structural schema of a kind, with the metadata spelled out."""
    schema = resource_schema(resource)
    return {**schema, "properties": {**schema["properties"], "metadata": embedded("ObjectMeta")}}


@cache
def _closed_schema(resource: type[Resource]) -> Object:
    return _closed(_whole_schema(resource))


@cache
def _validator(resource: type[Resource]) -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(_closed_schema(resource), validate_formats=True)


def _closed(schema: Object) -> Object:
    """A structural schema as a JSON schema that allows no field which is not listed."""
    result: Object = {keyword: schema[keyword] for keyword in _COPIED if keyword in schema}
    if schema.get("x-kubernetes-int-or-string"):
        result["type"] = ["integer", "string"]
    if edge := _RANGES.get(schema.get("format", "")):
        result["minimum"] = max(-edge, result.get("minimum", -edge))
        result["maximum"] = edge - 1
    elif schema.get("format") == "date-time":
        result["format"] = "date-time"
    if "properties" in schema:
        result["properties"] = {name: _closed(each) for name, each in schema["properties"].items()}
        result["additionalProperties"] = bool(schema.get("x-kubernetes-preserve-unknown-fields"))
    if "additionalProperties" in schema:
        result["additionalProperties"] = _closed(schema["additionalProperties"])
    if "items" in schema:
        result["items"] = _closed(schema["items"])
    return result


def _filled(value: Any, schema: Object) -> Any:
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


def _beyond_schema(value: Any, schema: Object, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """What a JSON schema cannot express: duplicate list keys and rules over several fields."""
    if isinstance(value, list) and "items" in schema:
        yield from _duplicates(value, schema, path)
        for index, each in enumerate(value):
            yield from _beyond_schema(each, schema["items"], (*path, index))
    elif isinstance(value, dict):
        for rule in schema.get("x-kubernetes-validations", ()):
            if not RULES[rule["rule"]].holds(value):
                yield Problem(dotted(path), rule["message"], ProblemKind.INVALID)
        for name, each in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is not None:
                yield from _beyond_schema(each, inner, (*path, name))


def _duplicates(items: list[Any], schema: Object, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """One problem for each item of a keyed list or a set that was there before."""
    keys = schema.get("x-kubernetes-list-map-keys")
    if keys is None and schema.get("x-kubernetes-list-type") != "set":
        return
    seen: list[Any] = []
    for index, item in enumerate(items):
        if keys is None:
            identity, text = item, f'"{item}" is there twice'
        elif isinstance(item, dict):
            identity = [item.get(key) for key in keys]
            named = joined([f"{key} {item.get(key)}" for key in keys], "and", quote="")
            text = f"an entry with {named} is there already"
        else:
            continue
        if identity in seen:
            yield Problem(dotted((*path, index)), text, ProblemKind.DUPLICATE)
        seen.append(identity)
