"""A list as the beginning of a stream: what changes meanwhile, what breaks off, who cannot do it."""

import asyncio

import pytest

from dynamo_operator.kube.errors import Unreachable
from dynamo_operator.kube.watch import LIST_SILENCE_SECONDS
from simulated.clock import on_simulated_clock
from simulated.gadget import GADGETS, Gadget, key
from simulated.server import NO_ANSWER, Fault, Server
from simulated.world import World, a_world, settle


@pytest.fixture(autouse=True)
def _lists(monkeypatch: pytest.MonkeyPatch) -> None:
    """Only with servers that stream lists, unless a test says otherwise."""
    monkeypatch.setattr(Server, "STREAMS_LISTS", True)


def asked(world: World) -> list[str]:
    """How the gadgets were asked for, in order."""
    return [
        "stream of all"
        if "sendInitialEvents" in each.query
        else "changes"
        if "watch" in each.query
        else "page"
        for each in world.server.requests
    ]


@on_simulated_clock
async def test_a_list_and_its_changes_are_one_request() -> None:
    world = a_world()
    for number in range(1203):
        world.has(f"g{number}", number)
    async with world.synced():
        assert 1203 == len(world.sizes())
        world.has("new", 7)
        await settle()
        assert 7 == world.sizes()["new"]
    assert ["stream of all"] == asked(world)


@on_simulated_clock
async def test_nobody_sees_a_list_before_its_end() -> None:
    world = a_world()
    world.has("a")
    world.server.mark_seconds = 5.0
    async with world.running():
        await settle(0.1)
        assert {} == world.sizes()
        assert not world.informer.synced.is_set()
        await settle(5)
        assert {"a": 0} == world.sizes()


@on_simulated_clock
async def test_what_changes_while_a_list_is_sent_is_part_of_it() -> None:
    world = a_world()
    for name in ("changed", "removed", "anew", "broken", "mended"):
        world.has(name, 1 if name != "mended" else "huge")
    world.server.mark_seconds = 5.0
    async with world.running():
        await settle(0.01)
        world.has("changed", 2)
        world.has_no("removed")
        world.has_no("anew")
        world.has("anew", 3)
        world.has("new", 4)
        world.has("broken", "huge")
        world.has("mended", 5)
        await settle(5)
        assert {"changed": 2, "anew": 3, "new": 4, "mended": 5} == world.sizes()
        assert world.cache.broken(Gadget, key("broken")) is not None
        assert world.cache.broken(Gadget, key("mended")) is None
    assert {(None, 2), (None, 3), (None, 4), (None, 5)} == set(world.announced())
    assert ["stream of all"] == asked(world)


@on_simulated_clock
async def test_after_a_list_the_stream_goes_on_from_its_end() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.server.streams[0].cut()
        world.has("a", 2)
        await settle(5)
        assert {"a": 2} == world.sizes()
    assert ["stream of all", "changes"] == asked(world)


@pytest.mark.parametrize("end", ["cut", "end", "expire"])
@on_simulated_clock
async def test_a_list_that_breaks_off_is_begun_again_in_pages(end: str) -> None:
    world = a_world()
    world.has("a", 1)
    world.has("gone", 1)
    world.server.mark_seconds = 5.0
    async with world.running():
        await settle(0.01)
        getattr(world.server.streams[0], end)()
        world.has_no("gone")
        await world.informer.synced.wait()
        assert {"a": 1} == world.sizes()
        await settle()
    assert ["stream of all", "page", "changes"] == asked(world)


@on_simulated_clock
async def test_a_list_that_says_nothing_more_is_given_up() -> None:
    world = a_world()
    world.has("a", 1)
    world.server.mark_seconds = 10**6
    async with world.running():
        await settle(LIST_SILENCE_SECONDS - 1)
        assert world.informer.last_error is None
        await settle(5)
        assert {"a": 1} == world.sizes()
    assert ["stream of all", "page", "changes"] == asked(world)
    assert world.server.streams == []


@pytest.mark.parametrize("code", [NO_ANSWER, 400, 404, 410, 429, 500, 504])
@on_simulated_clock
async def test_after_any_failure_pages_are_tried(code: int) -> None:
    world = a_world()
    world.has("a", 1)
    world.server.faults.append(Fault(code))
    async with world.running():
        await settle(60)
        assert {"a": 1} == world.sizes()
    assert ["stream of all", "page", "changes"] == asked(world)


@pytest.mark.parametrize("code", [404, 410])
@on_simulated_clock
async def test_after_pages_that_failed_a_stream_is_tried(code: int) -> None:
    world = a_world()
    world.has("a", 1)
    world.server.faults.append(Fault(code, times=2))
    async with world.running():
        await settle(60)
        assert {"a": 1} == world.sizes()
    assert ["stream of all", "page", "stream of all"] == asked(world)


@on_simulated_clock
async def test_what_is_forbidden_is_asked_for_in_one_way_so_that_it_is_told_once() -> None:
    world = a_world()
    world.server.faults.append(Fault(403, times=10**6))
    async with world.running():
        await settle(300)
    assert {"stream of all"} == set(asked(world))


@on_simulated_clock
async def test_a_server_that_does_not_stream_lists_is_asked_once_and_without_a_delay(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(Server, "STREAMS_LISTS", False)
    world = a_world()
    world.has("a", 1)
    started = asyncio.get_running_loop().time()
    async with world.synced():
        assert asyncio.get_running_loop().time() - started < 0.01
        assert world.informer.last_error is None
        assert 0 == world.informer.interruptions
        world.server.streams[0].expire()
        await settle(60)
        assert {"a": 1} == world.sizes()
    assert ["stream of all", "page", "changes", "page", "changes"] == asked(world)


@on_simulated_clock
async def test_a_stream_that_is_closed_right_after_its_list_counts_as_a_failure() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.server.streams[0].end()
        await settle(0.1)
        assert isinstance(world.informer.last_error, Unreachable)
        await settle(60)
        assert {"a": 1} == world.sizes()
        assert world.server.storage.objects[GADGETS]
    assert ["stream of all", "changes"] == asked(world)
