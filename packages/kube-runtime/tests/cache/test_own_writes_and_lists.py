"""Own writes stay in the cache during a list, which may be older or newer than they."""

import asyncio

import pytest

from kube_runtime.cache.store import OWN_WRITE_SECONDS
from simulated.gadget import Gadget
from simulated.world import World, a_world, settle
from simulated.writing import stays, write

pytestmark = pytest.mark.looptime


async def list_under_way(
    world: World, *, taken_in_seconds: float = 0, answered_in_seconds: float = 0
) -> None:
    """Have the watch end and a list asked for; it is taken that late, or is on its way that long."""
    world.server.request_seconds = taken_in_seconds
    world.server.answer_seconds = answered_in_seconds
    world.server.streams[0].expire()
    while world.server.lists(Gadget) < 2:
        await settle(0.01)
    world.server.request_seconds = world.server.answer_seconds = 0


async def test_what_the_watch_brings_behind_a_write_is_shown_when_the_write_is_given_up() -> None:
    world = a_world()
    async with world.synced():
        await list_under_way(world, taken_in_seconds=3)
        await write(world, "a", 1)
        world.has_no("a")
        await settle(4)
        assert {"a": 1} == world.sizes(), "the list does not know whether it is before or after"
        world.has("a", 2)
        await settle(OWN_WRITE_SECONDS)
        assert {"a": 2} == world.sizes()


async def test_a_list_taken_before_our_write_does_not_drop_it() -> None:
    world = a_world()
    world.has("old", 1)
    async with world.synced():
        world.server.lag_seconds = 0.5
        world.server.page_limit = 1
        await list_under_way(world, answered_in_seconds=2)
        await write(world, "a", 1)
        await write(world, "old", 2)
        await stays(world, {"a": 1, "old": 2}, seconds=6)


async def test_a_list_that_finds_our_write_removed_or_changed_again_is_believed() -> None:
    world = a_world()
    for name in ("removed", "changed", "recreated"):
        world.has(name, 0)
    async with world.synced():
        await list_under_way(world, taken_in_seconds=3)
        for name in ("removed", "changed", "recreated"):
            await write(world, name, 1)
        world.has_no("removed")
        world.has_no("recreated")
        world.has("recreated", 2)
        world.has("changed", 2)
        assert {"removed": 1, "changed": 1, "recreated": 1} == world.sizes()
        await settle(3.1)
        assert {"changed": 2, "recreated": 2} == world.sizes()


async def test_an_answer_does_not_bring_back_what_a_list_has_found_removed_meanwhile() -> None:
    world = a_world()
    world.has("a", 0)
    async with world.synced():
        world.server.streams[0].cut()
        world.server.answer_seconds = 9
        writing = asyncio.create_task(write(world, "a", 1))
        await settle(0.01)
        world.server.answer_seconds = 0
        world.has_no("a")
        world.server.storage.compact()
        await settle(5)
        assert {} == world.sizes()
        await writing
        assert {} == world.sizes()


@pytest.mark.parametrize("is_created_by_us", [True, False])
async def test_a_list_does_not_bring_back_what_it_found_deleted(is_created_by_us: bool) -> None:
    world = a_world()
    if not is_created_by_us:
        world.has("a", 0)
    async with world.synced():
        world.server.streams[0].cut()
        await write(world, "a", 1)
        world.has_no("a")
        world.server.storage.compact()
        await settle(5)
        assert 2 == world.server.lists(Gadget)
        assert {} == world.sizes()
