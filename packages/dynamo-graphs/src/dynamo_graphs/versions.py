"""The versions in which people write an object: `v1alpha1`, with which we compute, and `v1beta1`."""

from typing import Final, Literal, TypeAlias

from dynamo_graphs.objects import InvalidObject
from dynamo_graphs.schema import schema_problems
from dynamo_operator.component.api import GROUP
from dynamo_operator.crds import KINDS, defaulted, is_later
from dynamo_operator.shared.problems import SERVED, Problem
from dynamo_operator.shared.seen import seen
from dynamo_operator.shared.written import Written
from dynamo_operator.versions.conversion import convert
from dynamo_operator.versions.shapes import ConversionError
from kube_runtime.types.meta import Object

Version: TypeAlias = Literal["v1alpha1", "v1beta1"]

DEFAULT: Final[Version] = "v1alpha1"
"""The version in which objects are written unless another one is asked for."""

LATER: Final = f"{GROUP}/v1beta1"
_PRESERVING: Final = tuple(f"{GROUP}/{kind}-spec" for kind in ("dgd", "dcd", "dgdr", "dgdsa"))
"""The annotations in which a conversion keeps what the other version has no field for."""


def has_versions(document: Object) -> bool:
    """Whether it is an object of a kind that has both versions, in one of them."""
    kind = KINDS.get(str(document.get("kind")))
    return is_later(document) or (
        kind is not None
        and document.get("apiVersion") == SERVED
        and is_later({**document, "apiVersion": LATER})
    )


def in_version(document: Object, version: Version) -> Object:
    """The document in a version, as a person would write it: without a status that it had not.

    What the version has no field for is kept in an annotation. Without need there is none: many conversions
    only note in which of two places something was written.

    Raises: InvalidObject if it does not fit the schema of its version, so that no typo gets lost;
        ConversionError, also for a kind that has one version only.
    """
    if document.get("apiVersion") == f"{GROUP}/{version}":
        return document
    if problems := schema_problems(document):
        raise InvalidObject(problems)
    if version == "v1beta1":
        converted = convert(document, LATER)
        plain = _without_notes(converted, document)
        is_same = plain is converted or _same(seen(converted), seen(plain))
    else:
        converted = seen(document)
        plain = _without_notes(converted, document)
        is_same = plain is converted or _same(convert(converted, LATER), convert(plain, LATER))
    made = plain if is_same else converted
    written = made if "status" in document else {name: made[name] for name in made if name != "status"}
    return {name: written[name] for name in (*_FIRST, *written) if name in written}


def notes_of(document: Object) -> tuple[str, ...]:
    """The annotations of a document that keep what its version has no field for."""
    return tuple(name for name in _PRESERVING if name in _annotations(document))


def written_of(document: Object) -> Written | None:
    """A document of v1beta1, with the defaults of the API server, and as we compute with it; None for others.

    Raises: ConversionError.
    """
    if not is_later(document):
        return None
    stored = defaulted(document)
    return Written(stored, seen(stored))


def unreadable(error: ConversionError) -> Problem:
    """The problem of a document that cannot be converted."""
    return Problem(error.path or "document", error.problem)


_FIRST: Final = ("apiVersion", "kind", "metadata", "spec")


def _annotations(document: Object) -> Object:
    metadata = document.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    return annotations if isinstance(annotations, dict) else {}


def _without_notes(converted: Object, source: Object) -> Object:
    """Without the annotations that the conversion has added; the same object if there are none."""
    present = _annotations(converted)
    left = {k: v for k, v in present.items() if k not in _PRESERVING or k in _annotations(source)}
    if left == present:
        return converted
    metadata = {name: value for name, value in converted["metadata"].items() if name != "annotations"}
    return {**converted, "metadata": {**metadata, **({"annotations": left} if left else {})}}


def _same(first: Object, second: Object) -> bool:
    return _without_notes(first, {}) == _without_notes(second, {})
