"""`dynamoctl logs`: the logs of all pods of a graph or of one service, each line after its pod.

Lines are printed as they arrive and not kept, so long logs need no memory.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from cyclopts import CycloptsError
from rich.console import Console
from rich.text import Text

from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import label_value
from dynamoctl.cluster.target import GRAPHS, Missing, Target, parse_service, service_of, target_of
from dynamoctl.options import LogOptions, Where
from dynamoctl.screen import LogLine, bounded_lines, console, log_line, seconds, warn
from kube_runtime.client.client import Request, Transport, error_of_answer
from kube_runtime.commandline import ExitCode, visible
from kube_runtime.errors import ApiError, NotFound, Unreachable
from kube_runtime.kind import Key
from kube_runtime.types.kinds import Pod
from kube_runtime.url_path import path_of

_AGAIN_SECONDS = 1.0
"""Pause before the next request for the log of a container that ended or has not started."""

_COLOURS = (
    "cyan",
    "green",
    "yellow",
    "magenta",
    "blue",
    "bright_cyan",
    "bright_green",
    "bright_magenta",
)
_OK = 200


def log_query(options: LogOptions) -> dict[str, str]:
    """The query of the request for a log.

    Raises: CycloptsError.
    """
    if options.tail < -1:
        raise CycloptsError(f"invalid --tail {options.tail} (expected a number of lines, or -1)")
    if options.previous and options.follow:
        raise CycloptsError("--previous and --follow exclude each other")
    query = {"container": options.container, "timestamps": "true"}
    if options.tail >= 0:
        query["tailLines"] = str(options.tail)
    if options.since:
        query["sinceSeconds"] = str(seconds(options.since))
    for name, is_on in (("previous", options.previous), ("follow", options.follow)):
        if is_on:
            query[name] = "true"
    return query


async def print_logs(name: str, where: Where, options: LogOptions) -> ExitCode:
    """Print the logs; `name` is GRAPH or GRAPH/SERVICE.

    Raises: CycloptsError; OperatorError, or a group of them.
    """
    graph, service = parse_service(name)
    query = log_query(options)
    printer = LogPrinter(console(), has_timestamps=options.timestamps)
    async with target_of(graph, where, GRAPHS) as at:
        selector = pod_selector(await at.get(), service)
        if options.follow:
            await _follow(at, selector, query, printer)
            return ExitCode.OK
        results = [
            await _printed(PodLog(at.reading.transport, pod, query, printer.write))
            for pod in await pods_of(at, service, selector)
        ]
    return ExitCode.OK if any(results) else ExitCode.PROBLEMS


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


async def log_of(
    transport: Transport, pod: Key, query: Mapping[str, str], *, timeout_seconds: float | None
) -> AsyncGenerator[LogLine, None]:
    """Read the log of a container line by line.

    Raises:
        ApiError: there is no such log, or it may not be read.
        Unreachable: the connection was cut.
    """
    path = path_of(Pod.KIND, *pod, "log")
    request = Request("GET", path, query, timeout_seconds=timeout_seconds, accept="*/*")
    answer = await transport.send(request)
    try:
        if answer.status != _OK:
            raise error_of_answer(answer.status, answer.headers, await answer.read_error())
        async with aclosing(bounded_lines(answer.body)) as lines:
            async for line in lines:
                yield log_line(line)
    finally:
        await answer.aclose()


@dataclass(slots=True)
class PodLog:
    """The log of one container. `write` gets the pod's name and each line; `printed` is the last one."""

    transport: Transport
    pod: Pod
    query: Mapping[str, str]
    write: Callable[[str, LogLine], None]
    printed: LogLine = field(default_factory=lambda: LogLine("", ""))

    async def print(self) -> None:
        """Print the log up to now, or until the container ends if the query follows it.

        Raises:
            ApiError: there is no such log, or it may not be read.
            Unreachable: the connection was cut.
        """
        stream = log_of(self.transport, self.pod.key, self.query, timeout_seconds=None)
        async with aclosing(stream) as lines:
            async for line in lines:
                if not line.time or line.order > self.printed.order:
                    self.write(self.pod.metadata.name, line)
                    self.printed = line if line.time else self.printed

    async def follow(self) -> None:
        """Print the log until the pod is gone, through container restarts and lost connections."""
        reported = ""
        while True:
            try:
                await self.print()
            except NotFound:
                return
            except (ApiError, Unreachable) as error:
                if str(error) != reported:  # not every second
                    reported = str(error)
                    _warn(self.pod, error)
            await asyncio.sleep(_AGAIN_SECONDS)
            if self.printed.time:
                rest = {key: value for key, value in self.query.items() if key != "tailLines"}
                rest.pop("sinceSeconds", None)
                self.query = {**rest, "sinceTime": self.printed.time}


def pod_selector(graph: DynamoGraphDeployment, service: str) -> str:
    """The label selector of the pods of a graph, or of one of its services.

    Raises:
        Missing: there is no such service.
    """
    selector = f"{labels.GRAPH}={label_value(graph.metadata.name)}"
    if not service:
        return selector
    service_of(graph, service)  # raises Missing
    return f"{selector},{labels.COMPONENT}={label_value(service)}"


async def pods_of(at: Target[DynamoGraphDeployment], service: str, selector: str) -> list[Pod]:
    """The pods of a graph, or of one of its services, by name.

    Raises:
        Missing: there are none.
    """
    pods = await at.reading.all(Pod, namespace=at.key.namespace, labels=selector)
    if not pods:
        raise Missing(f"{visible(f'{at.key}/{service}'.rstrip('/'))} has no pods")
    return sorted(pods, key=lambda it: it.metadata.name)


async def _printed(log: PodLog) -> bool:
    """Print a log; False, after a warning, if it cannot be read."""
    try:
        await log.print()
    except ApiError as error:
        _warn(log.pod, error)
        return False
    return True


async def _follow(
    at: Target[DynamoGraphDeployment], selector: str, query: Mapping[str, str], printer: LogPrinter
) -> None:
    from dynamoctl.cluster.watching import snapshots
    from kube_runtime.cache.watch import Selector

    selection = Selector(at.key.namespace, labels=selector)
    followed: dict[str, asyncio.Task[None]] = {}
    states = snapshots(at.reading.client, Pod, selection)
    async with asyncio.TaskGroup() as together, aclosing(states):
        async for pods in states:
            for pod in pods.values():
                if pod.metadata.uid not in followed:
                    log = PodLog(at.reading.transport, pod, query, printer.write)
                    followed[pod.metadata.uid] = together.create_task(log.follow())
            uids = {pod.metadata.uid for pod in pods.values()}
            for uid in followed.keys() - uids:
                if followed[uid].done():
                    del followed[uid]


def _warn(pod: Pod, error: Exception) -> None:
    warn(f"{pod.metadata.name}: {error}")
