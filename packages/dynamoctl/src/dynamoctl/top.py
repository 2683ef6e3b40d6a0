"""`dynamoctl top`: replicas, GPUs and load of graphs, from their status and their frontends' metrics.

Each frontend pod is asked through the API server's proxy of pods: the proxy of Services would reach another
pod each time, and rates are differences of one pod's counters.
"""

import asyncio
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from itertools import count

from rich.console import Group
from rich.table import Table
from rich.text import Text

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.names import label_value
from dynamo_graphs.render.components.frontend import HTTP_PORT
from dynamoctl.cluster_options import Where
from dynamoctl.frontend import Frontend
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.load import Load, Sample, load_of, sample_of
from dynamoctl.resource_args import GRAPHS, named
from dynamoctl.screen import Cell, Styled, redrawing, show, show_json, table, warn
from dynamoctl.target import Cluster, Missing, absent_namespace, cluster
from kube_runtime.clock import loop_time
from kube_runtime.commandline.errors import visible
from kube_runtime.errors import OperatorError
from kube_runtime.kind import Object
from kube_runtime.types.core import Pod

_HEAD = ("GRAPH", "SERVICES", "GPUS", "REQUESTS/S", "IN FLIGHT", "TTFT", "ITL")
_AT_ONCE = 16
"""Frontends that are asked at the same time."""
_ANSWER_SECONDS = 5.0
_MOST_BYTES = 8 * 1024 * 1024
"""Of the metrics of one pod. A user's container may answer without an end."""

PodName = tuple[str, str]
"""Namespace and name."""


class _NoMetrics(OperatorError):
    """A frontend did not answer in time, or not with metrics."""


@dataclass(frozen=True, slots=True)
class Row:
    """A graph, what its status says of it, and its load."""

    graph: str
    services: str
    gpus: int | None
    load: Load


def print_top(
    name: str,
    where: Where,
    output: str,
    *,
    everywhere: bool,
    watch: bool,
    interval_seconds: float,
) -> None:
    """Print the load of one graph or of all, once or after each interval until Ctrl-C.

    Raises: CycloptsError; OperatorError.
    """
    asyncio.run(_top(name, where, output, everywhere, watch, interval_seconds))


async def rows(
    reading: Reading, namespace: str, name: str, interval_seconds: float
) -> AsyncGenerator[tuple[list[Row], list[str]]]:
    """The graphs and their load in each interval, with what could not be measured, in words.

    An empty namespace means all, an empty name all graphs.

    Raises: OperatorError.
    """
    before: dict[PodName, Sample] = {}
    since = loop_time()
    for turn in count():
        graphs = await _graphs(reading, namespace, name)
        pods = await _frontends(reading, namespace, name)
        after, problems = await _samples(reading, [each for of in pods.values() for each in of])
        now = loop_time()
        if turn:
            yield [_row(each, pods, before, after, now - since) for each in graphs], problems
        before, since = after, now
        await asyncio.sleep(interval_seconds)


async def _top(
    name: str, where: Where, output: str, everywhere: bool, watch: bool, interval_seconds: float
) -> None:
    plain = named(name, GRAPHS)[1] if name else ""
    async with cluster(where) as at:
        namespace = "" if everywhere else at.namespace
        async with aclosing(rows(at.reading, namespace, plain, interval_seconds)) as turns:
            if watch and sys.stdout.isatty():
                with redrawing() as live:
                    async for found, problems in turns:
                        notes = (Text(visible(each), style="yellow") for each in problems)
                        live.update(Group(_table(found), *notes), refresh=True)
            async for found, problems in turns:
                await _print(at, namespace, found, problems, output)
                if not watch:
                    return


async def _print(
    at: Cluster, namespace: str, found: Sequence[Row], problems: Sequence[str], output: str
) -> None:
    if output == "json":
        show_json([asdict(each) for each in found])
    elif found:
        show(_table(found))
    else:
        place = f"namespace {namespace}" if namespace else "any namespace"
        hint = await absent_namespace(at.reading, namespace) if namespace else ""
        print(f"no graphs found in {place}{hint}", file=sys.stderr)
    for each in problems:
        warn(each)


def _table(found: Sequence[Row]) -> Table:
    return table(_HEAD, map(_cells, found))


def _cells(row: Row) -> Sequence[Cell]:
    load = row.load
    return (
        Styled(row.graph, "bold"),
        row.services or "-",
        "-" if row.gpus is None else str(row.gpus),
        "-" if load.requests is None else f"{load.requests:.1f}",
        "-" if load.in_flight is None else f"{load.in_flight:.0f}",
        _milliseconds(load.ttft),
        _milliseconds(load.itl),
    )


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.0f} ms"


async def _graphs(reading: Reading, namespace: str, name: str) -> list[DynamoGraphDeployment]:
    found = await reading.all(DynamoGraphDeployment, namespace=namespace)
    chosen = [each for each in found if name in ("", each.metadata.name)]
    if name and not chosen:
        raise Missing(f"graph {name} not found in namespace {namespace}")
    return sorted(chosen, key=lambda each: each.key)


async def _frontends(
    reading: Reading, namespace: str, name: str
) -> dict[PodName, list[tuple[PodName, int]]]:
    """The frontend pods that run with the ports of their metrics, by namespace and label of the graph."""
    selector = f"{labels.COMPONENT_TYPE}=frontend,{labels.GRAPH}"
    selector += f"={label_value(name)}" if name else ""
    found: dict[PodName, list[tuple[PodName, int]]] = {}
    for each in await reading.all_raw(Pod.KIND, namespace, labels=selector):
        metadata = each["metadata"]
        if each.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in metadata:
            graph = (metadata["namespace"], metadata["labels"][labels.GRAPH])
            pod = (metadata["namespace"], metadata["name"])
            found.setdefault(graph, []).append((pod, _port(each)))
    return found


def _port(pod: Object) -> int:
    """The port named `http` of a pod: frontends have their metrics there."""
    ports = (port for each in pod["spec"]["containers"] for port in each.get("ports", ()))
    return next((it["containerPort"] for it in ports if it.get("name") == "http"), HTTP_PORT)


async def _samples(
    reading: Reading, pods: Sequence[tuple[PodName, int]]
) -> tuple[dict[PodName, Sample], list[str]]:
    """The samples of pods, and why others have none."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def sample(pod: PodName, port: int) -> Sample | str:
        async with places:
            try:
                return await _sample(reading, pod, port)
            except OperatorError as error:
                return f"no metrics of pod {'/'.join(pod)}: {error}"

    found = await asyncio.gather(*(sample(*each) for each in pods))
    named_ = list(zip((pod for pod, _ in pods), found, strict=True))
    samples = {pod: each for pod, each in named_ if not isinstance(each, str)}
    return samples, [each for _, each in named_ if isinstance(each, str)]


async def _sample(reading: Reading, pod: PodName, port: int) -> Sample:
    namespace, name = pod
    path = Pod.KIND.path(namespace, f"http:{name}:{port}", "proxy")
    body = bytearray()
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            frontend = Frontend(reading.transport, name, port, path)
            async with frontend.answered("GET", "/metrics") as answer:
                async for part in answer.body:
                    body += part
                    if len(body) > _MOST_BYTES:
                        raise _NoMetrics(f"more than {_MOST_BYTES // 2**20} MiB")
    except TimeoutError:
        raise _NoMetrics(f"no answer within {_ANSWER_SECONDS:.0f} s") from None
    found = sample_of(body.decode(errors="replace"))
    if not found:
        raise _NoMetrics("the answer has no metrics of a Dynamo frontend")
    return found


def _row(
    graph: DynamoGraphDeployment,
    pods: Mapping[PodName, Sequence[tuple[PodName, int]]],
    before: Mapping[PodName, Sample],
    after: Mapping[PodName, Sample],
    seconds: float,
) -> Row:
    namespace, name = graph.key
    names = [pod for pod, _ in pods.get((namespace, label_value(name)), ())]
    pairs = [(before[each], after[each]) for each in names if each in before and each in after]
    status = graph.status
    return Row(str(graph.key), status.ready_services or "", status.gpus, load_of(pairs, seconds))
