"""`dynamoctl logs`: the logs of all pods of a graph or of one service, each line after its pod.

Lines are printed as they arrive and not kept, so long logs need no memory.
"""

import asyncio
import sys
from collections.abc import Mapping
from contextlib import aclosing

from rich.console import Console
from rich.text import Text

from dynamo_graphs.logs import LogLine, PodLog, pod_selector, pods_of
from dynamo_graphs.reader import GRAPHS, Target, warn
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.options import Where
from dynamoctl.screen import console
from dynamoctl.target import parse_service, target_of
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import ApiError
from kube_runtime.types.kinds import Pod

_COLOURS = ("cyan", "green", "yellow", "magenta", "blue", "bright_cyan", "bright_green", "bright_magenta")


async def print_logs(name: str, where: Where, query: Mapping[str, str], *, has_timestamps: bool) -> ExitCode:
    """Print the logs; `name` is GRAPH or GRAPH/SERVICE."""
    graph, service = parse_service(name)
    printer = LogPrinter(console(), has_timestamps=has_timestamps)
    async with target_of(graph, where, GRAPHS) as at:
        selector = pod_selector(await at.get(), service)
        if "follow" in query:
            await _follow(at, selector, query, printer)
            return ExitCode.OK
        code = ExitCode.PROBLEMS
        for pod in await pods_of(at, service, selector):
            try:
                await PodLog(at.reading.transport, pod, query, printer.write).print()
                code = ExitCode.OK
            except ApiError as error:
                _warn(pod.metadata.name, error)
    return code


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


async def _follow(
    at: Target[DynamoGraphDeployment], selector: str, query: Mapping[str, str], printer: LogPrinter
) -> None:
    from dynamo_graphs.watching import snapshots
    from kube_runtime.types.meta import Selector

    selection = Selector(at.key.namespace, labels=selector)
    followed: dict[str, asyncio.Task[None]] = {}
    states = snapshots(at.reading.client, Pod, selection)
    async with asyncio.TaskGroup() as together, aclosing(states):
        async for pods in states:
            for pod in pods.values():
                if pod.metadata.uid not in followed:
                    log = PodLog(at.reading.transport, pod, query, printer.write, _warn)
                    followed[pod.metadata.uid] = together.create_task(log.follow())
            uids = {pod.metadata.uid for pod in pods.values()}
            for uid in followed.keys() - uids:
                if followed[uid].done():
                    del followed[uid]


def _warn(pod: str, error: Exception) -> None:
    warn(f"{pod}: {error}")
