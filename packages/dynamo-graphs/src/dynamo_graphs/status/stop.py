"""A reconcile that ends before anything is applied."""

from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_graphs.validation import Problem
from kube_runtime.types.meta import Status


@dataclass(frozen=True, slots=True)
class Stop:
    """The status to write, and the reason and message of the Event. Running pods keep running."""

    status: Status
    reason: str
    texts: Sequence[str]


def refused(status: Status, problems: Sequence[Problem]) -> Stop:
    """Stop because the spec is invalid."""
    return Stop(status, "ValidationFailed", [str(problem) for problem in problems])


def too_expensive(status: Status, text: str) -> Stop:
    """Stop because processing the object exceeded its limit of CPU time or memory."""
    return Stop(status, "TooExpensive", [text])
