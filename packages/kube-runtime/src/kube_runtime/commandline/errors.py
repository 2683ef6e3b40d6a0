"""How a command line ends when something is wrong: one line per problem, and a fixed exit code.

Only expected errors are turned into lines. Anything else is a bug and keeps its traceback.
"""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from kube_runtime.errors import OperatorError, Unreachable, leaves


class ExitCode(IntEnum):
    """How both programs end."""

    OK = 0
    PROBLEMS = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130  # as of a program that SIGINT ends


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Turns the expected errors of the body into lines on stderr and an exit code.

    A reader that closed the pipe (`program … | head`) is not an error, nor is Ctrl-C: the program
    ends silently.

    Raises: SystemExit, and whatever is not expected.
    """
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        if not _output_is_unread():
            raise
        sys.exit(ExitCode.OK)
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)
    except OperatorError as error:
        sys.exit(reported([error]))
    except BaseExceptionGroup as group:
        expected, rest = group.split(OperatorError)
        if rest is not None or expected is None:
            raise
        sys.exit(reported(list(leaves(expected))))


def reported(errors: list[OperatorError]) -> ExitCode:
    """Prints each error as one line; the exit code that they mean together."""
    for line in dict.fromkeys(one_line(str(error)) for error in errors):
        print(f"error: {line}", file=sys.stderr)
    if errors and all(isinstance(error, Unreachable) for error in errors):
        return ExitCode.UNREACHABLE
    return ExitCode.PROBLEMS


def one_line(text: str) -> str:
    """The visible text on one line, words one space apart."""
    return " ".join(visible(text).split())


def visible(text: str) -> str:
    """The whole text on one line, without control and invisible characters.

    Messages from a cluster may contain them: the end of a container's log, for example.
    """
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def _output_is_unread() -> bool:
    """Whether the reader of stdout closed it. If so, the rest of the output is dropped."""
    output = sys.stdout.fileno()
    poll = select.poll()
    poll.register(output, 0)  # errors are always reported
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    # The interpreter flushes once more at its end, and must not fail then.
    os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return True
