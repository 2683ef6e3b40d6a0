"""One problem as one line: what a webhook answers, `dynamoctl lint` prints and a condition says."""

from collections.abc import Iterable

from dynamo_operator.validation import Problem

_WITH_PATH = ("spec.", "Changing spec.")
"""How messages begin that name their field themselves, in words that users of the Go operator know."""


def line(problem: Problem) -> str:
    """`path: message`; the message alone where it names its field itself."""
    return problem.message if problem.message.startswith(_WITH_PATH) else str(problem)


def lines(problems: Iterable[Problem]) -> str:
    """All problems, one on each line."""
    return "\n".join(line(each) for each in problems)
