"""The files of a command line: positional, or with `--filename` as for kubectl."""

from typing import Annotated

from cyclopts import CycloptsError, Parameter

Paths = Annotated[str, Parameter(metavar="FILE", show_default=False, allow_leading_hyphen=True)]
Files = Annotated[
    tuple[str, ...],
    Parameter(
        name=["--filename", "-f"], metavar="FILE", show_default=False, allow_leading_hyphen=True
    ),
]


def given(paths: tuple[str, ...], files: tuple[str, ...]) -> list[str]:
    """The files of a command line, of which there must be one.

    Raises: CycloptsError.
    """
    if not (paths or files):
        raise CycloptsError(msg="missing file: expected FILE or --filename FILE")
    return [*paths, *files]
