"""What programs have in common: one line per usage error, exit code 2, no negative flags."""

import inspect
import re
import sys
from collections.abc import Callable, Sequence
from typing import Final

from cyclopts import App, CycloptsError, Parameter

from kube_runtime.commandline.errors import ExitCode, exit_on_error, one_line

NESTING_LIMIT: Final = 25_000
"""In Python frames. The API server takes JSON of 10,000 levels, and code of ours needs up to two for each."""

_BREAK = re.compile(r"(?<=\S)\n(?=[^\s*-])(?!Examples?:)")
"""The end of a line within a paragraph: the next one is neither indented nor an item of a list."""


class _Application(App):
    """Help texts fill the width of the terminal, not the lines of the source."""

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
    """An app without commands yet, but for `version`, which prints what `version` returns."""
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
    """The default as a help text shows it; None hides one that says nothing, such as that a flag is off."""
    return str(value) if value or (value == 0 and value is not False) else None


def execute(app: App, arguments: Sequence[str]) -> object:
    """Runs a command line and returns what its command returned.

    Raises: SystemExit, after the lines that say why.
    """
    sys.setrecursionlimit(NESTING_LIMIT)
    try:
        with exit_on_error():
            return app(arguments)
    except CycloptsError as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        sys.exit(ExitCode.USAGE)
