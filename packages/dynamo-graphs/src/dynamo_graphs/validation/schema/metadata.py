"""Rules for `metadata` that the API server applies to every kind: names, labels and annotations."""

from collections.abc import Iterator

from dynamo_graphs.api.names import LABEL_LIMIT, SUBDOMAIN_LIMIT
from dynamo_graphs.validation import Problem, ProblemKind, dotted
from dynamo_graphs.validation.syntax import (
    is_dns_label,
    is_label_value,
    is_qualified_name,
    is_subdomain,
    not_a_label_value,
)
from kube_runtime.kind import Object

_MOST_ANNOTATION_BYTES = 256 * 1024
"""Together, keys and values. Source: the API server's own limit on an object's annotations."""


def metadata_problems(metadata: object) -> Iterator[Problem]:
    """Problems of names, labels and annotations; wrong types are left to the schema."""
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
    # Annotation keys may have capitals in their prefix; the API server lowers them before it looks.
    domain = prefix.lower() if field == "annotations" else prefix
    if not is_qualified_name(f"{domain}{slash}{name}"):
        message = (
            f'invalid key "{key}" (expected a name of at most {LABEL_LIMIT} letters, digits, "-", '
            '"_" and ".", after an optional domain and "/")'
        )
        yield Problem(dotted(("metadata", field, key)), message)


def _texts(mapping: object) -> Iterator[tuple[str, str]]:
    """The entries of a map that are text."""
    if isinstance(mapping, dict):
        yield from ((key, value) for key, value in mapping.items() if isinstance(value, str))
