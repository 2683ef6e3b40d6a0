"""Exit codes and error messages of command lines: one line per expected error.

Other exceptions are bugs and keep their traceback.
"""

import os
import select
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from enum import IntEnum

from kube_runtime.errors import OperatorError, Unreachable, leaves


class ExitCode(IntEnum):
    """Exit codes."""

    OK = 0
    PROBLEMS = 1
    USAGE = 2
    UNREACHABLE = 3
    INTERRUPTED = 130  # as of a program that SIGINT ends


@contextmanager
def exit_on_error() -> Iterator[None]:
    """Turn expected errors of the block into lines on stderr and an exit code.

    A closed pipe (`program … | head`) and Ctrl-C end the program silently.

    Raises: SystemExit, and unexpected exceptions.
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
    """Print each error in one line, and return the exit code for all of them."""
    for line in dict.fromkeys(one_line(str(error)) for error in errors):
        print(f"error: {line}", file=sys.stderr)
    if errors and all(isinstance(error, Unreachable) for error in errors):
        return ExitCode.UNREACHABLE
    return ExitCode.PROBLEMS


def one_line(text: str) -> str:
    """The visible text in one line, with single spaces."""
    return " ".join(visible(text).split())


def visible(text: str) -> str:
    """The text in one line, without control and invisible characters.

    Messages from a cluster may contain them, for example the end of a container's log.
    """
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )


def _output_is_unread() -> bool:
    """Whether the reader of stdout closed the pipe. If so, drops the rest of the output."""
    output = sys.stdout.fileno()
    poll = select.poll()
    poll.register(output, 0)  # errors are always reported
    if not any(event & select.POLLERR for _, event in poll.poll(0)):
        return False
    # The interpreter flushes stdout at its end, which must not fail.
    os.dup2(os.open(os.devnull, os.O_WRONLY), output)
    return True
