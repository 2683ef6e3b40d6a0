"""Checks a document against our schemas offline, as the API server does with strict validation.

It reports all problems at once and in words, while the API server stops at unknown fields. Three passes: drop
nulls and fill in defaults (`api.crd`), validate the JSON schema (`closed`), then check what a JSON schema
cannot express (`rules`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from typing import Any, Final

import jsonschema_rs

from dynamo_graphs.api.crd import KINDS, filled, whole_schema
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.bounds import MOST_PROBLEMS, first_problems
from dynamo_graphs.validation.schema.rules import metadata_problems, problems_beyond
from dynamo_graphs.validation.schema.wording import joined, problems_of
from dynamo_graphs.validation.syntax import Suggestions, nearest
from dynamo_graphs.validation.versions import SERVED, later_version
from kube_runtime.crd.embedded import embedded
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource

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
_INDEX: Final = re.compile(r"\[(\d+)\]")


def schema_problems(
    document: Object, kinds: Mapping[str, type[Resource]] = KINDS
) -> tuple[Problem, ...]:
    """The problems of a document of one of `kinds`, sorted by path; at most `MOST_PROBLEMS`.

    `status` is not checked: the API server ignores it in what users apply.
    """
    return first_problems(_each_once(_document_problems(document, kinds)), MOST_PROBLEMS)


def status_problems(resource: type[Resource], status: Object) -> tuple[Problem, ...]:
    """The problems of a status of that kind, sorted by path; at most `MOST_PROBLEMS`."""
    return first_problems(_each_once(_problems(resource, {"status": status})), MOST_PROBLEMS)


def _document_problems(document: Object, kinds: Mapping[str, type[Resource]]) -> Iterator[Problem]:
    if problem := later_version(document):
        yield problem  # its fields are others, so every further problem would mislead
        return
    yield from _problem_of_option(document, "apiVersion", [SERVED])
    yield from _problem_of_option(document, "kind", list(kinds))
    if resource := kinds.get(str(document.get("kind"))):
        body = {name: value for name, value in document.items() if name != "status"}
        yield from _problems(resource, body)
        yield from metadata_problems(document.get("metadata"))


def _each_once(problems: Iterable[Problem]) -> Iterator[Problem]:
    seen = set[Problem]()
    for problem in problems:
        if problem not in seen:
            seen.add(problem)
            yield problem


def _problem_of_option(document: Object, field: str, options: list[str]) -> Iterator[Problem]:
    """Problems of `apiVersion` or `kind`."""
    value = document.get(field)
    if value is None:
        yield Problem(field, "this field is required", ProblemKind.REQUIRED)
    elif value not in options:
        hint = nearest(value, options)
        message = f'unsupported value "{value}" (expected {joined(options)}{hint})'
        yield Problem(field, message, ProblemKind.NOT_SUPPORTED)


def _problems(resource: type[Resource], document: Object) -> Iterator[Problem]:
    """Problems of the fields that the document has."""
    schema = whole_schema(resource)
    stored = filled(document, schema)
    suggestions = Suggestions()
    for error in _validator(resource).iter_errors(stored):
        yield from problems_of(error, _closed_schema(resource), suggestions)
    yield from problems_beyond(stored, schema, ())


@cache
def _closed_schema(resource: type[Resource]) -> Object:
    return closed(whole_schema(resource))


@cache
def _validator(resource: type[Resource]) -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(_closed_schema(resource), validate_formats=True)


def closed(schema: Object, notes: tuple[str, ...] = ()) -> Object:
    """A structural schema as a JSON schema that refuses what the API server refuses.

    The API server treats unknown fields as errors, knows the range of a number from its format, and allows
    two types where `x-kubernetes-int-or-string` is set; a JSON schema must spell that out. `notes` are
    further keywords to copy, such as `description`.
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


def without(document: Object, problems: Iterable[Problem]) -> Object:
    """A copy of the document without the fields of the problems; list items become `None`.

    Other rules then validate the rest, so that one wrong field does not hide their problems.
    """
    copy: Object = _copied(document)
    for problem in problems:
        _remove(copy, problem.path)
    return copy


def _copied(value: object) -> Any:
    if isinstance(value, dict):
        return {key: _copied(field) for key, field in value.items()}
    return [_copied(item) for item in value] if isinstance(value, list) else value


def _remove(document: object, path: str) -> None:
    """Remove a key, or empty a list item; do nothing if the path does not exist."""
    value, rest = document, path
    while rest:
        if isinstance(value, dict):
            key = next((step for step in _steps(rest) if step in value), None)
            if key is None:
                return
            rest = rest[len(key) :].removeprefix(".")
            if not rest:
                del value[key]
                return
            value = value[key]
            continue
        match = _INDEX.match(rest)
        if match is None or not isinstance(value, list) or int(match[1]) >= len(value):
            return
        index, rest = int(match[1]), rest[match.end() :].removeprefix(".")
        if not rest:
            value[index] = None
            return
        value = value[index]


def _steps(path: str) -> Iterator[str]:
    """Candidates for the next key, the longest first: keys may contain dots, and paths do not quote them."""
    yield path
    for end in range(len(path) - 1, 0, -1):
        if path[end] in ".[":
            yield path[:end]
