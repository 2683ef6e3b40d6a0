"""The common behaviour of command lines: one line per usage error, exit code 2, no negative flags."""

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from typing import Final

from cyclopts import App, CycloptsError, Parameter

from kube_runtime.commandline.errors import ExitCode, exit_on_error, one_line

NESTING_LIMIT: Final = 10_000
"""The recursion limit; a level of JSON that is decoded counts as a frame.

msgspec takes about 370 bytes of stack for a level (measured on x86-64, Python 3.11), and Linux gives 8 MiB.
With a limit of 25,000, JSON of more than 20,000 levels, which a registry may answer or anyone may send to the
webhooks, ended the process.
"""

_BREAK = re.compile(r"(?<=\S)\n(?=[^\s*-])(?!Examples?:)")
"""A line break within a paragraph: the next line is neither indented nor a list item."""


class _Application(App):
    """Wraps help texts at the width of the terminal."""

    @property
    def help(self) -> str:
        text, heading, parameters = inspect.cleandoc(super().help).partition("\nParameters\n---")
        return _BREAK.sub(" ", text) + heading + parameters

    @help.setter  # noqa: A003 (the name is cyclopts')
    def help(self, value: str | None) -> None:
        self._help = value


def application(
    name: str, text: str | None = None, *, version: Callable[[], str] | None = None
) -> App:
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
        app.command(
            lambda: print(version()), name=("version", "--version"), help="Print the version."
        )
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
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        sys.exit(ExitCode.USAGE)
