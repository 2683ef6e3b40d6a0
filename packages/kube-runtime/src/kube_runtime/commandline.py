"""What command lines of operators share: usage errors, exit codes."""

import inspect
import os
import re
import select
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum
from typing import Final

from cyclopts import App, CycloptsError, Parameter

from kube_runtime.errors import OperatorError, Unreachable, leaves, visible


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
        # Other exceptions are bugs and keep their traceback.
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


NESTING_LIMIT: Final = 10_000
"""The recursion limit; a level of JSON that is decoded counts as a frame.

msgspec takes about 370 bytes of stack for a level (measured on x86-64, Python 3.11), and Linux gives 8 MiB.
With a limit of 25,000, JSON of more than 20,000 levels, which a registry may answer or anyone may send to the
webhooks, ended the process.
"""

_BREAK = re.compile(r"(?<=\S)\n(?=[^\s*-])(?!Examples?:)")
"""A line break within a paragraph: the next line is neither indented nor a list item."""


class _Application(App):
    @property
    def help(self) -> str:
        text, heading, parameters = inspect.cleandoc(super().help).partition("\nParameters\n---")
        return _BREAK.sub(" ", text) + heading + parameters

    @help.setter  # noqa: A003 (the name is cyclopts')
    def help(self, value: str | None) -> None:
        self._help = value


def application(name: str, text: str | None = None, *, version: Callable[[], str] | None = None) -> App:
    """An app whose only command prints what `version` returns."""
    app = _Application(
        name=name,
        help=text,
        help_format="plaintext",
        version_flags=[],
        default_parameter=Parameter(negative=(), show_default=_shown_default),
        exit_on_error=False,
        print_error=False,
        result_action="return_value",
    )
    if version is not None:
        app.command(lambda: print(version()), name=("version", "--version"), help="Print the version.")
    return app


def _shown_default(value: object) -> object:
    """The default as help texts show it; None hides it, as for a flag that is off."""
    return str(value) if value or (value == 0 and value is not False) else None


def execute(app: App, arguments: Sequence[str]) -> object:
    """Run a command line, and return the result of its command.

    Raises: SystemExit, after one line for each error.
    """
    sys.setrecursionlimit(NESTING_LIMIT)
    try:
        with exit_on_error():
            return app(arguments)
    except CycloptsError as error:
        from kube_runtime.usage import usage_message

        print(f"error: {one_line(usage_message(app, error))}", file=sys.stderr)
        sys.exit(ExitCode.USAGE)
