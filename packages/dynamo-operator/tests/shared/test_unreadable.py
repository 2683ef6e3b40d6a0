"""The status of a graph or component that does not decode reports this, and its objects stay unchanged."""

import asyncio
from typing import Any

import pytest

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.shared.report import Reporter, report_unreadable
from kube_runtime.apply.status import StatusRateLimit
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.controller.controller import DONE
from kube_runtime.controller.events import EventWriter
from kube_runtime.errors import DecodeError, NotFound
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Key, Object, Resource
from kube_runtime.wire import path_of
from simulated.clock import on_simulated_clock
from simulated.server import Server
from simulated.world import settle

KEY = Key("prod", "chat")
OTHER = {"type": "Other", "status": "True", "reason": "R", "message": "", "lastTransitionTime": "T"}
CASES = [
    (DynamoGraphDeployment, {"services": 3}, {"Ready"}, "decode_failed"),
    (DynamoComponentDeployment, {"replicas": "many"}, {"Available", "DynamoComponentReady"}, "DecodeFailed"),
    (DynamoModel, {"modelName": 3}, {"Valid"}, "DecodeFailed"),
]


class World:
    """A server with one object that does not decode."""

    def __init__(self, type_: type[Resource], spec: Object, most_bytes: int = 0, **status: Any) -> None:
        self.type_, self.path = type_, path_of(type_.KIND)
        self.server = Server()
        metadata = {"name": KEY.name, "namespace": KEY.namespace, "generation": 4}
        self.server.storage.create(self.path, {"metadata": metadata, "spec": spec})
        self.server.storage.merge(self.path, KEY, {"status": {"conditions": [OTHER], **status}}, "status")
        self.client = Client(self.server)
        self.informer: Informer[Any] = Informer(type_, most_bytes=most_bytes)
        self.cache = Cache([self.informer.store])
        self.writer = Writer(self.client, self.cache)
        self.events = EventWriter(self.client, instance="a", metrics=RuntimeMetrics())

    async def report(self) -> None:
        error = self.cache.broken(self.type_, KEY) or DecodeError(self.type_.KIND, KEY, "gone")
        reporter = Reporter(self.writer, self.events.recorder("r"), StatusRateLimit(), self.client)
        outcome = await report_unreadable(self.type_, KEY, error, reporter)
        assert outcome is DONE
        await self.events.flush()

    def writes(self) -> list[str]:
        return [each.method for each in self.server.requests if each.method != "GET"]


@pytest.mark.parametrize(("type_", "spec", "conditions", "reason"), CASES)
@on_simulated_clock
async def test_an_unreadable_object_is_reported_once_with_the_path(
    type_: type[Resource], spec: Object, conditions: set[str], reason: str
) -> None:
    world = World(type_, spec)
    running = asyncio.create_task(world.informer.run(world.client))
    await world.informer.synced.wait()
    await world.report()
    await settle()
    await world.report()
    stored = world.server.storage.read(world.path, KEY)
    told = {each["type"]: each for each in stored["status"]["conditions"]}
    assert conditions | {"Other"} == told.keys()
    for each in conditions:
        assert ("False", reason) == (told[each]["status"], told[each]["reason"])
        assert next(iter(spec)) in told[each]["message"]
        assert stored["metadata"]["generation"] == told[each]["observedGeneration"]
    assert OTHER == told["Other"]
    assert ["PATCH", "POST"] == world.writes(), "the status, then an event, and both once"
    running.cancel()


@on_simulated_clock
async def test_one_that_is_gone_meanwhile_is_left_alone() -> None:
    world = World(DynamoGraphDeployment, {"services": 3})
    world.server.storage.delete(world.path, KEY, {})
    with pytest.raises(NotFound):
        await world.report()
    assert [] == world.writes()


BLOCKED = [{"name": "a", "reason": "b"}] * 20_000
COUNTS = {"componentKind": "Deployment", "componentName": "a", "replicas": 1, "updatedReplicas": 1}
LARGE_CASES = [
    (DynamoComponentDeployment, {"service": {**COUNTS, "blockedPods": BLOCKED}}, "TooLarge"),
    (DynamoGraphDeployment, {"backendFramework": "x" * 2000}, "too_large"),
    (DynamoComponentDeployment, {"serviceName": "x" * 2000}, "TooLarge"),
    (DynamoModel, {"modelName": "x" * 2000, "baseModelName": "b"}, "TooLarge"),
]


@pytest.mark.parametrize("in_pages", [False, True], ids=["stream", "pages"])
@pytest.mark.parametrize(("type_", "spec", "reason"), LARGE_CASES)
@on_simulated_clock
async def test_an_object_over_the_size_limit_is_reported_with_the_limit_and_is_not_kept(
    type_: type[Resource], spec: Object, reason: str, in_pages: bool
) -> None:
    is_status = "service" in spec
    world = World(type_, {}, 1000, **spec) if is_status else World(type_, spec, most_bytes=1000)
    world.server.STREAMS_LISTS = not in_pages
    running = asyncio.create_task(world.informer.run(world.client))
    await world.informer.synced.wait()
    assert world.cache.get(type_, KEY) is None
    await world.report()
    found = world.server.storage.read(world.path, KEY)["status"]["conditions"]
    condition = next(each for each in found if each["type"] != "Other")
    assert (reason, "False") == (condition["reason"], condition["status"])
    text = "the status has more than 262144 bytes" if is_status else "the object has more than 1000 bytes"
    assert text in condition["message"]
    await settle()
    before = len(world.writes())
    await world.report()  # its own status does not make it write again
    assert before == len(world.writes())
    running.cancel()
