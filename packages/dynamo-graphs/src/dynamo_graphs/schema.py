"""The offline check of documents against our schemas."""

import re
import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from copy import deepcopy
from functools import cache
from typing import Any, Final

import jsonschema_rs
from jsonschema_rs import ValidationError, ValidationErrorKind

from dynamo_operator.component.framework import GPU
from dynamo_operator.crds import KINDS, LATER_RESOURCES, RESOURCES, filled, resource_of, whole_schema
from dynamo_operator.names import LABEL_LIMIT, SUBDOMAIN_LIMIT
from dynamo_operator.shared.problems import (
    LONGEST_SHOWN,
    MOST_PROBLEMS,
    SERVED,
    Problem,
    ProblemKind,
    Suggestions,
    dotted,
    first_problems,
    is_dns_label,
    is_label_value,
    is_qualified_name,
    is_subdomain,
    nearest,
    not_a_label_value,
    shown,
)
from kube_runtime.crd import INT_OR_PERCENT_PATTERN, PATTERN, Rule
from kube_runtime.schema import all_rules, embedded
from kube_runtime.types.meta import Object, Resource

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


def problems_of(error: ValidationError, schema: Object, suggestions: Suggestions) -> Iterator[Problem]:
    """The problems in one error of the validator. `schema` is the whole schema."""
    where = tuple(error.instance_path)
    match error.kind:
        case ValidationErrorKind.AdditionalProperties(unexpected=names):
            fields: Any = schema
            for part in error.schema_path[:-1]:
                fields = fields[part]
            for name in names:
                message = f"unknown field{unknown_field_hint(name, fields, suggestions)}"
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


def unknown_field_hint(name: str, fields: Object, suggestions: Suggestions) -> str:
    """A hint at the field that was meant by an unknown one; "" if none is similar."""
    hint = _resource_hint(name, fields) or suggestions.nearest(name, fields["properties"])
    return hint or _deeper_field_hint(name, fields)


def _resource_hint(name: str, fields: Object) -> str:
    """A hint if resources are written as in a container: `nvidia.com/gpu` instead of `gpu`."""
    properties = fields["properties"]
    if name == GPU and "gpu" in properties:
        return '; use "gpu", for example gpu: "1"'
    if "/" in name and "custom" in properties and len(name) <= LONGEST_SHOWN:
        return f'; put resources with other names under "custom", for example custom: {{"{name}": "1"}}'
    return ""


def _deeper_field_hint(name: str, fields: Object) -> str:
    """A hint at a deeper field of that name, such as `image` in the main container."""
    level, paths = list(fields["properties"].items()), list[str]()
    for _ in range(2):
        paths += [path for path, schema in level if name in schema.get("properties", {})]
        level = [
            (f"{path}.{field}", inner)
            for path, schema in level
            for field, inner in schema.get("properties", {}).items()
        ]
    main = (path for path in paths if path.startswith("extraPodSpec.main"))
    return f'; did you mean "{next(main, paths[0])}.{name}"?' if paths else ""


RULES: dict[str, Rule] = {
    rule.expression: rule for resource in (*RESOURCES, *LATER_RESOURCES) for rule in all_rules(resource)
}
"""The CEL rules of all kinds, by their expression in the schema."""

_MOST_ANNOTATION_BYTES = 256 * 1024
"""Of all keys and values together. Source: the API server's limit."""
_HASH_MODULUS = sys.hash_info.modulus


def problems_beyond(value: object, schema: Object, path: tuple[str | int, ...]) -> Iterator[Problem]:
    """Report duplicate list keys and broken CEL rules in a value, recursively."""
    for rule in schema.get("x-kubernetes-validations", ()):
        declared = RULES.get(rule["rule"])  # others are about changes, and there is no state before
        if declared is not None and not _holds(declared, value):
            yield Problem(dotted(path), rule["message"], ProblemKind.INVALID)
    if isinstance(value, list) and "items" in schema:
        yield from _duplicates(value, schema, path)
        for index, item in enumerate(value):
            yield from problems_beyond(item, schema["items"], (*path, index))
    elif isinstance(value, dict):
        for name, field in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is not None:
                yield from problems_beyond(field, inner, (*path, name))


def _holds(rule: Rule, value: object) -> bool:
    """Whether the rule holds. It is not applied to fields of another type, which the schema reports."""
    try:
        return rule.holds(value)
    except (AttributeError, TypeError):
        return True


def _duplicates(items: list[object], schema: Object, path: tuple[str | int, ...]) -> Iterator[Problem]:
    keys = schema.get("x-kubernetes-list-map-keys")
    if keys is None and schema.get("x-kubernetes-list-type") != "set":
        return
    seen = set[Hashable]()
    for index, item in enumerate(items):
        if keys is None:
            identity, text = item, f'duplicate entry "{item}"'
        elif isinstance(item, dict):
            identity = [item.get(key) for key in keys]
            named = joined([f"{key} {item.get(key)}" for key in keys], "and", quote="")
            text = f"duplicate entry with {named}"
        else:
            continue
        form = _hashable(identity)
        if form in seen:
            yield Problem(dotted((*path, index)), text, ProblemKind.DUPLICATE)
        seen.add(form)


def _hashable(value: object) -> Hashable:
    """A hashable form of a JSON value. Large integers become text, because many may share one hash."""
    if isinstance(value, dict):
        return frozenset((name, _hashable(field)) for name, field in value.items())
    if isinstance(value, list):
        return tuple(map(_hashable, value))
    return str(value) if isinstance(value, int) and abs(value) >= _HASH_MODULUS else value


def metadata_problems(metadata: object) -> Iterator[Problem]:
    """Problems of names, labels and annotations; the schema reports wrong types."""
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        return
    yield from _name_problems(metadata)
    for key, value in _texts(metadata.get("labels")):
        yield from _key_problems("labels", key)
        if not is_label_value(value):
            yield Problem(dotted(("metadata", "labels", key)), not_a_label_value(value))
    annotations = list(_texts(metadata.get("annotations")))
    for key, _ in annotations:
        yield from _key_problems("annotations", key)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations)
    if size > _MOST_ANNOTATION_BYTES:
        message = f"{size} bytes of annotations (limit {_MOST_ANNOTATION_BYTES} in total)"
        yield Problem("metadata.annotations", message)


def _name_problems(metadata: Object) -> Iterator[Problem]:
    name = metadata.get("name")
    if name is None or name == "":
        yield Problem("metadata.name", "this field is required", ProblemKind.REQUIRED)
    elif isinstance(name, str) and not is_subdomain(name):
        message = (
            f'invalid name "{name}" (expected at most {SUBDOMAIN_LIMIT} lower-case letters, digits, '
            '"-" and ".", with a letter or digit at both ends)'
        )
        yield Problem("metadata.name", message)
    space = metadata.get("namespace")
    if isinstance(space, str) and space and not is_dns_label(space):
        message = (
            f'invalid namespace "{space}" (expected at most {LABEL_LIMIT} lower-case letters, '
            'digits and "-", with a letter or digit at both ends)'
        )
        yield Problem("metadata.namespace", message)


def _key_problems(field: str, key: str) -> Iterator[Problem]:
    prefix, slash, name = key.rpartition("/")
    # The API server allows capitals in the domain of annotation keys only.
    domain = prefix.lower() if field == "annotations" else prefix
    if not is_qualified_name(f"{domain}{slash}{name}"):
        message = (
            f'invalid key "{key}" (expected a name of at most {LABEL_LIMIT} letters, digits, "-", '
            '"_" and ".", after an optional domain and "/")'
        )
        yield Problem(dotted(("metadata", field, key)), message)


def _texts(mapping: object) -> Iterator[tuple[str, str]]:
    if isinstance(mapping, dict):
        yield from ((key, value) for key, value in mapping.items() if isinstance(value, str))


_COPIED = (
    "type",
    "required",
    "enum",
    "maximum",
    "minimum",
    "minLength",
    "maxLength",
    "maxItems",
    "maxProperties",
    "pattern",
)
_RANGES = {"int32": 1 << 31, "int64": 1 << 63}
_INDEX: Final = re.compile(r"\[(\d+)\]")


# It reports all problems at once and in words, while the API server stops at unknown fields.
def schema_problems(document: Object, kinds: Mapping[str, type[Resource]] = KINDS) -> tuple[Problem, ...]:
    """The problems of a document of one of `kinds`, sorted by path; at most `MOST_PROBLEMS`.

    `status` is not checked: the API server ignores it in what users apply.
    """
    return first_problems(_each_once(_document_problems(document, kinds)), MOST_PROBLEMS)


def status_problems(resource: type[Resource], status: Object) -> tuple[Problem, ...]:
    """The problems of a status of that kind, sorted by path; at most `MOST_PROBLEMS`."""
    return resource_problems(resource, {"status": status})


def resource_problems(resource: type[Resource], document: Object) -> tuple[Problem, ...]:
    """The problems of a document with the schema of `resource`, whatever its `kind` and `apiVersion`."""
    return first_problems(_each_once(_problems(resource, document)), MOST_PROBLEMS)


def _document_problems(document: Object, kinds: Mapping[str, type[Resource]]) -> Iterator[Problem]:
    kind = str(document.get("kind"))
    versions = [SERVED, *(later.KIND.api_version for later in LATER_RESOURCES if later.KIND.name == kind)]
    yield from _problem_of_option(document, "apiVersion", versions)
    yield from _problem_of_option(document, "kind", list(kinds))
    if resource := resource_of(document) or kinds.get(kind):
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
    value = document.get(field)
    if value is None:
        yield Problem(field, "this field is required", ProblemKind.REQUIRED)
    elif value not in options:
        hint = nearest(value, options)
        message = f'unsupported value "{value}" (expected {joined(options)}{hint})'
        yield Problem(field, message, ProblemKind.NOT_SUPPORTED)


# Three passes: drop nulls and fill in defaults, validate the JSON schema, check what that cannot express.
def _problems(resource: type[Resource], document: Object) -> Iterator[Problem]:
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
        result["maximum"] = min(edge - 1, result.get("maximum", edge - 1))
    elif schema.get("format") == "date-time":
        result["format"] = "date-time"
    if schema.get("x-kubernetes-embedded-resource"):
        result["properties"] = {"metadata": closed(embedded("ObjectMeta"), notes)}
        result["required"] = ["apiVersion", "kind"]
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
    copy = deepcopy(document)
    for problem in problems:
        _remove(copy, problem.path)
    return copy


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
