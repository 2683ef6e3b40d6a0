"""A watch that is refused or answered wrongly: it is waited out, and asked for less and less often."""

import asyncio

import pytest

from kube_runtime.cache.informer import REFUSED
from kube_runtime.errors import Forbidden, NotFound
from simulated.gadget import Gadget
from simulated.server import NO_ANSWER, Fault, status
from simulated.world import World, a_world, settle

pytestmark = [pytest.mark.looptime, pytest.mark.usefixtures("lists")]


def is_well(world: World) -> bool:
    return world.informer.last_error is None


@pytest.mark.parametrize("code", [429, 500, 504])
async def test_an_error_event_other_than_410_resumes_without_a_list(code: int) -> None:
    world = a_world()
    async with world.synced():
        world.server.streams[0].send("ERROR", status(code, "", "come back later"))
        await settle(0.1)
        assert "come back later" in str(world.informer.last_error)
        world.has("a", 1)
        await settle(10)
        assert {"a": 1} == world.sizes()
    assert 1 == world.server.lists(Gadget)


async def test_history_gone_after_each_list_does_not_make_a_storm_of_lists() -> None:
    world = a_world()
    world.server.faults.append(Fault(410, times=10**6, is_watch=True))
    async with world.synced():
        await settle(600)
    assert 10 < world.server.lists(Gadget) < 60


@pytest.mark.parametrize("code", [NO_ANSWER, 429, 500, 503])
async def test_an_outage_is_waited_out(code: int) -> None:
    world = a_world()
    world.has("a", 1)
    outage = Fault(code, times=10**6)
    world.server.faults.append(outage)
    async with world.running():
        await settle(600)
        assert not world.informer.synced.is_set()
        assert not is_well(world)
        assert len(world.server.requests) < 250
        outage.times = 0
        await asyncio.wait_for(world.informer.synced.wait(), 60)
        assert is_well(world)
        assert {"a": 1} == world.sizes()


async def test_a_kind_that_is_not_permitted_is_retried_slowly_and_seen() -> None:
    world = a_world()
    world.has("a", 1)
    no = Fault(403, times=10**6)
    world.server.faults.append(no)
    async with world.running():
        await settle(600)
        assert isinstance(world.informer.last_error, Forbidden)
        assert not world.informer.synced.is_set(), "nothing may be concluded from absence"
        assert 15 < len(world.server.requests) < 30
        assert world.informer.silent_seconds() <= 2 * REFUSED.limit_seconds, "a no is an answer"
        no.times = 0
        await settle(2 * REFUSED.limit_seconds)
        assert {"a": 1} == world.sizes()
        assert is_well(world)


async def test_a_404_for_a_kind_that_is_always_there_is_an_outage() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        absent = Fault(404, times=10**6)
        world.server.faults.append(absent)
        world.server.streams[0].cut()
        await settle(600)
        assert isinstance(world.informer.last_error, NotFound)
        assert world.cache.serves(Gadget)
        assert {"a": 1} == world.sizes(), "nothing may be concluded from absence"
        absent.times = 0
        world.has("b", 2)
        await settle(60)
        assert {"a": 1, "b": 2} == world.sizes()
    assert 15 < world.server.lists(Gadget) < 50
    assert [(None, 1), (None, 2)] == world.announced()


async def test_a_kind_that_is_always_there_is_not_synced_by_a_404() -> None:
    world = a_world()
    world.has("a", 1)
    world.server.faults.append(Fault(404, times=3))
    async with world.running():
        await settle(0.6)
        assert not world.informer.synced.is_set()
        await settle(30)
        assert world.informer.synced.is_set()
        assert {"a": 1} == world.sizes()


async def test_one_404_on_a_stream_is_made_up_for_within_a_second() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.server.faults.append(Fault(404, is_watch=True))
        world.server.streams[0].cut()
        await settle(2)
        assert world.cache.serves(Gadget)
        assert is_well(world)
    assert [(None, 1)] == world.announced()
