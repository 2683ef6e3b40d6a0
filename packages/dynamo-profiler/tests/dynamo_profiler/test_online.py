"""Measuring, on a simulated API server without an operator: no graph becomes ready."""

import asyncio
import json

import pytest

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process.stored_versions import TwoVersions
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_profiler import Refusal
from dynamo_profiler.online import Identity, measured_choice
from dynamo_profiler.run import Inputs, Progress, search
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.errors import Unreachable
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Key
from kube_runtime.wire import path_of
from profiler_questions import a_configuration
from simulated.clock import on_simulated_clock
from simulated.server import Server

GRAPHS, CONFIG_MAPS = path_of(DynamoGraphDeployment.KIND), path_of(ConfigMap.KIND)
REQUESTS = DynamoGraphDeploymentRequest.KIND
OWNER = Identity("chat", "default", "uid-of-chat")


class Flaky:
    """An API server that does not answer every other request; half of those have taken effect."""

    def __init__(self) -> None:
        self.server, self.sent = Server(0), 0

    async def send(self, request: Request) -> Answer:
        """The answer, if there is one."""
        self.sent += 1
        if self.sent % 4 == 1:
            raise Unreachable("connection refused")
        answer = await self.server.send(request)
        if self.sent % 4 == 3:
            raise Unreachable("connection reset")
        return answer


async def measured(flaky: Flaky, said: list[Progress]) -> None:
    configuration = a_configuration(
        "Qwen/Qwen3-14B",
        sla={"isl": 3000, "osl": 4, "ttft": 3000, "itl": 1000},
        hardware={"gpuType": "l4"},
        analytic={"requestsPerSecond": 5, "engine": "formulas", "mode": "aggregated"},
        deployment={"deploymentTimeout": 60},
        online={},
    )
    space = search(configuration, Inputs(name="chat"), lambda _: None)
    online = configuration.online
    assert online is not None
    client = Client(flaky, field_manager="profiler")
    client.translations[REQUESTS] = TwoVersions(REQUESTS)
    await measured_choice(space, online, OWNER, client, said.append)


@on_simulated_clock
async def test_a_flaky_api_server_costs_no_measurement_and_leaves_no_graph() -> None:
    flaky, said = Flaky(), list[Progress]()
    with pytest.raises(Refusal, match="no candidate meets the targets when measured: ") as refusal:
        await measured(flaky, said)
    assert str(refusal.value).count("not ready within 60 s") == 3
    assert not flaky.server.storage.objects[GRAPHS]
    [stored] = flaky.server.storage.objects[CONFIG_MAPS].values()
    assert 3 == len(json.loads(stored["data"]["measurements.json"])["candidates"])
    owner = {"kind": "DynamoGraphDeploymentRequest", "name": "chat", "uid": "uid-of-chat"}
    assert [{"apiVersion": "nvidia.com/v1beta1", **owner}] == stored["metadata"]["ownerReferences"]


@on_simulated_clock
async def test_what_ends_the_profiler_deletes_the_graph_that_it_measures() -> None:
    flaky, said = Flaky(), list[Progress]()
    begun = asyncio.Event()
    flaky.server.storage.listeners.append(lambda entry: begun.set() if entry.collection == GRAPHS else None)
    running = asyncio.create_task(measured(flaky, said))
    await begun.wait()
    await asyncio.sleep(10)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert not flaky.server.storage.objects[GRAPHS]


@on_simulated_clock
async def test_a_graph_of_another_owner_is_left_alone() -> None:
    flaky, said = Flaky(), list[Progress]()
    with pytest.raises(Refusal):
        await measured(flaky, said)
    name = str(said[0].message).partition(", ")[2].partition(":")[0]
    flaky.server.storage.objects[CONFIG_MAPS].clear()
    body = {"apiVersion": DynamoGraphDeployment.KIND.api_version, "kind": "DynamoGraphDeployment"}
    metadata = {"name": name, "namespace": "default"}
    flaky.server.storage.create(GRAPHS, {**body, "metadata": metadata, "spec": {"services": {}}})
    with pytest.raises(Refusal, match=f"graph default/{name} is not of this request"):
        await measured(flaky, said)
    assert Key("default", name) in flaky.server.storage.objects[GRAPHS]
