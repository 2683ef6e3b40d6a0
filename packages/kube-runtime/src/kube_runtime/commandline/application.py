"""What programs have in common: one line per usage error, exit code 2, no negative flags."""

import sys
from collections.abc import Callable, Sequence

from cyclopts import App, CycloptsError, Parameter

from kube_runtime.commandline.errors import ExitCode, exit_on_error, one_line


def application(
    name: str, text: str | None = None, *, version: Callable[[], str] | None = None
) -> App:
    """An app without commands yet, but for `version`, which prints what `version` returns."""
    app = App(
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
    try:
        with exit_on_error():
            return app(arguments)
    except CycloptsError as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        sys.exit(ExitCode.USAGE)
