"""The metrics of frontend pods, read through the API server's proxy of pods.

The proxy of Services would reach another pod each time, and a rate is the difference of one pod's counters.
"""

import asyncio
from collections.abc import Sequence

from dynamo_graphs.api import labels
from dynamo_graphs.api.names import label_value
from dynamo_graphs.render.roles import HTTP_PORT
from dynamoctl.frontend.load import Sample, sample_of
from dynamoctl.frontend.proxy import Frontend
from dynamoctl.installation.cluster_reader import Reading
from kube_runtime.errors import OperatorError
from kube_runtime.kind import Object
from kube_runtime.types.core import Pod

_AT_ONCE = 16
"""Most frontends that are scraped at the same time."""
_ANSWER_SECONDS = 5.0
_MOST_BYTES = 8 * 1024 * 1024
"""Most bytes of one scrape: a user's container may send an endless answer."""

PodName = tuple[str, str]
"""Namespace and name."""


class _NoMetrics(OperatorError):
    """A frontend did not answer in time, or answered without metrics."""


async def frontends(
    reading: Reading, namespace: str, name: str
) -> dict[PodName, list[tuple[PodName, int]]]:
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
            by_graph.setdefault(graph, []).append((pod, _port(body)))
    return by_graph


def _port(pod: Object) -> int:
    """The port named `http`, where frontends serve their metrics."""
    ports = (port for container in pod["spec"]["containers"] for port in container.get("ports", ()))
    return next((it["containerPort"] for it in ports if it.get("name") == "http"), HTTP_PORT)


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
    sample = sample_of(body.decode(errors="replace"))
    if not sample:
        raise _NoMetrics("the answer has no metrics of a Dynamo frontend")
    return sample
