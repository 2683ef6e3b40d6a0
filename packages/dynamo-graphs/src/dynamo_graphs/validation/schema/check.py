"""Checks a document against our schemas offline, as the API server does with strict validation.

All problems are reported at once and in words, while the API server stops at unknown fields, and a
JSON schema validator reports keywords. Three passes: drop nulls and fill defaults
as the API server does (`stored`), validate (`closed`), then look for what a JSON schema cannot say
(`beyond`).
"""

from collections.abc import Iterable, Iterator
from functools import cache

import jsonschema_rs

from dynamo_graphs.api.crd import RESOURCES
from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.bounds import MOST_PROBLEMS, first_problems
from dynamo_graphs.validation.schema.cel_rules import problems_beyond
from dynamo_graphs.validation.schema.closed import closed
from dynamo_graphs.validation.schema.metadata import metadata_problems
from dynamo_graphs.validation.schema.stored import filled
from dynamo_graphs.validation.schema.wording import joined, nearest, problems_of
from dynamo_graphs.validation.syntax import Suggestions
from kube_runtime.crd.definition import resource_schema
from kube_runtime.crd.embedded import embedded
from kube_runtime.kind import Object
from kube_runtime.types.meta import Resource

_KINDS = {resource.KIND.name: resource for resource in RESOURCES}


def schema_problems(document: Object) -> tuple[Problem, ...]:
    """What the API server would refuse in a document of one of our kinds, by path: `MOST_PROBLEMS` at most.

    `status` is not looked at: the API server ignores it in what users apply.
    """
    return first_problems(_each_once(_document_problems(document)), MOST_PROBLEMS)


def status_problems(resource: type[Resource], status: Object) -> tuple[Problem, ...]:
    """What the API server would refuse in a status of that kind, by path: `MOST_PROBLEMS` at most."""
    return first_problems(_each_once(_problems(resource, {"status": status})), MOST_PROBLEMS)


def defaulted(document: Object) -> Object:
    """The document as the API server stores it: nulls dropped, schema defaults filled in.

    A document of another kind comes back as it is.
    """
    resource = _resource_of(document)
    if resource is None:
        return document
    stored: Object = filled(document, _whole_schema(resource))
    return stored


def _document_problems(document: Object) -> Iterator[Problem]:
    yield from _problem_of_option(document, "apiVersion", [RESOURCES[0].KIND.api_version])
    yield from _problem_of_option(document, "kind", list(_KINDS))
    if resource := _resource_of(document):
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
    """What is wrong with `apiVersion` or `kind`."""
    value = document.get(field)
    if value is None:
        yield Problem(field, "this field is required", ProblemKind.REQUIRED)
    elif value not in options:
        hint = nearest(value, options, Suggestions())
        message = f'unsupported value "{value}" (expected {joined(options)}{hint})'
        yield Problem(field, message, ProblemKind.NOT_SUPPORTED)


def _problems(resource: type[Resource], document: Object) -> Iterator[Problem]:
    """What is wrong with the fields of a document that are there."""
    schema = _whole_schema(resource)
    stored = filled(document, schema)
    suggestions = Suggestions()
    for error in _validator(resource).iter_errors(stored):
        yield from problems_of(error, _closed_schema(resource), suggestions)
    yield from problems_beyond(stored, schema, ())


def _resource_of(document: Object) -> type[Resource] | None:
    kind = document.get("kind")
    return _KINDS.get(kind) if isinstance(kind, str) else None


@cache
def _whole_schema(resource: type[Resource]) -> Object:
    """The structural schema of a kind, with the metadata spelled out."""
    schema = resource_schema(resource)
    return {**schema, "properties": {**schema["properties"], "metadata": embedded("ObjectMeta")}}


@cache
def _closed_schema(resource: type[Resource]) -> Object:
    return closed(_whole_schema(resource))


@cache
def _validator(resource: type[Resource]) -> jsonschema_rs.Validator:
    return jsonschema_rs.Draft202012Validator(_closed_schema(resource), validate_formats=True)
