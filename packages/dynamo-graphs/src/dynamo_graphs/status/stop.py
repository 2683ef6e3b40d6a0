"""A reconcile that ends before anything is applied: the status that says why, and the Event."""

from collections.abc import Sequence
from dataclasses import dataclass

from dynamo_graphs.validation import Problem
from kube_runtime.types.meta import Status


@dataclass(frozen=True, slots=True)
class Stop:
    """The status to write, and the reason and the message of the Event. Running pods keep running."""

    status: Status
    reason: str
    texts: Sequence[str]


def refused(status: Status, problems: Sequence[Problem]) -> Stop:
    """A spec that cannot be used."""
    return Stop(status, "ValidationFailed", [str(problem) for problem in problems])


def too_expensive(status: Status, text: str) -> Stop:
    """A spec whose processing was ended."""
    return Stop(status, "TooExpensive", [text])
