"""What is expensive about a large request, or its results, is done elsewhere and can be ended."""

from collections.abc import AsyncIterator

import msgspec
import pytest

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests.api import (
    RESULTS_FILE,
    STATUS_FILE,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    ProfilingConfig,
)
from dynamo_operator.requests.controller import RequestActions, RequestController
from dynamo_operator.requests.read import GpuDiscoveryRbac, Grants, RequestReader
from dynamo_operator.requests.results import BadOutput, ProfilingProgress, progress, read_output
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.report import IN_PLACE_BYTES, Offload, Reporter
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.status import StatusRateLimit
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.cache.watch import Changed
from kube_runtime.client.client import Client
from kube_runtime.controller.controller import Result
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.workers import WorkEnded, WorkerPool
from kube_runtime.kind import Key, Object
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Metadata, condition
from kube_runtime.url_path import path_of
from simulated.server import Server

REQUESTS = DynamoGraphDeploymentRequest.KIND


@pytest.fixture
async def workers() -> AsyncIterator[WorkerPool]:
    found = WorkerPool()
    yield found
    await found.close()


def a_request(config: Object) -> DynamoGraphDeploymentRequest:
    spec = DynamoGraphDeploymentRequestSpec("m", "vllm", ProfilingConfig("p:1", config))
    return DynamoGraphDeploymentRequest(Metadata(name="r", namespace="n", uid="u"), spec)


def wide(values: int) -> Object:
    """A configuration of so many values."""
    return {f"k{number}": {"v": number} for number in range(values)}


async def test_the_rules_of_a_large_request_are_checked_in_another_process(
    workers: WorkerPool,
) -> None:
    client = Client(Server())
    cache = Cache([Informer(DynamoGraphDeployment).store])
    grants = Grants(client, accepts_all=False)
    facts = RequestReader(client, cache, RenderSettings(), grants, Offload(workers))
    assert () == await facts.problems(a_request(wide(10)))
    assert workers.processes == 0
    large = a_request({**wide(3_000), "sla": "wrong"})
    assert len(msgspec.json.encode(large.spec)) > IN_PLACE_BYTES
    (problem,) = await facts.problems(large)
    assert "config.sla must be an object" in problem
    assert workers.processes == 1


async def test_large_results_are_read_in_another_process(workers: WorkerPool) -> None:
    """The loop would stand still for seconds, which fails every test."""
    services = {f"s{number}": {"componentType": "worker"} for number in range(10_000)}
    graph = {"kind": "DynamoGraphDeployment", "spec": {"services": services}}
    data = {RESULTS_FILE: msgspec.json.encode(graph).decode()}
    request = a_request({})
    size = len(data[RESULTS_FILE])
    assert size > 300_000
    placed: dict[str, object] = {}
    args = (request, request.spec, data, placed)
    output = await Offload(workers).one(request, read_output, *args, more_bytes=size)
    assert len(output.graph["spec"]["services"]) == len(services)
    assert workers.processes == 1
    broken = {RESULTS_FILE: "[" * size}
    args = (request, request.spec, broken, placed)
    with pytest.raises(BadOutput, match="invalid YAML"):
        await Offload(workers).one(request, read_output, *args, more_bytes=size)


def test_what_a_profiler_says_at_length_is_not_read() -> None:
    assert progress({STATUS_FILE: "phase: a"}) == ProfilingProgress(phase="a")
    assert progress({STATUS_FILE: "phase: a\n" + "x: y\n" * 100_000}) == ProfilingProgress()


class Ends(Offload):
    """Has all work ended."""

    async def do(self, *_: object, **__: object) -> tuple[object, ...]:  # type: ignore[override]
        raise WorkEnded("time", "the work took too long")


async def test_a_request_that_is_too_expensive_says_so_and_is_left_alone() -> None:
    server = Server()
    body = {"apiVersion": REQUESTS.api_version, "kind": REQUESTS.name}
    request = a_request({})
    spec = msgspec.json.decode(msgspec.json.encode(request.spec))
    metadata = {"name": "r", "namespace": "n"}
    server.storage.create(path_of(REQUESTS), {**body, "metadata": metadata, "spec": spec})
    client, cache = Client(server), Cache([Informer(DynamoGraphDeploymentRequest).store])
    found = await client.get(DynamoGraphDeploymentRequest, Key("n", "r"))
    cache.store(DynamoGraphDeploymentRequest).on_watch_event(Changed(found))
    writer, settings = Writer(client, cache), RenderSettings()
    facts = RequestReader(client, cache, settings, Grants(client, accepts_all=False), Ends())
    nodes = GpuDiscoveryRbac(client, writer, cache, "")
    acts = RequestActions(writer, facts, Applier(writer, "hash", "generation"), settings, nodes)
    recorder = EventWriter(client, instance="i", metrics=RuntimeMetrics()).recorder("requests")
    controller = RequestController(
        cache, acts, Reporter(writer, recorder, StatusRateLimit(), client)
    )
    assert isinstance(await controller.reconcile(Key("n", "r")), Result)
    stored = await client.get(DynamoGraphDeploymentRequest, Key("n", "r"))
    said = condition(stored.status.conditions, "Succeeded")
    assert said is not None
    assert ("False", "TooExpensive") == (said.status, said.reason)
    assert "too long" in said.message
