"""`dynamoctl top`: replicas, GPUs and load of graphs, from their status and their frontends' metrics."""

import asyncio
import sys
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import asdict, dataclass
from itertools import count

from cyclopts import CycloptsError
from rich.console import Group
from rich.table import Table
from rich.text import Text

from dynamo_graphs.reader import Missing, Reading, absent_namespace, warn
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import label_value
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamoctl.frontend.load import Load, PodName, Sample, frontends, load_of, samples
from dynamoctl.options import Where
from dynamoctl.output import is_for_people, name_of, show_document
from dynamoctl.screen import Cell, Styled, redrawing, show, table
from dynamoctl.target import cluster, namespace_in_words, parse_object
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import visible
from kube_runtime.times import loop_time

_MEASURED = (DynamoGraphDeployment, DynamoGraphDeploymentRequest)
_SECONDS, _REQUEST_SECONDS = 2, 10
"""Time between two readings of graphs, and of a request's graph."""

_HEAD = ("GRAPH", "SERVICES", "GPUS", "REQUESTS/S", "IN FLIGHT", "TTFT", "ITL")


@dataclass(frozen=True, slots=True)
class Row:
    """A graph with the counts of its status, and its load."""

    graph: str
    services: str
    gpus: int | None
    load: Load


async def print_top(
    name: str, where: Where, output: str, *, everywhere: bool, watch: bool, interval_seconds: float | None
) -> ExitCode:
    """Print the load of graphs once or after each interval until Ctrl-C, or that of a request's graph."""
    type_, plain = parse_object(name, _MEASURED) if name else (DynamoGraphDeployment, "")
    if type_ is DynamoGraphDeploymentRequest:
        from dynamoctl.inspect.measured import print_measured

        if watch or everywhere:
            raise CycloptsError("--watch and --all-namespaces are for graphs, not for a request")
        return await print_measured(plain, where, output, interval_seconds or _REQUEST_SECONDS)
    async with cluster(where) as at:
        namespace = "" if everywhere else at.namespace
        async with aclosing(rows(at.reading, namespace, plain, interval_seconds or _SECONDS)) as turns:
            if watch and sys.stdout.isatty():
                with redrawing() as live:
                    async for graph_rows, problems in turns:
                        notes = (Text(visible(problem), style="yellow") for problem in problems)
                        live.update(Group(_table(graph_rows), *notes), refresh=True)
            async for graph_rows, problems in turns:
                await _print(at.reading, namespace, graph_rows, problems, output)
                if not watch:
                    return ExitCode.OK
    return ExitCode.OK


async def rows(
    reading: Reading, namespace: str, name: str, interval_seconds: float
) -> AsyncGenerator[tuple[list[Row], list[str]]]:
    """The graphs and their load in each interval, and the problems in words.

    "" as namespace is all namespaces, "" as name all graphs.

    Raises: OperatorError.
    """
    before: dict[PodName, Sample] = {}
    since = loop_time()
    for turn in count():
        every = await reading.all(DynamoGraphDeployment, namespace=namespace)
        graphs = sorted(
            (graph for graph in every if name in ("", graph.metadata.name)), key=lambda graph: graph.key
        )
        if name and not graphs:
            raise Missing(f"graph {name} not found in {namespace_in_words(namespace)}")
        pods = await frontends(reading, namespace, name)
        after, problems = await samples(reading, [pod for of in pods.values() for pod in of])
        now = loop_time()
        if turn:
            graph_rows = []
            for graph in graphs:
                own = pods.get((graph.key.namespace, label_value(graph.key.name)), ())
                names = [pod for pod, _ in own if pod in before and pod in after]
                load = load_of([(before[pod], after[pod]) for pod in names], now - since)
                ready = graph.status.ready_services or ""
                graph_rows.append(Row(str(graph.key), ready, graph.status.gpus, load))
            yield graph_rows, problems
        before, since = after, now
        await asyncio.sleep(interval_seconds)


async def _print(
    reading: Reading, namespace: str, graph_rows: Sequence[Row], problems: Sequence[str], output: str
) -> None:
    if not is_for_people(output):
        names = (name_of(DynamoGraphDeployment.KIND, row.graph.rpartition("/")[2]) for row in graph_rows)
        show_document(output, [asdict(row) for row in graph_rows], names)
    elif graph_rows:
        show(_table(graph_rows))
    else:
        hint = await absent_namespace(reading, namespace) if namespace else ""
        print(f"no graphs found in {namespace_in_words(namespace)}{hint}", file=sys.stderr)
    for problem in problems:
        warn(problem)


def _table(graph_rows: Sequence[Row]) -> Table:
    rows: list[tuple[Cell, ...]] = []
    for row in graph_rows:
        load = row.load
        rows.append(
            (
                Styled(row.graph, "bold"),
                row.services or "-",
                "-" if row.gpus is None else str(row.gpus),
                "-" if load.requests is None else f"{load.requests:.1f}",
                "-" if load.in_flight is None else f"{load.in_flight:.0f}",
                *("-" if it is None else f"{it * 1000:.0f} ms" for it in (load.ttft, load.itl)),
            )
        )
    return table(_HEAD, rows)
