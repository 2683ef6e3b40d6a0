"""Kubernetes Events as they end up in the API server, on a simulated clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from kube_runtime.client.client import Client
from kube_runtime.controller.events import ATTEMPTS, BUSY_SECONDS, COLLECT_SECONDS, PENDING_LIMIT, EventWriter
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.times import MANY_A_SECOND
from kube_runtime.types.kinds import Event
from kube_runtime.types.meta import Metadata, Object
from kube_runtime.wire import path_of
from simulated.clock import wall_clock
from simulated.gadget import Gadget
from simulated.server import NO_ANSWER, Fault, Server, status

pytestmark = pytest.mark.looptime

EVENTS = path_of(Event.KIND)


def a_gadget(name: str = "g", namespace: str = "ns") -> Gadget:
    return Gadget(Metadata(name, namespace, f"uid-{name}", "7"))


@dataclass
class World:
    server: Server = field(default_factory=Server)
    metrics: RuntimeMetrics = field(default_factory=RuntimeMetrics)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Continue in another process, which remembers nothing."""
        self.writer = EventWriter(
            Client(self.server), instance="host_1", metrics=self.metrics, wall_clock=wall_clock
        )
        self.recorder = self.writer.recorder("gadgets")

    def happens(self, message: str, *, reason: str = "Created", about: str = "g") -> None:
        self.recorder.event(a_gadget(about), reason=reason, message=message)

    @property
    def events(self) -> list[dict[str, Any]]:
        return list(self.server.storage.objects.get(EVENTS, {}).values())

    @property
    def requests(self) -> list[str]:
        return [each.method for each in self.server.requests]

    def dropped(self, cause: str) -> float:
        labels = {"cause": cause}
        name = "kube_runtime_events_dropped_total"
        return self.metrics.registry.get_sample_value(name, labels) or 0.0


@asynccontextmanager
async def running() -> AsyncIterator[World]:
    world = World()
    async with running_writer(world):
        yield world


@asynccontextmanager
async def running_writer(world: World) -> AsyncIterator[None]:
    task = asyncio.create_task(world.writer.run())
    yield
    assert not task.done()
    task.cancel()
    with suppress(asyncio.CancelledError):
        await task


async def test_an_event_says_what_happened_to_what_and_who_says_so() -> None:
    async with running() as world:
        world.recorder.event(a_gadget(), reason="Broke", message="it broke", warning=True)
        await asyncio.sleep(1)
        (event,) = world.events
    del event["metadata"]
    assert {
        "apiVersion": "v1",
        "kind": "Event",
        "involvedObject": {
            "apiVersion": "example.com/v1",
            "kind": "Gadget",
            "name": "g",
            "namespace": "ns",
            "uid": "uid-g",
            "resourceVersion": "7",
        },
        "type": "Warning",
        "reason": "Broke",
        "message": "it broke",
        "count": 1,
        "firstTimestamp": "2026-01-01T00:00:00Z",
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "source": {"component": "gadgets"},
        "reportingComponent": "gadgets",
        "reportingInstance": "host_1",
    } == event


async def test_events_of_one_reason_within_a_moment_are_one_request() -> None:
    async with running() as world:
        for name in ("a", "b", "b", "c"):
            world.happens(f"Created {name}")
            await asyncio.sleep(0.05)
        await asyncio.sleep(1)
        assert ["POST"] == world.requests
        (event,) = world.events
        assert ("Created a; Created b; Created c", 4) == (event["message"], event["count"])


async def test_another_reason_type_object_or_component_is_another_event() -> None:
    async with running() as world:
        world.happens("x")
        world.happens("x", reason="Deleted")
        world.happens("x", about="other")
        world.recorder.event(a_gadget(), reason="Created", message="x", warning=True)
        world.writer.recorder("others").event(a_gadget(), reason="Created", message="x")
        await asyncio.sleep(1)
        assert 5 == len(world.events)


async def test_the_same_event_later_raises_the_count() -> None:
    async with running() as world:
        for _ in range(3):
            world.happens("again")
            await asyncio.sleep(60)
        assert ["POST", "PATCH", "PATCH"] == world.requests
        (event,) = world.events
    assert 3 == event["count"]
    assert "2026-01-01T00:00:00Z" == event["firstTimestamp"]
    assert "2026-01-01T00:02:00Z" == event["lastTimestamp"]


async def test_a_restarted_process_continues_the_event_of_its_predecessor() -> None:
    async with running() as world:
        world.happens("once")
        await asyncio.sleep(1)
        world.restart()
        lost = Fault(NO_ANSWER, method="PATCH", after=True)
        is_lost, world.server.faults = lost.matches, [lost]
        lost.matches = lambda request: is_lost(request) and b"count" in (request.body or b"")  # type: ignore[method-assign]
        async with running_writer(world):
            world.happens("twice")
            await asyncio.sleep(5)
            (event,) = world.events
            assert ("twice", 2) == (event["message"], event["count"])
            world.happens("thrice")
            await asyncio.sleep(1)
        assert ["POST", "POST", "PATCH", "PATCH", "PATCH", "PATCH"] == world.requests
        (event,) = world.events
    assert ("thrice", 3) == (event["message"], event["count"])


async def test_an_event_that_the_server_has_forgotten_is_made_anew() -> None:
    async with running() as world:
        world.happens("once")
        await asyncio.sleep(1)
        world.server.storage.objects[EVENTS].clear()
        world.happens("once more")
        await asyncio.sleep(1)
        (event,) = world.events
    assert ("once more", 1) == (event["message"], event["count"])


async def test_one_object_costs_25_requests_and_then_one_in_five_minutes() -> None:
    async with running() as world:
        for number in range(60):
            world.happens("x", reason=f"Reason{number}")
        world.happens("y", about="other")
        await asyncio.sleep(10)
        assert 26 == len(world.events)
        assert 35 == world.dropped("budget")
        await asyncio.sleep(300)
        world.happens("x", reason="Later")
        await asyncio.sleep(10)
        assert 27 == len(world.events)


async def test_when_too_many_wait_the_oldest_is_dropped() -> None:
    world = World()
    for number in range(PENDING_LIMIT + 10):
        world.happens("x", about=str(number))
        if number % 100 == 0:
            await asyncio.sleep(0)
    await world.writer.flush()
    assert PENDING_LIMIT == len(world.events)
    assert 10 == world.dropped("queue_full")
    assert "10" == world.events[0]["involvedObject"]["name"]


async def test_in_busy_times_warnings_are_written_and_others_wait_for_their_end_or_a_minute() -> None:
    async def busy(world: World, seconds: float) -> set[str]:
        for _ in range(int(2 * seconds)):
            for _ in range(MANY_A_SECOND):
                world.writer.activity.record()
            await asyncio.sleep(0.5)
        return {each["reason"] for each in world.events}

    async with running() as world:
        await busy(world, 1)
        world.happens("x")
        world.recorder.event(a_gadget(), reason="Broke", message="y", warning=True)
        assert {"Broke"} == await busy(world, BUSY_SECONDS - 2)
        assert {"Broke", "Created"} == await busy(world, 4)
        world.happens("x", reason="Deleted")
        assert {"Broke", "Created"} == await busy(world, 20)
        await asyncio.sleep(2.1)
        assert 3 == len(world.events)


async def test_what_happens_as_an_object_goes_is_written() -> None:
    async with running() as world:
        world.happens("x")
        world.writer.forget("uid-g")
        await asyncio.sleep(1)
        assert 1 == len(world.events)


async def test_what_could_not_be_written_before_a_stop_is_counted() -> None:
    async with running() as world:
        world.server.request_seconds = 600.0
        for number in range(3):
            world.happens("x", about=str(number))
        await asyncio.sleep(COLLECT_SECONDS + 1)
        assert 3 == world.writer.give_up(), "one of them is being written"
        assert [] == world.events
        assert 3 == world.dropped("stopped")
    assert 1 == world.writer.give_up(), "the one that was being written"


async def test_a_missing_permission_is_logged_once_and_has_no_other_effect() -> None:
    async with running() as world:
        world.server.faults.append(Fault(403, times=3, method="POST"))
        with capture_logs() as logs:
            for number in range(4):
                world.happens("x", reason=f"Reason{number}")
            await asyncio.sleep(10)
        assert ["event not written"] == [each["event"] for each in logs if "error" in each]
        assert 1 == len(world.events)
        assert 3 == world.dropped("refused")


TERMINATING = {"causes": [{"reason": "NamespaceTerminating", "field": "metadata.namespace"}]}


@pytest.mark.parametrize(
    "refusal", [status(404, "NotFound", "no"), status(403, "Forbidden", "no") | {"details": TERMINATING}]
)
async def test_a_deleted_or_terminating_namespace_is_not_logged(refusal: Object) -> None:
    async with running() as world:
        world.server.refuse = lambda _, __: refusal
        with capture_logs() as logs:
            world.happens("x")
            await asyncio.sleep(1)
        assert not [each for each in logs if each["event"] == "event not written"]
        assert 1 == world.dropped("namespace_gone")


@pytest.mark.parametrize("name", ["a" * 253, "a" * 235 + "-." + "b" * 10], ids=["long", "cut"])
async def test_the_name_of_an_event_fits(name: str) -> None:
    async with running() as world:
        world.happens("x", about=name)
        await asyncio.sleep(1)
        (event,) = world.events
    given = event["metadata"]["name"]
    assert len(given) <= 253
    assert not {"", "-"} & {part[-1:] for part in given.split(".")}


async def test_a_long_message_is_cut() -> None:
    async with running() as world:
        for number in range(20):
            world.happens(f"{number} " + "x" * 100)
        await asyncio.sleep(1)
        (event,) = world.events
    assert len(event["message"]) <= 1024
    assert event["message"].startswith("0 xxx")
    assert event["message"].endswith("x (and 11 more)")


async def test_an_event_about_a_cluster_scoped_object_is_in_the_default_namespace() -> None:
    async with running() as world:
        world.recorder.event(a_gadget(namespace=""), reason="R", message="x")
        await asyncio.sleep(1)
        (event,) = world.events
    assert "default" == event["metadata"]["namespace"]
    assert "" == event["involvedObject"]["namespace"]


async def test_a_flush_waits_neither_for_more_nor_for_the_pause_of_an_attempt_that_failed() -> None:
    async with running() as world:
        world.server.faults.append(Fault(503, times=1, method="POST", headers={"retry-after": "40"}))
        world.happens("x")
        await asyncio.sleep(COLLECT_SECONDS + 20.0)
        assert [] == world.events
        world.happens("y", about="other")
        started = asyncio.get_running_loop().time()
        await world.writer.flush()
        assert 2 == len(world.events)
        assert started == asyncio.get_running_loop().time()


async def test_nothing_waits_after_the_last_attempt() -> None:
    async with running() as world:
        world.server.faults.append(Fault(500, times=ATTEMPTS, method="POST"))
        world.happens("x")
        await asyncio.sleep(COLLECT_SECONDS + 1 + 2 + 4 + 8 + 0.5)
        assert 1 == world.dropped("unreachable")
        world.happens("y", about="other")
        await asyncio.sleep(COLLECT_SECONDS + 0.1)
        assert ["other"] == [each["involvedObject"]["name"] for each in world.events]


@pytest.mark.parametrize("after", [False, True])
async def test_what_happens_during_an_outage_is_counted_once(*, after: bool) -> None:
    async with running() as world:
        world.server.faults.append(Fault(NO_ANSWER, times=3, method="POST", after=after))
        world.happens("first")
        await asyncio.sleep(2)
        world.happens("second")
        await asyncio.sleep(60)
        (event,) = world.events
    assert ("first; second", 2) == (event["message"], event["count"])
