"""`dynamoctl logs`: the logs of all pods of a graph or of one service, each line after its pod."""

import sys
from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from dynamo_graphs.logs import LogLine, read_logs
from dynamo_graphs.reader import GRAPHS, warn
from dynamoctl.options import Where
from dynamoctl.screen import console
from dynamoctl.target import parse_service, target_of
from kube_runtime.commandline import ExitCode

_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")


async def print_logs(name: str, where: Where, query: Mapping[str, str], *, has_timestamps: bool) -> ExitCode:
    """Print the logs; `name` is GRAPH or GRAPH/SERVICE."""
    graph, service = parse_service(name)
    printer = LogPrinter(console(), has_timestamps=has_timestamps)
    async with target_of(graph, where, GRAPHS) as at:
        was_read = await read_logs(at, service, query, printer.write, _warn)
    return ExitCode.OK if was_read else ExitCode.PROBLEMS


class LogPrinter:
    """Prints lines after the name of their pod, each pod in a colour of its own on a terminal."""

    def __init__(self, screen: Console, *, has_timestamps: bool) -> None:
        self._screen = screen
        self._has_timestamps = has_timestamps
        self._colours: dict[str, str] = {}

    def write(self, pod: str, line: LogLine) -> None:
        """Print one line."""
        time = f"{line.time} " if self._has_timestamps and line.time else ""
        if not self._screen.is_terminal:
            sys.stdout.write(f"{pod}  {time}{line.text}\n")
            sys.stdout.flush()
            return
        colour = self._colours.setdefault(pod, _COLOURS[len(self._colours) % len(_COLOURS)])
        text = Text.assemble((pod, colour), "  ", (time, "dim"), line.text)
        self._screen.print(text, soft_wrap=True)


def _warn(pod: str, error: Exception) -> None:
    warn(f"{pod}: {error}")
