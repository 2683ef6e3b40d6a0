"""The options of `dynamoctl logs`; parsed before the code of the command is imported."""

from dataclasses import dataclass
from typing import Annotated

from cyclopts import Parameter


@Parameter(name="*")
@dataclass(frozen=True, slots=True)
class LogOptions:
    """Which lines to print.

    Parameters
    ----------
    follow
        Follow the logs until Ctrl-C, through restarts and of new pods too.
    previous
        Print the logs of the container before its last restart.
    container
        Container of the pods.
    tail
        Last lines of each pod to begin with; -1 is all of them.
    since
        Only lines of this last time, for example 10m.
    timestamps
        Print the time of each line.
    """

    follow: Annotated[bool, Parameter(name=["--follow", "-f"])] = False
    previous: Annotated[bool, Parameter(name=["--previous", "-p"])] = False
    container: Annotated[str, Parameter(name=["--container", "-c"], metavar="NAME")] = "main"
    tail: Annotated[int, Parameter(metavar="LINES", allow_leading_hyphen=True)] = 100
    since: Annotated[str, Parameter(metavar="DURATION", show_default=False)] = ""
    timestamps: bool = False


ALL_LINES = LogOptions()
"""Those of a command line that says nothing."""
