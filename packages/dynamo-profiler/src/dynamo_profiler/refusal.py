"""The one error of the profiler: what is asked for cannot be done, and why."""

from kube_runtime.errors import OperatorError

REFUSAL_CHARACTERS = 1500
"""What a request quotes of the end of a log is a little longer."""


class Refusal(OperatorError):
    """A value that cannot be used, or a target that no choice meets. The text is one line for a user."""
