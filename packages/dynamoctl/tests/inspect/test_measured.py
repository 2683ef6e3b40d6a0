"""Promised and measured latency of a request's graph, by the metrics of simulated frontends."""

import json
from pathlib import Path
from typing import Any

import pytest

from dynamo_graphs.reader import Missing, Reading
from dynamo_operator import labels
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests.api import (
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestStatus,
    annotation,
    as_text,
    with_spec,
)
from dynamoctl.inspect.measured import Measured, document, measured, parts
from dynamoctl.screen import plain
from kube_runtime.client.client import Answer, Request
from kube_runtime.errors import ConfigError
from kube_runtime.types.kinds import Pod
from kube_runtime.types.meta import Key, Metadata, Object
from kube_runtime.wire import path_of
from scripted.transport import answer
from simulated.clock import on_simulated_clock
from simulated.server import Server

SLA = {"isl": 3000, "osl": 500, "ttft": 200, "itl": 20}
GRAPH, REQUEST = DynamoGraphDeployment.KIND, DynamoGraphDeploymentRequest.KIND
APART = {
    "Frontend": {"componentType": "frontend"},
    "Prefill": {"componentType": "worker", "subComponentType": "prefill", "replicas": 2},
    "Decode": {"componentType": "worker", "subComponentType": "decode"},
}


def scrape(
    count: int, *, ttft: float = 0.1, itl: float = 0.01, isl: int = 3000, osl: int = 500, busy: int = 9
) -> str:
    """The metrics of a frontend after so many requests, all alike."""
    sums = {
        "time_to_first_token_seconds": (count, ttft),
        "inter_token_latency_seconds": (count * 10, itl),
        "input_sequence_tokens": (count, isl),
        "output_sequence_tokens": (count, osl),
    }
    lines = [f"requests_total {count}", f"inflight_requests {busy}"]
    for name, (number, mean) in sums.items():
        lines += [f"{name}_sum {number * mean}", f"{name}_count {number}"]
    return "\n".join(f"dynamo_frontend_{each}" for each in lines)


class Cluster:
    """An API server with one request, its graph and its frontend, which answers so each time."""

    def __init__(
        self, *scrapes: str, services: Object = APART, sla: Object = SLA, pod: str = "Running", **status: Any
    ) -> None:
        self.server, self.scrapes, self.pod = Server(), list(scrapes), pod
        known = {"state": "Ready", "deployment": {"name": "chat", "namespace": "prod"}, **status}
        config: Object = {"sla": sla, "analytic": {"requestsPerSecond": 1}}
        self.spec: Object = {
            "model": "m/8B",
            "backend": "vllm",
            "profilingConfig": {"profilerImage": "p:1", "config": config},
        }
        self.request: Object = {**({"spec": self.spec} if sla else {}), "status": known}
        self.graph: Object = {"spec": {"services": services}}
        self.annotations: dict[str, str] = {}

    def accepts(self, spec: Object) -> None:
        """Have the request accepted with this spec."""
        self.request["status"]["acceptedSpec"] = spec
        seen = DynamoGraphDeploymentRequest(
            Metadata("sla", namespace="prod", uid="uid-1"),  # the first object of the server
            status=DynamoGraphDeploymentRequestStatus(accepted_spec=as_text(spec)),
        )
        self.annotations = annotation(with_spec(seen))

    async def send(self, request: Request) -> Answer:
        if not request.path.endswith("/proxy/metrics"):
            return await self.server.send(request)
        if not self.scrapes:
            return answer(503, b"error trying to reach service")
        text = self.scrapes.pop(0) if len(self.scrapes) > 1 else self.scrapes[0]
        return answer(200, text.encode())

    async def why(self) -> Measured:
        for kind, name, body in ((REQUEST, "sla", self.request), (GRAPH, "chat", self.graph)):
            metadata = {"namespace": "prod", "name": name, "annotations": self.annotations}
            self.server.storage.create(path_of(kind), kind.manifest(metadata, **body))
        marks = {labels.GRAPH: "chat", labels.COMPONENT_TYPE: "frontend"}
        metadata = {"namespace": "prod", "name": "one", "labels": marks}
        containers = [{"name": "main"}]
        pod = Pod.KIND.manifest(metadata, spec={"containers": containers}, status={"phase": self.pod})
        self.server.storage.create(path_of(Pod.KIND), pod)
        reading = Reading(self)
        request = await reading.client.get(DynamoGraphDeploymentRequest, Key("prod", "sla"))
        return await measured(reading, request, 10)


@on_simulated_clock
async def test_a_graph_that_keeps_what_was_asked_for() -> None:
    found = await Cluster(scrape(100), scrape(105)).why()
    assert found.is_well
    assert [] == found.advice
    assert ["met", "met"] == [each.verdict for each in found.checks]
    assert "in the last 10 s" == found.when
    load = found.load
    assert pytest.approx([0.5, 0.1, 0.01, 3000, 500]) == [
        *(load.requests, load.ttft, load.itl, load.isl, load.osl)
    ]


@pytest.mark.parametrize(
    ("after", "advice"),
    [
        (
            scrape(5, ttft=0.3, itl=0.03, isl=6000),
            (
                "prompts have 6000 tokens on average, and the graph is for 3000: "
                "create a request with sla.isl: 6000"
            ),
        ),
        (
            scrape(40, ttft=0.3, itl=0.03),
            (
                "4 requests/s come, and the graph is for 1: `dynamoctl scale chat/Prefill --replicas 8`, "
                "`dynamoctl scale chat/Decode --replicas 4`"
            ),
        ),
        (
            scrape(5, ttft=0.3),
            (
                "the requests are those that the graph is for, and wait for each other: "
                "`dynamoctl scale chat/Prefill --replicas 3`"
            ),
        ),
        (
            scrape(5, itl=0.03, busy=1),
            (
                "requests do not wait for each other, so replicas do not help: the engine is slower than "
                "predicted; create a request with a larger analytic.margin or a stricter target"
            ),
        ),
    ],
    ids=["longer prompts", "more requests", "the same requests", "one request"],
)
@on_simulated_clock
async def test_a_missed_target_has_its_amount_and_what_to_do(after: str, advice: str) -> None:
    found = await Cluster(scrape(0), after).why()
    assert not found.is_well
    assert "missed by 50%" in [each.verdict for each in found.checks]
    assert [advice] == found.advice


@on_simulated_clock
async def test_the_page_shows_what_is_printed() -> None:
    cluster = Cluster(scrape(0), scrape(12, ttft=0.312, itl=0.014, isl=2890, osl=212))
    printed = plain(*parts(await cluster.why()))
    page = (Path(__file__).parents[4] / "docs/cli.md").read_text(encoding="utf-8")
    assert printed in page.replace("\n    ", "\n"), printed


@on_simulated_clock
async def test_machines_read_seconds() -> None:
    found = document(await Cluster(scrape(0), scrape(5, ttft=0.3, busy=0)).why())
    assert json.loads(json.dumps(found)) == found
    assert {"request": "prod/sla", "graph": "prod/chat", "meetsTargets": False}.items() <= found.items()
    assert (0.2, 0.3) == (found["promised"]["targets"]["ttft"], found["measured"]["ttft"])


@pytest.mark.parametrize(
    ("services", "scale"),
    [
        (
            {"Front": {"componentType": "frontend"}, "All": {"componentType": "worker"}},
            "`dynamoctl scale chat/All --replicas 2`, `dynamoctl scale chat/All --replicas 2`",
        ),
        (
            {
                "Both": {"componentType": "worker"},
                "P": {"componentType": "prefill", "replicas": 2},
                "D": {"componentType": "decode"},
            },
            "`dynamoctl scale chat/P --replicas 3`, `dynamoctl scale chat/D --replicas 2`",
        ),
    ],
)
@on_simulated_clock
async def test_the_workers_to_scale_are_those_of_the_half_else_those_of_both(
    services: Object, scale: str
) -> None:
    found = await Cluster(scrape(0), scrape(5, ttft=0.3, itl=0.03), services=services).why()
    assert found.advice[0].endswith(scale)


@on_simulated_clock
async def test_without_requests_now_the_earlier_ones_count() -> None:
    found = await Cluster(scrape(40, itl=0.03)).why()
    assert "since its frontends started" == found.when
    assert ("met", "missed by 50%") == tuple(each.verdict for each in found.checks)
    assert found.load.requests is None


@on_simulated_clock
async def test_answers_of_one_token_have_no_time_between_two() -> None:
    text = "\n".join(each for each in scrape(5).splitlines() if "inter_token" not in each)
    found = await Cluster(scrape(0), text).why()
    assert ("met", "not measured") == tuple(each.verdict for each in found.checks)
    assert found.is_well


@on_simulated_clock
async def test_the_spec_that_a_request_was_accepted_with_counts() -> None:
    cluster = Cluster(scrape(0), scrape(5))
    config = {"sla": {"ttft": 50}}
    cluster.accepts({**cluster.spec, "profilingConfig": {"profilerImage": "p:1", "config": config}})
    found = await cluster.why()
    assert (0.05, 0.01) == (found.promise.targets.ttft, found.promise.targets.itl)
    assert ("missed by 100%", "met") == tuple(each.verdict for each in found.checks)


@on_simulated_clock
async def test_a_request_in_v1beta1_has_the_load_and_the_defaults_of_that_version() -> None:
    cluster = Cluster(scrape(0), scrape(5, ttft=0.3, isl=6000))
    config: Object = {"sla": {"ttft": 200}}
    written: Object = {"extras": {"workload": {"requestRate": 2}}, "writtenIn": "nvidia.com/v1beta1"}
    accepted = {**cluster.spec, "profilingConfig": {"profilerImage": "p:1", "config": config}, **written}
    cluster.accepts(accepted)
    found = await cluster.why()
    targets = found.promise.targets
    assert (4000, 1000, 0.2, 0.03) == (targets.isl, targets.osl, targets.ttft, targets.itl)
    assert 2 == found.promise.requests_per_second
    (advice,) = found.advice
    assert advice.endswith("the graph is for 4000: create a request with workload.isl: 6000")


@on_simulated_clock
async def test_a_graph_that_its_user_applied_is_found() -> None:
    made = {"metadata": {"name": "chat"}}
    cluster = Cluster(scrape(0), scrape(5), deployment=None, generatedDeployment=made)
    assert "prod/chat" == str((await cluster.why()).graph.key)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        ({}, "request prod/sla has no graph: not reconciled yet: no message"),
        (
            {"state": "Failed", "message": "sla.ttft of 1 ms cannot be met"},
            "request prod/sla has no graph: Failed: sla.ttft of 1 ms cannot be met",
        ),
        (
            {"state": "Ready", "message": "found", "generatedDeployment": {"metadata": {}}},
            "graph prod/sla of request prod/sla does not exist: Ready: found",
        ),
        (
            {"state": "DeploymentDeleted", "deployment": {"name": "gone", "namespace": "other"}},
            "graph other/gone of request prod/sla does not exist: DeploymentDeleted: no message",
        ),
    ],
)
@on_simulated_clock
async def test_a_request_without_a_graph_is_named_with_its_state(status: Object, message: str) -> None:
    cluster = Cluster()
    cluster.request["status"] = status
    with pytest.raises(Missing) as refusal:
        await cluster.why()
    assert message == str(refusal.value)


@pytest.mark.parametrize(
    ("cluster", "error", "message"),
    [
        (Cluster(pod="Pending"), Missing, r"no running frontend; see `dynamoctl why chat`"),
        (Cluster(), Missing, r"no metrics of pod prod/one: .*error trying to reach"),
        (Cluster(scrape(0)), Missing, r"has answered no request .* `dynamoctl chat chat hello`"),
        (
            Cluster(scrape(5), sla={"ttft": "fast", "itl": -1}),
            *(ConfigError, r"config: sla\.ttft must be a number, .*; sla\.itl must "),
        ),
        (Cluster(scrape(5), sla={}), ConfigError, "spec: is missing"),
    ],
    ids=["no frontend", "no metrics", "no request", "no numbers", "no spec"],
)
@on_simulated_clock
async def test_what_cannot_be_measured_has_its_reason(
    cluster: Cluster, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        await cluster.why()
