"""The manager: the order of start and stop, failures and probes, on a simulated clock."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.controller.controller import DONE, Controller, ControllerOptions, Result
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Limits, Manager, first_cause
from kube_runtime.errors import ConfigError, OperatorError
from kube_runtime.leases import Election, LeadershipLost
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.kinds import Lease
from kube_runtime.types.meta import Key
from kube_runtime.wire import path_of
from simulated.gadget import GADGETS, Gadget, OfGadgets, gadget
from simulated.server import Fault, Server

pytestmark = pytest.mark.looptime

LEASE = Key("kube-system", "dynamo.nvidia.com")


@dataclass
class GadgetController(OfGadgets):
    """Takes its time over every gadget, and then reports it."""

    world: "World"
    seconds: float = 0.0
    tells: bool = True

    async def reconcile(self, key: Key) -> Result:
        self.world.log.append(f"begin {key.name}")
        found = self.world.cache.get(Gadget, key)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.world.log.append(f"cut off {key.name}")
            raise
        finally:
            if found and self.tells:
                self.world.recorder.event(found, reason="Seen", message="seen")
        self.world.log.append(f"end {key.name}")
        return DONE


@dataclass
class Probe:
    """A server that records its start and end, and can be made to fail."""

    world: "World"
    failure: asyncio.Future[None] = field(init=False)

    async def run(self) -> None:
        self.failure = asyncio.get_running_loop().create_future()
        self.world.log.append("server starts")
        try:
            await self.failure
        finally:
            self.world.log.append("server ends")


class World:
    """One process against a server."""

    def __init__(self, server: Server, *, elects: bool = False, name: str = "a") -> None:
        self.server = server
        self.log: list[str] = []
        self.client, self.cache = Client(server), Cache()
        self.metrics = RuntimeMetrics()
        self.stop = asyncio.Event()
        events = EventWriter(self.client, instance=name, metrics=self.metrics)
        self.recorder = events.recorder("gadgets")
        self.election = Election(self.client, LEASE, identity=name) if elects else None
        self.manager = Manager(
            self.client,
            self.cache,
            metrics=self.metrics,
            events=events,
            election=self.election,
            limits=Limits(reconciles_seconds=10, silence_seconds=900),
        )
        self.informer = Informer(Gadget)
        self.controller = GadgetController(self)
        self.probe = Probe(self)
        self.manager.inform(self.informer)
        self.manager.control(self.controller, ControllerOptions(workers=1))
        self.manager.serve(self.probe)
        self.manager.on_synced(self.hook)

    async def hook(self) -> None:
        assert self.informer.synced.is_set()
        self.log.append("hook")

    def sample(self, name: str) -> float | None:
        return self.metrics.registry.get_sample_value(f"kube_runtime_{name}")

    async def end(self, run: asyncio.Task[None]) -> None:
        self.stop.set()
        await run


def a_server(*gadgets: str) -> Server:
    server = Server()
    for name in gadgets:
        server.storage.create(GADGETS, gadget(name))
    return server


@asynccontextmanager
async def running(world: World) -> AsyncIterator[asyncio.Task[None]]:
    run = asyncio.create_task(world.manager.run(world.stop))
    yield run
    if not run.done():
        await world.end(run)


async def test_everything_starts_in_its_order() -> None:
    world = World(a_server("g"), elects=True)
    async with running(world):
        await asyncio.sleep(5)
        assert ["server starts", "hook", "begin g", "end g"] == world.log
        assert world.manager.ready()
        assert world.manager.alive()
        assert 1 == world.sample("leader")


async def test_nothing_is_reconciled_before_the_caches_are_full() -> None:
    world = World(a_server("g"))
    outage = Fault(503, times=10_000)
    world.server.faults.append(outage)
    async with running(world):
        await asyncio.sleep(100)
        assert ["server starts"] == world.log
        assert ("gadgets.example.com: InternalError",) == world.manager.ready().problems
        assert world.manager.alive()
        outage.times = 0
        await asyncio.sleep(60)
        assert "end g" in world.log
        assert world.manager.ready()


async def test_a_process_that_converts_is_ready_while_its_own_lists_wait_for_that() -> None:
    world = World(a_server("g"))
    waiting = "conversion webhook for example.com/v1, Kind=Gadget failed: connection refused"
    world.server.faults.append(Fault(500, times=10_000, message=waiting))
    async with running(world):
        await asyncio.sleep(100)
        assert not world.manager.ready()
        assert world.manager.ready(is_converter=True)


async def test_a_standby_is_warm_and_ready_and_works_only_once_it_leads() -> None:
    server = a_server("g")
    leader, standby = World(server, elects=True), World(server, elects=True, name="b")
    for world in (leader, standby):
        world.manager.serve(Probe(world), while_leading=True)
    async with running(leader) as run, running(standby):
        await asyncio.sleep(60)
        assert standby.manager.ready()
        assert 1 == len(list(standby.cache.list(Gadget)))
        assert ["server starts", "hook"] == standby.log
        assert 0 == standby.sample("leader")
        queued = {"resource_type": "Gadget"}
        assert 0 == standby.metrics.registry.get_sample_value("kube_runtime_queue_depth", queued)
        started = {"server starts", "begin g", "end g"}
        assert started <= {*leader.log[2:]}
        await leader.end(run)
        assert ["server ends", "server ends"] == leader.log[-2:]
        await asyncio.sleep(3)
        assert started == {*standby.log[2:]}


async def test_a_stop_ends_reconciles_then_events_then_the_lease_then_the_rest() -> None:
    world = World(a_server("g", "never"), elects=True)
    world.controller.seconds = 8
    async with running(world) as run:
        await asyncio.sleep(1)
        world.server.requests.clear()
        await world.end(run)
    assert ["server starts", "hook", "begin g", "end g", "server ends"] == world.log
    writes = [each.path for each in world.server.requests if each.method in ("POST", "PATCH")]
    event, release = len(writes) - 2, len(writes) - 1
    assert writes[event].endswith("/events")
    assert writes[release].endswith("/leases/dynamo.nvidia.com")
    assert "" == world.server.storage.read(path_of(Lease.KIND), LEASE)["spec"]["holderIdentity"]
    assert [] == world.server.streams


async def test_a_reconcile_that_takes_too_long_is_cut_off_at_the_stop() -> None:
    world = World(a_server("g"))
    world.controller.seconds = 100
    async with running(world) as run:
        await asyncio.sleep(1)
        started = asyncio.get_running_loop().time()
        with capture_logs() as logs:
            await world.end(run)
        assert 10 == pytest.approx(asyncio.get_running_loop().time() - started)
    assert "cut off g" in world.log
    assert "reconciles cut off" in [entry["event"] for entry in logs]


@pytest.mark.parametrize("has_leader", [False, True], ids=["before the caches are full", "as a standby"])
async def test_a_stop_without_work_ends_at_once(has_leader: bool) -> None:
    server = a_server()
    world = World(server, elects=True, name="b")
    async with running(World(server, elects=True)) if has_leader else nullcontext():
        if not has_leader:
            server.faults.append(Fault(503, times=10_000))
        async with running(world) as run:
            await asyncio.sleep(10)
            async with asyncio.timeout(0.1):
                await world.end(run)


async def test_a_lost_lease_ends_everything_and_is_the_error() -> None:
    world = World(a_server("g"), elects=True)
    world.controller.seconds = 50
    async with running(world) as run:
        await asyncio.sleep(10)
        rival = {"spec": {"holderIdentity": "rival"}}
        world.server.storage.merge(path_of(Lease.KIND), LEASE, rival)
        with pytest.raises(LeadershipLost, match="rival"):
            await run
    assert {"cut off g", "server ends"} <= set(world.log)
    assert 0 == world.sample("leader")


async def test_a_server_that_fails_ends_everything_and_the_lease_is_free() -> None:
    world = World(a_server("g"), elects=True)
    world.controller.seconds = 50
    async with running(world) as run:
        await asyncio.sleep(10)
        world.probe.failure.set_exception(ConfigError("--bind", "port taken"))
        with pytest.raises(ConfigError, match="port taken"):
            await run
    assert "cut off g" in world.log
    assert "" == world.server.storage.read(path_of(Lease.KIND), LEASE)["spec"]["holderIdentity"]


async def test_a_server_that_returns_is_an_error() -> None:
    world = World(a_server())
    async with running(world) as run:
        await asyncio.sleep(1)
        world.probe.failure.set_result(None)
        with pytest.raises(RuntimeError, match="Probe ended unexpectedly"):
            await run


async def test_a_hook_that_fails_ends_the_start() -> None:
    async def refuse() -> None:
        raise ConfigError("CRDs", "not installed")

    world = World(a_server("g"))
    world.manager.on_synced(refuse)
    async with running(world) as run:
        with pytest.raises(ConfigError, match="not installed"):
            await run
    assert "begin g" not in world.log


async def test_a_watch_that_is_silent_for_too_long_fails_the_liveness_probe() -> None:
    world = World(a_server())
    async with running(world):
        await asyncio.sleep(10)
        world.server.faults.append(Fault(0, times=100_000))
        for stream in list(world.server.streams):
            stream.cut()
        await asyncio.sleep(600)
        assert world.manager.alive()
        await asyncio.sleep(600)
        assert ("gadgets.example.com: watch is silent",) == world.manager.alive().problems


async def test_a_settled_process_asks_for_nothing() -> None:
    world = World(a_server("g", "h"))
    world.controller.tells = False
    async with running(world):
        await asyncio.sleep(30)
        world.server.requests.clear()
        await asyncio.sleep(3600)
        assert {True} == {"watch" in each.query for each in world.server.requests}
        assert 6 <= world.log.count("end g") <= 8


def test_the_first_cause_is_the_error_that_a_person_can_act_on() -> None:
    def group(*errors: Any) -> BaseExceptionGroup[BaseException]:
        return BaseExceptionGroup("", errors)

    wanted = OperatorError("this")
    assert wanted is first_cause(group(ValueError(), group(KeyError(), wanted), OperatorError("2")))
    other = ValueError()
    assert other is first_cause(group(group(other), KeyError()))


async def test_what_fails_beside_the_cause_is_a_line_and_a_bug_a_traceback() -> None:
    world = World(Server())
    other, bug = Probe(world), Probe(world)
    world.manager.serve(other)
    world.manager.serve(bug)
    with capture_logs() as logs:
        run = asyncio.create_task(world.manager.run(world.stop))
        await asyncio.sleep(0.1)
        for port, probe in ((8081, world.probe), (8080, other)):
            probe.failure.set_exception(ConfigError(f":{port}", "cannot listen"))
        bug.failure.set_exception(KeyError("bug"))
        with pytest.raises(ConfigError, match=":8081: cannot listen"):
            await run
    others = [each for each in logs if each["event"] == "failed as well"]
    assert [":8080: cannot listen"] == [each["error"] for each in others if "error" in each]
    assert ["KeyError"] == [type(each["exc_info"]).__name__ for each in others if "exc_info" in each]


async def test_a_probe_names_no_object_and_the_log_does(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(Server())
    monkeypatch.setattr(Controller, "stuck", lambda _: [Key("team-a", "secret-plan")])
    with capture_logs() as logs:
        health = [world.manager.alive() for _ in range(3)][-1]
    assert not health
    assert not any("team-a" in each or "secret-plan" in each for each in health.problems)
    assert any("1 reconciles do not end" in each for each in health.problems)
    assert ["team-a/secret-plan"] == [each["key"] for each in logs]
