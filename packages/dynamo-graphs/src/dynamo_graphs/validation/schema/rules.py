"""What the API server checks beside the JSON schema: duplicate list keys, CEL rules and metadata."""

import sys
from collections.abc import Hashable, Iterator

from dynamo_graphs.api.component import DisruptionBudget
from dynamo_graphs.api.graph import PersistentVolumeClaimSpec
from dynamo_graphs.api.names import LABEL_LIMIT, SUBDOMAIN_LIMIT
from dynamo_graphs.validation import Problem, ProblemKind, dotted
from dynamo_graphs.validation.schema.wording import joined
from dynamo_graphs.validation.syntax import (
    is_dns_label,
    is_label_value,
    is_qualified_name,
    is_subdomain,
    not_a_label_value,
)
from kube_runtime.crd.declare import Rule
from kube_runtime.kind import Object

RULES: dict[str, Rule] = {
    rule.expression: rule for rule in (*DisruptionBudget.RULES, *PersistentVolumeClaimSpec.RULES)
}
"""The CEL rules of all kinds, by their expression in the schema."""

_MOST_ANNOTATION_BYTES = 256 * 1024
"""Of all keys and values together. Source: the API server's limit."""
_HASH_MODULUS = sys.hash_info.modulus


def problems_beyond(
    value: object, schema: Object, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Report duplicate list keys and broken CEL rules in a value, recursively."""
    if isinstance(value, list) and "items" in schema:
        yield from _duplicates(value, schema, path)
        for index, item in enumerate(value):
            yield from problems_beyond(item, schema["items"], (*path, index))
    elif isinstance(value, dict):
        for rule in schema.get("x-kubernetes-validations", ()):
            declared = RULES.get(
                rule["rule"]
            )  # others are about changes, and there is no state before
            if declared is not None and not declared.holds(value):
                yield Problem(dotted(path), rule["message"], ProblemKind.INVALID)
        for name, field in value.items():
            inner = schema.get("properties", {}).get(name, schema.get("additionalProperties"))
            if inner is not None:
                yield from problems_beyond(field, inner, (*path, name))


def _duplicates(
    items: list[object], schema: Object, path: tuple[str | int, ...]
) -> Iterator[Problem]:
    """Report repeated items of keyed lists and sets."""
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
    """The entries of a map whose values are text."""
    if isinstance(mapping, dict):
        yield from ((key, value) for key, value in mapping.items() if isinstance(value, str))
