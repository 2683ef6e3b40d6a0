"""Validate what users write: a problem is a value with a path, never an exception."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum


class ProblemKind(StrEnum):
    """The category of a problem."""

    REQUIRED = "required"
    INVALID = "invalid"
    UNKNOWN_FIELD = "unknown_field"
    NOT_SUPPORTED = "not_supported"
    FORBIDDEN = "forbidden"
    DUPLICATE = "duplicate"


_WITH_PATH = ("spec.", "spec: ", "Changing spec.", "service topology is", "source URI must")
"""Beginnings of messages that name their field themselves; users know them from the Go operator."""


@dataclass(frozen=True, slots=True, order=True)
class Problem:
    """One mistake in a document. `path` is the field, such as `spec.services.Decode.replicas`."""

    path: str
    message: str
    kind: ProblemKind = ProblemKind.INVALID

    def __str__(self) -> str:
        """One line: the message alone where it names its field itself."""
        if self.message.startswith(_WITH_PATH):
            return self.message
        return f"{self.path}: {self.message}"


def lines(problems: Iterable[Problem]) -> str:
    """All problems, one on each line."""
    return "\n".join(map(str, problems))


def dotted(parts: Iterable[str | int]) -> str:
    """A path as text: keys after dots, even keys that contain dots, and indices in brackets."""
    steps = (f"[{part}]" if isinstance(part, int) else f".{part}" for part in parts)
    return "".join(steps).removeprefix(".") or "document"


def service_path(service: str) -> str:
    """The field path of a service in its graph."""
    return f"spec.services.{service}"


def component_path(component: str) -> str:
    """A component's path in messages of the Go operator: `spec.services[w]`, or `spec` outside a graph."""
    _, services, key = component.partition("spec.services.")
    return f"spec.services[{key}]" if services else component
