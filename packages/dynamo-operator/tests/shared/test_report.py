"""What controllers share: when a refused write is retried, and that each object is validated once."""

import asyncio
from dataclasses import dataclass, field

import pytest
from msgspec.structs import replace

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.shared.problems import Problem
from dynamo_operator.shared.report import Reporter, ValidationCache, report_paused
from kube_runtime.apply.result import Applied, Blocked, Cause, Change, Obstacle, Verb
from kube_runtime.apply.status import StatusRateLimit
from kube_runtime.apply.suppression import CONTEST_SECONDS, PASSING_SECONDS
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.controller.events import EventWriter
from kube_runtime.errors import ServerFailure
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.kinds import Service
from kube_runtime.types.meta import Key, OwnerReference
from kube_runtime.wire import path_of
from simulated.clock import on_simulated_clock
from simulated.server import Server
from specs import a_component


def blocked(*obstacles: Obstacle) -> Applied:
    return Applied(obstructions=[Blocked(each, "Service", "a", "taken") for each in obstacles])


@pytest.mark.parametrize(
    ("applied", "seconds"),
    [
        (Applied(), None),
        (blocked(Obstacle.REJECTED), 120.0),
        (blocked(Obstacle.NAME_CONFLICT), 10.0),
        (blocked(Obstacle.NAME_CONFLICT, Obstacle.REJECTED), 120.0),
        (Applied(contested=[*blocked(Obstacle.CONTESTED).blocked]), CONTEST_SECONDS),
    ],
)
@on_simulated_clock
async def test_a_failed_write_is_retried(applied: Applied, seconds: float | None) -> None:
    reporter, live, _ = await reporting(Server())
    result = await reporter.finish(live, live.status, applied)
    assert seconds == result.requeue_after_seconds


@on_simulated_clock
async def test_a_failure_of_the_api_server_is_reported_if_it_lasts() -> None:
    reporter, live, _ = await reporting(Server())
    failed = Applied()
    failed.refused("Service", "w", ServerFailure(500, "InternalError", "no", Service.KIND, live.key))
    for _ in range(2):
        with pytest.raises(ServerFailure):  # it may pass
            await reporter.finish(live, live.status, failed)
        await asyncio.sleep(2 * PASSING_SECONDS)
        assert failed.failures[0] is (await reporter.finish(live, live.status, failed)).failure
        await reporter.finish(live, live.status, Applied())


@on_simulated_clock
async def test_a_write_is_reported_at_once_and_not_at_the_end_of_the_reconcile() -> None:
    server = Server()
    reporter, live, events = await reporting(server)
    reporter.applying(live).record(Change(Verb.CREATE, "Service", "w", Cause.ABSENT))
    await events.flush()
    (event,) = server.storage.objects["/api/v1/events"].values()
    assert ("CreateService", "Created Service w") == (event["reason"], event["message"])


@on_simulated_clock
async def test_an_edit_of_a_paused_object_pauses_nothing() -> None:
    server = Server()
    reporter, live, events = await reporting(server)
    for replicas in (2, 3):
        await report_paused(live, reporter)
        server.storage.merge(path_of(live.KIND), live.key, {"spec": {"replicas": replicas}})
        live = await reporter.client.get(DynamoComponentDeployment, live.key)
    await events.flush()
    assert [1] == [event["count"] for event in server.storage.objects["/api/v1/events"].values()]


async def reporting(server: Server) -> tuple[Reporter, DynamoComponentDeployment, EventWriter]:
    """A reporter, a stored component, and what writes its Events."""
    body = {"metadata": {"namespace": "prod", "name": "w"}, "spec": {"componentType": "worker"}}
    server.storage.create(path_of(DynamoComponentDeployment.KIND), body)
    client = Client(server)
    live = await client.get(DynamoComponentDeployment, Key("prod", "w"))
    events = EventWriter(client, instance="a", metrics=RuntimeMetrics())
    reporter = Reporter(Writer(client, Cache([])), events.recorder("r"), StatusRateLimit(), client)
    return reporter, live, events


@dataclass
class Negative:
    """Finds fewer than no replicas, and counts how often it looked."""

    looks: int = field(default=0)

    def __call__(self, component: DynamoComponentDeployment) -> tuple[Problem, ...]:
        self.looks += 1
        is_wrong = (component.spec.replicas or 0) < 0
        return (Problem("spec.replicas", "is negative"),) if is_wrong else ()


def component(replicas: int = 1, *, uid: str = "u", **metadata: object) -> DynamoComponentDeployment:
    found = a_component(replicas=replicas)
    return replace(found, metadata=replace(found.metadata, uid=uid, **metadata))


def test_what_had_no_mistakes_is_not_looked_through_again() -> None:
    sound, find = ValidationCache(), Negative()
    for version in ("1", "2", "3"):
        found = component(resource_version=version, generation=7)
        assert () == sound.problems_by(found, find)
    assert 1 == find.looks


@pytest.mark.parametrize(
    "changed",
    [
        component(2),
        component(uid="another"),
        component(labels={"team": "red"}),
        component(annotations={"nvidia.com/paused": "true"}),
        component(owner_references=(OwnerReference("DynamoGraphDeployment", "chat", "u-chat"),)),
    ],
)
def test_every_other_content_is_looked_through(changed: DynamoComponentDeployment) -> None:
    sound, find = ValidationCache(), Negative()
    sound.problems_by(component(), find)
    sound.problems_by(changed, find)
    assert 2 == find.looks


def test_a_problem_is_reported_each_time_also_after_valid_content() -> None:
    sound, find = ValidationCache(), Negative()
    told = [bool(sound.problems_by(component(each), find)) for each in (1, -1, -1, 1, -1)]
    assert [False, True, True, False, True] == told
