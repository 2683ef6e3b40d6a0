"""The version of our API that this operator serves, and what it reports of later ones."""

from collections.abc import Mapping
from typing import Final

from dynamo_graphs.api.component import GROUP, VERSION
from dynamo_graphs.validation import Problem, ProblemKind

SERVED: Final = f"{GROUP}/{VERSION}"
_LATER: Final = f"{GROUP}/v1beta1"


def later_version(document: Mapping[str, object]) -> Problem | None:
    """The problem of an object whose version only later releases of Dynamo serve."""
    if document.get("apiVersion") != _LATER:
        return None
    message = (
        f'"{_LATER}" is a version of Dynamo 1.1 and later, with other fields '
        f'(this operator serves "{SERVED}")'
    )
    return Problem("apiVersion", message, ProblemKind.NOT_SUPPORTED)
