"""The load on frontends, from the difference of two scrapes of their metrics. Pure.

Counters are summed over all models and labels. Other metrics are skipped, in time linear to their length.
"""

import asyncio
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from dynamo_graphs.frontend import Frontend
from dynamo_graphs.reader import Reading
from dynamo_operator import labels
from dynamo_operator.component.pod import HTTP_PORT
from dynamo_operator.names import label_value
from kube_runtime.errors import OperatorError
from kube_runtime.types.kinds import Pod
from kube_runtime.wire import path_of

_PREFIX = "dynamo_frontend_"
_REQUESTS = "requests_total"
_IN_FLIGHT = "inflight_requests"
_TTFT = "time_to_first_token_seconds"
_ITL = "inter_token_latency_seconds"
_ISL, _OSL = "input_sequence_tokens", "output_sequence_tokens"
_READ = frozenset(
    (
        *(_REQUESTS, _IN_FLIGHT),
        *(f"{metric}_{part}" for metric in (_TTFT, _ITL, _ISL, _OSL) for part in ("sum", "count")),
    )
)

Sample = Mapping[str, float]
"""Values of one scrape, by the names of the metrics without their prefix."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load on frontends between two scrapes; None where there was nothing to measure.

    `requests` is per second, `in_flight` a number of requests, `ttft` and `itl` are mean seconds, `isl`
    and `osl` mean tokens of prompts and answers.
    """

    requests: float | None = None
    in_flight: float | None = None
    ttft: float | None = None
    itl: float | None = None
    isl: float | None = None
    osl: float | None = None


def sample_of(text: str) -> Sample:
    """The values of a scrape in the text format of Prometheus; {} if no frontend wrote it."""
    values: dict[str, float] = {}
    for line in text.splitlines():
        if not line.startswith(_PREFIX):
            continue
        # Labels may contain spaces, and a time may follow the value.
        name, brace, rest = line.partition("{")
        if brace:
            rest = rest.rpartition("}")[2]
        else:
            name, _, rest = line.partition(" ")
        key = name.removeprefix(_PREFIX)
        if key not in _READ:
            continue
        try:
            number = float(rest.strip().partition(" ")[0])
        except ValueError:
            continue
        if math.isfinite(number):
            values[key] = values.get(key, 0.0) + number
    return values


def load_of(samples: Iterable[tuple[Sample, Sample]], seconds: float) -> Load:
    """The load on several frontends, each with two scrapes that many seconds apart."""
    measured = [(before, after) for before, after in samples if after]
    if not measured or seconds <= 0:
        return Load()

    def passed(key: str) -> float:
        pairs = [(before.get(key, 0.0), after.get(key, 0.0)) for before, after in measured]
        # A counter restarts at 0 with its process.
        return sum(after - before if after >= before else after for before, after in pairs)

    def mean(key: str) -> float | None:
        count = passed(f"{key}_count")
        return passed(f"{key}_sum") / count if count else None

    in_flight = sum(after.get(_IN_FLIGHT, 0.0) for _, after in measured)
    means = (mean(metric) for metric in (_TTFT, _ITL, _ISL, _OSL))
    return Load(passed(_REQUESTS) / seconds, in_flight, *means)


_AT_ONCE = 16
"""Most frontends that are scraped at the same time."""
_ANSWER_SECONDS = 5.0
_MOST_BYTES = 8 * 1024 * 1024
"""Most bytes of one scrape: a user's container may send an endless answer."""

PodName = tuple[str, str]
"""Namespace and name."""


class _NoMetrics(OperatorError):
    """A frontend did not answer in time, or answered without metrics."""


async def frontends(reading: Reading, namespace: str, name: str) -> dict[PodName, list[tuple[PodName, int]]]:
    """The running frontend pods with the ports of their metrics, by namespace and label of the graph.

    "" as namespace is all namespaces, "" as name all graphs.

    Raises: OperatorError.
    """
    selector = f"{labels.COMPONENT_TYPE}=frontend,{labels.GRAPH}"
    selector += f"={label_value(name)}" if name else ""
    by_graph: dict[PodName, list[tuple[PodName, int]]] = {}
    for body in await reading.all_raw(Pod.KIND, namespace, labels=selector):
        metadata = body["metadata"]
        if body.get("status", {}).get("phase") == "Running" and "deletionTimestamp" not in metadata:
            graph = (metadata["namespace"], metadata["labels"][labels.GRAPH])
            pod = (metadata["namespace"], metadata["name"])
            ports = [port for it in body["spec"]["containers"] for port in it.get("ports", ())]
            http = (port["containerPort"] for port in ports if port.get("name") == "http")
            by_graph.setdefault(graph, []).append((pod, next(http, HTTP_PORT)))
    return by_graph


async def samples(
    reading: Reading, pods: Sequence[tuple[PodName, int]]
) -> tuple[dict[PodName, Sample], list[str]]:
    """The samples of pods, and for each other pod the reason, in words."""
    places = asyncio.Semaphore(_AT_ONCE)

    async def sample(pod: PodName, port: int) -> Sample | str:
        async with places:
            try:
                return await _sample(reading, pod, port)
            except OperatorError as error:
                return f"no metrics of pod {'/'.join(pod)}: {error}"

    answers = await asyncio.gather(*(sample(*pod) for pod in pods))
    named_ = list(zip((pod for pod, _ in pods), answers, strict=True))
    measured = {pod: answer for pod, answer in named_ if not isinstance(answer, str)}
    return measured, [answer for _, answer in named_ if isinstance(answer, str)]


async def _sample(reading: Reading, pod: PodName, port: int) -> Sample:
    namespace, name = pod
    # The proxy of Services would reach another pod each time, and a rate is the difference of one pod's
    # counters.
    path = path_of(Pod.KIND, namespace, f"http:{name}:{port}", "proxy")
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
    sample = sample_of(body.decode(errors="replace"))
    if not sample:
        raise _NoMetrics("the answer has no metrics of a Dynamo frontend")
    return sample
