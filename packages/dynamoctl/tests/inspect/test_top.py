"""The load of graphs, from the metrics of simulated frontends behind the API server's proxy of pods."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing

import pytest

from dynamo_graphs.reader import Missing, Reading
from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.frontend.load import Load, load_of, sample_of
from dynamoctl.inspect.top import Row, rows
from kube_runtime.client.client import Answer, Request
from kube_runtime.types.kinds import Pod
from kube_runtime.wire import path_of
from scripted.transport import answer, chunks
from simulated.clock import on_simulated_clock
from simulated.server import Server

PODS = "/api/v1/namespaces/prod/pods/"
INTERVAL_SECONDS = 2.0


def scrape(requests: int, *, prefix: str = "dynamo_frontend_") -> str:
    """The metrics of a frontend after so many requests: 50 ms to the first token, 10 ms between tokens."""
    lines = ["# TYPE requests counter", "process_cpu_seconds_total 3"]
    for model, share in (('"a {b} c"', 0.25), ('"d"', 0.75)):
        count = requests * share
        values = {
            "requests_total": f"{count} 1790000000000",
            "inflight_requests": 1,
            "time_to_first_token_seconds_sum": count * 0.05,
            "time_to_first_token_seconds_count": count,
            "inter_token_latency_seconds_sum": count * 0.1,
            "inter_token_latency_seconds_count": count * 10,
        }
        lines += [f"{prefix}{name}{{model={model}}} {value}" for name, value in values.items()]
    return "\n".join(lines)


async def endless() -> AsyncIterator[bytes]:
    while True:
        yield b"x" * 2**20
        await asyncio.sleep(0)


async def silence() -> AsyncIterator[bytes]:
    await asyncio.sleep(3600)
    yield b""


class Cluster:
    """A simulated API server whose proxy reaches frontends: a pod's answers, the last one again and again."""

    def __init__(self, **answers: list[str | AsyncIterator[bytes]]) -> None:
        self.server, self.answers = Server(), answers
        self.asked: list[str] = []

    async def send(self, request: Request) -> Answer:
        if not request.path.endswith("/proxy/metrics"):
            return await self.server.send(request)
        _, pod, port = request.path.removeprefix(PODS).partition("/")[0].split(":")
        self.asked.append(f"{pod}:{port}")
        answers = self.answers.get(pod)
        if answers is None:
            return answer(503, b"error trying to reach service")
        found = answers.pop(0) if len(answers) > 1 else answers[0]
        return Answer(200, {}, chunks(found.encode()) if isinstance(found, str) else found)

    def graph(self, name: str, **status: object) -> None:
        kind, spec = DynamoGraphDeployment.KIND, {"services": {"Frontend": {"componentType": "frontend"}}}
        body = kind.manifest({"namespace": "prod", "name": name}, spec=spec, status=status)
        self.server.storage.create(path_of(kind), body)

    def pod(self, name: str, graph: str, phase: str = "Running", port: int = 8000) -> None:
        ports = [{"name": "system", "containerPort": 1}, {"name": "http", "containerPort": port}]
        marks = {labels.GRAPH: graph, labels.COMPONENT_TYPE: "frontend"}
        metadata = {"namespace": "prod", "name": name, "labels": marks}
        spec = {"containers": [{"name": "main", "ports": ports}]}
        body = Pod.KIND.manifest(metadata, spec=spec, status={"phase": phase})
        self.server.storage.create(path_of(Pod.KIND), body)

    async def first(self, name: str = "", namespace: str = "prod") -> tuple[list[Row], list[str]]:
        found = rows(Reading(self), namespace, name, INTERVAL_SECONDS)
        async with aclosing(found) as turns:
            return await anext(turns)


@on_simulated_clock
async def test_top_shows_the_rates_of_an_interval() -> None:
    cluster = Cluster(one=[scrape(1000), scrape(1010)], two=[scrape(5), scrape(35)])
    cluster.graph("chat", readyServices="2/2", gpus=4)
    cluster.graph("idle")
    cluster.pod("one", "chat")
    cluster.pod("two", "chat", port=9000)
    cluster.pod("three", "chat", phase="Pending")
    (chat, idle), problems = await cluster.first()
    assert [] == problems
    assert ("prod/chat", "2/2", 4) == (chat.graph, chat.services, chat.gpus)
    load = chat.load
    measured = [load.requests, load.in_flight, load.ttft, load.itl]
    assert pytest.approx([20.0, 4.0, 0.05, 0.01]) == measured
    assert Row("prod/idle", "", None, Load()) == idle
    assert {"one:8000", "two:9000"} == set(cluster.asked)


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (scrape(10), ""),
        (None, "error trying to reach service"),
        (scrape(1, prefix="vllm_"), "no metrics of a Dynamo frontend"),
        (endless, "more than 8 MiB"),
        (silence, "no answer within 5 s"),
    ],
)
@on_simulated_clock
async def test_a_frontend_without_requests_has_no_latencies_one_without_metrics_a_reason(
    answer: Callable[[], AsyncIterator[bytes]] | str | None, text: str
) -> None:
    cluster = Cluster()
    cluster.graph("chat")
    cluster.pod("one", "chat")
    if callable(answer):
        cluster.answers["one"] = [answer(), answer()]
    elif isinstance(answer, str):
        cluster.answers["one"] = [answer]
    (chat,), problems = await cluster.first("chat")
    assert (Load() if text else Load(0.0, 2.0)) == chat.load
    assert bool(text) == len(problems)
    for problem in problems:
        assert problem.startswith("no metrics of pod prod/one: ")
        assert text in problem


@on_simulated_clock
async def test_a_graph_that_is_not_found_is_an_error() -> None:
    with pytest.raises(Missing, match="graph other not found in namespace prod"):
        await Cluster().first("other")
    with pytest.raises(Missing, match="graph other not found in any namespace"):
        await Cluster().first("other", namespace="")


def test_a_counter_that_began_again_counts_from_zero() -> None:
    before, after = sample_of(scrape(1000)), sample_of(scrape(8))
    assert 4.0 == load_of([(before, after)], 2.0).requests
