"""What is wrong with what users write: a problem is a value with a path, never an exception."""

from dataclasses import dataclass
from enum import StrEnum


class ProblemKind(StrEnum):
    """What sort of mistake a problem is."""

    REQUIRED = "required"
    INVALID = "invalid"
    UNKNOWN_FIELD = "unknown_field"
    NOT_SUPPORTED = "not_supported"
    FORBIDDEN = "forbidden"
    DUPLICATE = "duplicate"


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake in a document. `path` is the field, such as `spec.services.Decode.replicas`."""

    path: str
    message: str
    kind: ProblemKind = ProblemKind.INVALID

    def __str__(self) -> str:
        return f"{self.path}: {self.message}"
