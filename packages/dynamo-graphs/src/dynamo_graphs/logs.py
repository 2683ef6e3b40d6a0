"""The logs of the pods of a graph."""

import asyncio
import re
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import aclosing
from dataclasses import dataclass, field

from dynamo_graphs.reader import Missing, Target, service_of
from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import label_value
from kube_runtime.client.client import MOST_ERROR_BYTES, Request, Transport, error_of_answer
from kube_runtime.errors import ApiError, Invalid, NotFound, Unreachable, visible
from kube_runtime.types.kinds import Pod
from kube_runtime.types.meta import Key, Selector
from kube_runtime.wire import path_of

_AGAIN_SECONDS = 1.0
"""Pause before the next request for the log of a container that ended or has not started."""

_OK, _NO_CONTENT = 200, 204

LINE_BYTES = 64 * 1024
"""Most bytes of a line that are kept, so that one line cannot fill the memory."""

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_NANOSECONDS = 9
_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line, and when it was written: RFC 3339, UTC, as the kubelet prints it; "" without a time."""

    time: str
    text: str

    @property
    def order(self) -> str:
        """The time in a form that sorts: the kubelet leaves out zeros at the end of a fraction."""
        whole, _, fraction = self.time.removesuffix("Z").partition(".")
        return f"{whole}.{fraction.ljust(_NANOSECONDS, '0')}" if whole else ""


@dataclass(slots=True)
class Logs:
    """Lines with the name of their pod, pod by pod; `unread` has the pods without a readable log, and why."""

    lines: list[tuple[str, LogLine]] = field(default_factory=list[tuple[str, LogLine]])
    unread: list[str] = field(default_factory=list[str])

    def write(self, pod: str, line: LogLine) -> None:
        """Add a line."""
        self.lines.append((pod, line))

    def fail(self, pod: str, error: Exception) -> None:
        """Add a pod without a readable log."""
        self.unread.append(f"{pod}: {error}")

    def __str__(self) -> str:
        return "\n".join(f"{pod}  {line.text}" for pod, line in self.lines)


async def bounded_lines(chunks: AsyncIterator[bytes]) -> AsyncGenerator[bytes, None]:
    """Split chunks into lines of at most `LINE_BYTES`; the last one may lack its line end."""
    begun = b""
    async for chunk in chunks:
        *ends, rest = chunk.split(b"\n")
        for end in ends:
            yield (begun + end[:LINE_BYTES])[:LINE_BYTES]
            begun = b""
        begun = (begun + rest[:LINE_BYTES])[:LINE_BYTES]
    if begun:
        yield begun


def log_line(raw: bytes) -> LogLine:
    """Decode a line that the kubelet wrote with its time; colours and control characters are removed."""
    text = raw.decode("utf-8", "replace").rstrip("\r")
    time, space, rest = text.partition(" ")
    if not _TIME.fullmatch(time):
        time, rest = "", text
    elif not space:
        rest = ""
    return LogLine(time, visible(_COLOUR.sub("", rest)))


def log_query(
    container: str,
    tail: int,
    *,
    since_seconds: int | None = None,
    previous: bool = False,
    follow: bool = False,
) -> dict[str, str]:
    """The query of the request for a log; `tail` -1 is all lines."""
    query = {"container": container, "timestamps": "true"}
    if tail >= 0:
        query["tailLines"] = str(tail)
    if since_seconds is not None:
        query["sinceSeconds"] = str(since_seconds)
    for name, is_on in (("previous", previous), ("follow", follow)):
        if is_on:
            query[name] = "true"
    return query


async def log_of(
    transport: Transport, pod: Key, query: Mapping[str, str], *, timeout_seconds: float | None
) -> AsyncGenerator[LogLine, None]:
    """Read the log of a container line by line.

    Raises: ApiError if there is no such log, or it may not be read; Unreachable if the connection was cut.
    """
    path = path_of(Pod.KIND, *pod, "log")
    request = Request("GET", path, query, timeout_seconds=timeout_seconds, accept="*/*")
    answer = await transport.send(request)
    try:
        if answer.status == _NO_CONTENT:
            raise Invalid(answer.status, "", "the container has not started, so it has no log")
        if answer.status != _OK:
            raise error_of_answer(answer.status, answer.headers, await answer.read(MOST_ERROR_BYTES))
        async with aclosing(bounded_lines(answer.body)) as lines:
            async for line in lines:
                yield log_line(line)
    finally:
        await answer.aclose()


@dataclass(slots=True)
class PodLog:
    """The log of one container. `write` gets the pod's name and each line; `printed` is the last one.

    `failed` gets the pod's name and each error of a log that is followed.
    """

    transport: Transport
    pod: Pod
    query: Mapping[str, str]
    write: Callable[[str, LogLine], None]
    failed: Callable[[str, Exception], None] = lambda _pod, _error: None
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
                    self.failed(self.pod.metadata.name, error)
            await asyncio.sleep(_AGAIN_SECONDS)
            if self.printed.time:
                rest = {key: value for key, value in self.query.items() if key != "tailLines"}
                rest.pop("sinceSeconds", None)
                self.query = {**rest, "sinceTime": self.printed.time}


def pod_selector(graph: DynamoGraphDeployment, service: str) -> str:
    """The label selector of the pods of a graph, or of one of its services.

    Raises: Missing if there is no such service.
    """
    selector = f"{labels.GRAPH}={label_value(graph.metadata.name)}"
    if not service:
        return selector
    service_of(graph, service)  # raises Missing
    return f"{selector},{labels.COMPONENT}={label_value(service)}"


async def read_logs(
    at: Target[DynamoGraphDeployment],
    service: str,
    query: Mapping[str, str],
    write: Callable[[str, LogLine], None],
    failed: Callable[[str, Exception], None],
) -> bool:
    """Read the logs of a graph, or of one of its services; whether there is one that could be read.

    Lines are handed to `write` as they arrive and not kept, so long logs need no memory; `failed` gets the
    errors, both after the name of the pod. A query that follows logs ends with an error only; it also reads
    those of new pods.

    Raises: Missing if there is no such graph or service, or it has no pods.
    """

    def log(pod: Pod) -> PodLog:
        return PodLog(at.reading.transport, pod, query, write, failed)

    selector = pod_selector(await at.get(), service)
    if "follow" in query:
        await _follow(at, selector, log)
    was_read = False
    for pod in await _pods_of(at, service, selector):
        try:
            await log(pod).print()
            was_read = True
        except ApiError as error:
            failed(pod.metadata.name, error)
    return was_read


async def _follow(at: Target[DynamoGraphDeployment], selector: str, log: Callable[[Pod], PodLog]) -> None:
    from dynamo_graphs.watching import snapshots

    selection = Selector(at.key.namespace, labels=selector)
    followed: dict[str, asyncio.Task[None]] = {}
    states = snapshots(at.reading.client, Pod, selection)
    async with asyncio.TaskGroup() as together, aclosing(states):
        async for pods in states:
            for pod in pods.values():
                if pod.metadata.uid not in followed:
                    followed[pod.metadata.uid] = together.create_task(log(pod).follow())
            uids = {pod.metadata.uid for pod in pods.values()}
            for uid in followed.keys() - uids:
                if followed[uid].done():
                    del followed[uid]


async def _pods_of(at: Target[DynamoGraphDeployment], service: str, selector: str) -> list[Pod]:
    """The pods of a graph, or of one of its services, by name."""
    pods = await at.reading.all(Pod, namespace=at.key.namespace, labels=selector)
    if not pods:
        raise Missing(f"{visible(f'{at.key}/{service}'.rstrip('/'))} has no pods")
    return sorted(pods, key=lambda it: it.metadata.name)
