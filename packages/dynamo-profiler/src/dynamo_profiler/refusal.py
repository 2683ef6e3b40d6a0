"""The profiler's error: an invalid input, or targets that cannot be met."""

from kube_runtime.errors import OperatorError

REFUSAL_CHARACTERS = 1500
"""Slightly less than what a request quotes from the end of a log."""


class Refusal(OperatorError):
    """A value is invalid, or no choice meets a target. The message is one line for the user."""
