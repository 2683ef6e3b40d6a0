"""Documents of v1beta1 as they were written, and as we compute with them."""

from dynamo_operator.crds import defaulted, is_later
from dynamo_operator.shared.problems import Problem
from dynamo_operator.shared.seen import seen
from dynamo_operator.shared.written import Written
from dynamo_operator.versions.shapes import ConversionError
from kube_runtime.types.meta import Object


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
