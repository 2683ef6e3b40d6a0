"""`dynamoctl requests why`: whether the graph of a request meets its targets, by its frontends' metrics."""

import asyncio
from dataclasses import asdict, dataclass, replace

from rich.console import RenderableType
from rich.table import Table

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.names import label_value
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamoctl.cluster_options import Where
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.load import Load, load_of
from dynamoctl.promises import Check, Promise, advice, checks, promise_of
from dynamoctl.scrapes import frontends, samples
from dynamoctl.screen import Cell, Styled, show, show_json, table, warn
from dynamoctl.target import Missing, place
from kube_runtime.clock import loop_time
from kube_runtime.commandline.errors import ExitCode, visible
from kube_runtime.kind import Key, Object

_HEAD = ("", "PROMISED", "MEASURED", "")


@dataclass(frozen=True, slots=True)
class Measured:
    """What the frontends of a request's graph did. `when` says in words over which time.

    `problems` are pods that could not be asked, in words.
    """

    request: DynamoGraphDeploymentRequest
    graph: DynamoGraphDeployment
    promise: Promise
    load: Load
    when: str
    problems: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[Check, Check]:
        """Both targets with what was measured."""
        return checks(self.promise, self.load)

    @property
    def advice(self) -> list[str]:
        """What to do about the targets that are missed."""
        return advice(self.promise, self.load, self.graph)

    @property
    def is_well(self) -> bool:
        """Whether no target is missed."""
        return not any(each.is_missed for each in self.checks)


def print_measured(name: str, where: Where, output: str, interval_seconds: float) -> ExitCode:
    """Print the promised and the measured latency of a request's graph; 0 if its targets are met.

    Raises: CycloptsError; OperatorError: it cannot be measured.
    """
    return asyncio.run(_print(name, where, output, interval_seconds))


async def measured(
    reading: Reading, request: DynamoGraphDeploymentRequest, interval_seconds: float
) -> Measured:
    """What the graph of a request does within the interval, or without requests since its frontends started.

    Raises:
        Missing: there is no graph, no frontend that runs, or no metrics, or no request was answered.
        OperatorError: the request has no usable targets, or the API server does not answer.
    """
    promise = promise_of(request)
    graph = await _graph(reading, request)
    namespace, name = graph.key
    found = await frontends(reading, namespace, name)
    pods = found.get((namespace, label_value(name)), [])
    if not pods:
        raise Missing(f"graph {graph.key} has no running frontend; see `dynamoctl why {name}`")
    before, _ = await samples(reading, pods)
    since = loop_time()
    await asyncio.sleep(interval_seconds)
    after, problems = await samples(reading, pods)
    passed = loop_time() - since
    if not after:
        raise Missing("; ".join(problems))
    pairs = [(before[each], after[each]) for each in after if each in before]
    load, when = load_of(pairs, passed), f"in the last {interval_seconds:.0f} s"
    if load.ttft is None:
        total = load_of([({}, each) for each in after.values()], passed)
        load, when = replace(total, requests=None), "since its frontends started"
    if load.ttft is None:
        raise Missing(
            f"graph {graph.key} has answered no request since its frontends started; send one, for example "
            f"`dynamoctl chat {name} hello`"
        )
    return Measured(request, graph, promise, load, when, tuple(problems))


def parts(found: Measured) -> list[RenderableType]:
    """The parts of a screen: over which time, promised and measured values, and what to do."""
    spec = found.request.spec
    engines = ", simulated engines (useMocker)" if spec and spec.use_mocker else ""
    lines = [visible(f"→ {each}") for each in found.advice]
    title = visible(f"graph {found.graph.key}, means {found.when}{engines}")
    return [title, "", _table(found), *(["", *lines] if lines else ())]


def document(found: Measured) -> Object:
    """The same for machines. Units: seconds, tokens, requests per second."""
    return {
        "request": str(found.request.key),
        "graph": str(found.graph.key),
        "meetsTargets": found.is_well,
        "when": found.when,
        "promised": asdict(found.promise),
        "measured": asdict(found.load),
        "advice": found.advice,
    }


async def _print(name: str, where: Where, output: str, interval_seconds: float) -> ExitCode:
    async with place(name, where, (DynamoGraphDeploymentRequest,)) as at:
        found = await measured(at.reading, await at.found(), interval_seconds)
    for each in found.problems:
        warn(each)
    if output == "json":
        show_json(document(found))
    else:
        show(*parts(found))
    return ExitCode.OK if found.is_well else ExitCode.PROBLEMS


async def _graph(reading: Reading, request: DynamoGraphDeploymentRequest) -> DynamoGraphDeployment:
    """The graph that was made for a request, by the operator or by its user.

    Raises: Missing.
    """
    status, own = request.status, request.metadata.namespace
    state = f"{status.state or 'not reconciled yet'}: {status.message or 'no message'}"
    if status.deployment is not None and status.deployment.name:
        key = Key(status.deployment.namespace or own, status.deployment.name)
    elif status.generated_deployment is not None:
        metadata = status.generated_deployment.get("metadata") or {}
        key = Key(metadata.get("namespace") or own, metadata.get("name") or request.metadata.name)
    else:
        raise Missing(f"request {request.key} has no graph: {state}")
    graph = await reading.one(DynamoGraphDeployment, key)
    if graph is None:
        raise Missing(f"graph {key} of request {request.key} does not exist: {state}")
    return graph


def _table(found: Measured) -> Table:
    load, promise = found.load, found.promise
    rows: list[tuple[Cell, ...]] = [
        (each.name, _milliseconds(each.target), _milliseconds(each.measured), _verdict(each))
        for each in found.checks
    ]
    pairs = (
        ("tokens of a prompt", promise.targets.isl, load.isl),
        ("tokens of an answer", promise.targets.osl, load.osl),
        ("requests/s", promise.requests_per_second, load.requests),
    )
    rows += [(what, _number(one), _number(other)) for what, one, other in pairs]
    return table(_HEAD, rows)


def _verdict(check: Check) -> Cell:
    style = "red" if check.is_missed else "green"
    return Styled(check.verdict, style) if check.measured is not None else check.verdict


def _milliseconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1000:.4g} ms"


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.4g}"
