"""What both programs have in common: one line per usage error, exit code 2, no negative flags."""

from cyclopts import App, CycloptsError, Parameter

from dynamo_operator.cli.errors import one_line
from dynamo_operator.version import version as package_version


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


def _usage_error(error: CycloptsError) -> str:
    return f"error: {one_line(str(error))}"
