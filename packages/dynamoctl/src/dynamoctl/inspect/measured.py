"""`dynamoctl top dgdr/NAME`: compare the targets of a request with the metrics of its graph's frontends."""

import asyncio
import math
from dataclasses import asdict, dataclass, replace

from rich.console import RenderableType

from dynamo_graphs.reader import Missing, Reading, warn
from dynamo_operator.component.api import is_worker
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.names import label_value
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest, accepted_spec
from dynamo_operator.requests.extras import in_v1beta1, written_spec
from dynamo_profiler import Refusal
from dynamo_profiler.configuration import Section, Targets, targets_of
from dynamo_profiler.request import configuration_of
from dynamoctl.frontend.load import Load, frontends, load_of, samples
from dynamoctl.options import Where
from dynamoctl.output import is_for_people, name_of, show_document
from dynamoctl.screen import Cell, Styled, show, table
from dynamoctl.target import target_of
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import ConfigError, visible
from kube_runtime.times import loop_time
from kube_runtime.types.meta import Key, Object

_NOTABLE = 1.1
"""Factor over the promised length or load from which it explains a missed target."""
_MOST_PER_SECOND = 1e6


@dataclass(frozen=True, slots=True)
class Promise:
    """What a graph was chosen for. `requests_per_second` is None if the request does not set it."""

    targets: Targets
    requests_per_second: float | None = None


@dataclass(frozen=True, slots=True)
class Check:
    """A target and the measured mean, in seconds; None if there was nothing to measure."""

    name: str
    target: float
    measured: float | None

    @property
    def is_missed(self) -> bool:
        """Whether the mean is above the target."""
        return self.measured is not None and self.measured > self.target

    @property
    def verdict(self) -> str:
        """Whether the target is met, and by how much it is missed."""
        if self.measured is None:
            return "not measured"
        if not self.is_missed:
            return "met"
        return f"missed by {self.measured / self.target - 1:.0%}"


def promise_of(request: DynamoGraphDeploymentRequest) -> Promise:
    """The targets that the request was accepted with.

    Raises: ConfigError if a target is not a valid number, or the spec is missing.
    """
    try:
        spec = accepted_spec(request)
    except ValueError:
        raise ConfigError("spec", "is missing") from None
    path, config = "spec.profilingConfig.config", spec.profiling_config.config or {}
    if in_v1beta1(request):  # which has other defaults
        try:
            path, config = "spec", configuration_of(written_spec(request, spec, ""))
        except Refusal as error:
            raise ConfigError("spec", str(error)) from None
    whole = Section(config)
    targets = targets_of(whole.section("sla"))
    rate = whole.section("analytic").number("requestsPerSecond", None, most=_MOST_PER_SECOND)
    if whole.mistakes:
        raise ConfigError(path, "; ".join(whole.mistakes))
    return Promise(targets, rate)


def _scaled(check: Check, graph: DynamoGraphDeployment, factor: float) -> str:
    """The command that adds replicas, at least one, to the workers that a target depends on."""
    half = "prefill" if check.name == "TTFT" else "decode"
    workers = {key: service for key, service in graph.spec.services.items() if is_worker(service)}
    keys = [key for key, it in workers.items() if half in (it.component_type, it.sub_component_type)]
    keys = keys or sorted(workers) or ["SERVICE"]
    service = workers.get(keys[0])
    now = (service.replicas if service else None) or 1
    replicas = max(now + 1, math.ceil(now * factor))
    return f"`dynamoctl scale {graph.metadata.name}/{keys[0]} --replicas {replicas}`"


_HEAD = ("", "PROMISED", "MEASURED", "")


@dataclass(frozen=True, slots=True)
class Measured:
    """The load on the frontends of a request's graph. `when` is the period, in words.

    `problems` are pods whose metrics could not be read, in words.
    """

    request: DynamoGraphDeploymentRequest
    graph: DynamoGraphDeployment
    promise: Promise
    load: Load
    when: str
    problems: tuple[str, ...] = ()

    @property
    def checks(self) -> tuple[Check, Check]:
        """Both targets with their measured means."""
        targets, load = self.promise.targets, self.load
        return Check("TTFT", targets.ttft, load.ttft), Check("ITL", targets.itl, load.itl)

    @property
    def advice(self) -> list[str]:
        """What to do about the targets that are missed; nothing if all are met.

        A graph that gets longer prompts or more requests than promised needs another choice or more replicas.
        Otherwise its engines are slower than predicted, or requests wait for each other.
        """
        missed = [check for check in self.checks if check.is_missed]
        if not missed:
            return []
        load, promise, is_later = self.load, self.promise, in_v1beta1(self.request)
        targets, reasons, section = promise.targets, list[str](), "workload" if is_later else "sla"
        pairs = (("prompts", "isl", targets.isl, load.isl), ("answers", "osl", targets.osl, load.osl))
        for noun, key, planned, measured in pairs:
            if measured is not None and measured > planned * _NOTABLE:
                reasons.append(
                    f"{noun} have {measured:.0f} tokens on average, and the graph is for {planned}: "
                    f"create a request with {section}.{key}: {math.ceil(measured)}"
                )
        rate, promised = load.requests, promise.requests_per_second
        if rate is not None and promised is not None and rate > promised * _NOTABLE:
            scale = ", ".join(_scaled(check, self.graph, rate / promised) for check in missed)
            reasons.append(f"{rate:.3g} requests/s come, and the graph is for {promised:g}: {scale}")
        if reasons:
            return reasons
        if load.in_flight is not None and load.in_flight <= 1:
            text = "requests do not wait for each other, so replicas do not help: the engine is slower than "
            margin = "" if is_later else "a larger analytic.margin or "
            return [f"{text}predicted; create a request with {margin}a stricter target"]
        scale = ", ".join(_scaled(check, self.graph, 1) for check in missed)
        return [f"the requests are those that the graph is for, and wait for each other: {scale}"]

    @property
    def is_well(self) -> bool:
        """Whether no target is missed."""
        return not any(check.is_missed for check in self.checks)


async def print_measured(name: str, where: Where, output: str, interval_seconds: float) -> ExitCode:
    """Print the promised and the measured latency of a request's graph; 0 if its targets are met.

    Raises: CycloptsError; OperatorError: it cannot be measured.
    """
    async with target_of(name, where, (DynamoGraphDeploymentRequest,)) as at:
        measurement = await measured(at.reading, await at.get(), interval_seconds)
    for problem in measurement.problems:
        warn(problem)
    if is_for_people(output):
        show(*parts(measurement))
    else:
        names = [name_of(DynamoGraphDeploymentRequest.KIND, measurement.request.metadata.name)]
        show_document(output, document(measurement), names)
    return ExitCode.OK if measurement.is_well else ExitCode.PROBLEMS


async def measured(
    reading: Reading, request: DynamoGraphDeploymentRequest, interval_seconds: float
) -> Measured:
    """Measure the graph of a request within the interval; without requests, since its frontends started.

    Raises:
        Missing: there is no graph, no running frontend or no metrics, or no request was answered.
        OperatorError: the request has no usable targets, or the API server does not answer.
    """
    promise = promise_of(request)
    graph = await _graph(reading, request)
    namespace, name = graph.key
    pods_by_graph = await frontends(reading, namespace, name)
    pods = pods_by_graph.get((namespace, label_value(name)), [])
    if not pods:
        raise Missing(f"graph {graph.key} has no running frontend; see `dynamoctl why {name}`")
    before, _ = await samples(reading, pods)
    since = loop_time()
    await asyncio.sleep(interval_seconds)
    after, problems = await samples(reading, pods)
    passed = loop_time() - since
    if not after:
        raise Missing("; ".join(problems))
    pairs = [(before[pod], after[pod]) for pod in after if pod in before]
    load, when = load_of(pairs, passed), f"in the last {interval_seconds:.0f} s"
    if load.ttft is None:
        total = load_of([({}, sample) for sample in after.values()], passed)
        load, when = replace(total, requests=None), "since its frontends started"
    if load.ttft is None:
        raise Missing(
            f"graph {graph.key} has answered no request since its frontends started; send one, for example "
            f"`dynamoctl chat {name} hello`"
        )
    return Measured(request, graph, promise, load, when, tuple(problems))


def parts(measurement: Measured) -> list[RenderableType]:
    """The parts of a screen: over which time, promised and measured values, and what to do."""
    spec = measurement.request.spec
    engines = ", simulated engines" if spec and spec.use_mocker else ""
    lines = [visible(f"→ {remedy}") for remedy in measurement.advice]
    title = visible(f"graph {measurement.graph.key}, means {measurement.when}{engines}")
    load, promise = measurement.load, measurement.promise
    rows: list[tuple[Cell, ...]] = []
    for check in measurement.checks:
        times = (
            "-" if seconds is None else f"{seconds * 1000:.4g} ms"
            for seconds in (check.target, check.measured)
        )
        style = "" if check.measured is None else "red" if check.is_missed else "green"
        rows.append((check.name, *times, Styled(check.verdict, style)))
    for quantity, *values in (
        ("tokens of a prompt", promise.targets.isl, load.isl),
        ("tokens of an answer", promise.targets.osl, load.osl),
        ("requests/s", promise.requests_per_second, load.requests),
    ):
        rows.append((quantity, *("-" if value is None else f"{value:.4g}" for value in values)))
    return [title, "", table(_HEAD, rows), *(["", *lines] if lines else ())]


def document(measurement: Measured) -> Object:
    """The measurement as JSON values. Units: seconds, tokens, requests per second."""
    return {
        "request": str(measurement.request.key),
        "graph": str(measurement.graph.key),
        "meetsTargets": measurement.is_well,
        "when": measurement.when,
        "promised": asdict(measurement.promise),
        "measured": asdict(measurement.load),
        "advice": measurement.advice,
    }


async def _graph(reading: Reading, request: DynamoGraphDeploymentRequest) -> DynamoGraphDeployment:
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
