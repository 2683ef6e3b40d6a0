"""What both programs have in common: one line per usage error, exit code 2, no negative flags."""

from typing import TYPE_CHECKING

from cyclopts import App, CycloptsError, Parameter

from dynamo_operator.cli.errors import one_line
from dynamo_operator.version import version as package_version

if TYPE_CHECKING:
    from rich.text import Text


def application(name: str, text: str | None = None) -> App:
    """An app without commands yet."""
    return App(
        name=name,
        help=text,
        help_format="plaintext",
        version_flags=[],
        default_parameter=Parameter(negative=()),
        error_formatter=_usage_error,
        result_action="return_value",
    )


def version() -> None:
    """Print the version."""
    print(package_version())


def _usage_error(error: CycloptsError) -> "Text":
    """The error as text that rich neither folds nor reads as markup."""
    from rich.text import Text

    return Text(f"error: {one_line(str(error))}", no_wrap=True, overflow="ignore")
