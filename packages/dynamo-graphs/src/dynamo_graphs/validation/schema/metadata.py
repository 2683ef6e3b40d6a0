"""Rules for `metadata` that the API server applies to every kind: names, labels and annotations."""

import re
from collections.abc import Iterator

from dynamo_graphs.validation import Problem, ProblemKind
from dynamo_graphs.validation.paths import dotted
from kube_runtime.kind import Object

_LABEL = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN = re.compile(rf"{_LABEL}(\.{_LABEL})*")
_NAMESPACE = re.compile(_LABEL)
_NAME_PART = re.compile(r"([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]")
MAX_SUBDOMAIN = 253
MAX_LABEL = 63
MAX_ANNOTATION_BYTES = 256 * 1024
"""Together, keys and values. Source: the API server's own limit on an object's annotations."""


def metadata_problems(metadata: object) -> Iterator[Problem]:
    """Problems of names, labels and annotations; wrong types are left to the schema."""
    if metadata is None:
        metadata = {}
    if not isinstance(metadata, dict):
        return
    yield from _name_problems(metadata)
    labels = metadata.get("labels")
    for key, value in _texts(labels):
        yield from _key_problems("labels", key)
        if value and not (len(value) <= MAX_LABEL and _NAME_PART.fullmatch(value)):
            message = (
                f'invalid label value "{value}" (expected at most {MAX_LABEL} letters, digits, '
                '"-", "_" and ".", with a letter or digit at both ends)'
            )
            yield Problem(dotted(("metadata", "labels", key)), message)
    annotations = list(_texts(metadata.get("annotations")))
    for key, _ in annotations:
        yield from _key_problems("annotations", key)
    size = sum(len(key.encode()) + len(value.encode()) for key, value in annotations)
    if size > MAX_ANNOTATION_BYTES:
        message = f"{size} bytes of annotations (limit {MAX_ANNOTATION_BYTES} in total)"
        yield Problem("metadata.annotations", message)


def _name_problems(metadata: Object) -> Iterator[Problem]:
    name = metadata.get("name")
    if name is None or name == "":
        yield Problem("metadata.name", "this field is required", ProblemKind.REQUIRED)
    elif isinstance(name, str) and not _is_subdomain(name):
        message = (
            f'invalid name "{name}" (expected at most {MAX_SUBDOMAIN} lower-case letters, digits, '
            '"-" and ".", with a letter or digit at both ends)'
        )
        yield Problem("metadata.name", message)
    space = metadata.get("namespace")
    if (
        isinstance(space, str)
        and space
        and not (len(space) <= MAX_LABEL and _NAMESPACE.fullmatch(space))
    ):
        message = (
            f'invalid namespace "{space}" (expected at most {MAX_LABEL} lower-case letters, '
            'digits and "-", with a letter or digit at both ends)'
        )
        yield Problem("metadata.namespace", message)


def _key_problems(field: str, key: str) -> Iterator[Problem]:
    prefix, slash, name = key.rpartition("/")
    fits = len(name) <= MAX_LABEL and _NAME_PART.fullmatch(name)
    # Annotation keys may have capitals in their prefix; the API server lowers them before it looks.
    domain = prefix.lower() if field == "annotations" else prefix
    if not fits or (slash and not _is_subdomain(domain)):
        message = (
            f'invalid key "{key}" (expected a name of at most {MAX_LABEL} letters, digits, "-", '
            '"_" and ".", after an optional domain and "/")'
        )
        yield Problem(dotted(("metadata", field, key)), message)


def _is_subdomain(text: str) -> bool:
    return len(text) <= MAX_SUBDOMAIN and _SUBDOMAIN.fullmatch(text) is not None


def _texts(mapping: object) -> Iterator[tuple[str, str]]:
    """The entries of a map that are text."""
    if isinstance(mapping, dict):
        yield from ((key, value) for key, value in mapping.items() if isinstance(value, str))
