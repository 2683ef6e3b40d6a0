"""The watch, seen from the cache: lists, streams, their ends and their errors."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from kube_runtime.cache.watch import MARGIN_SECONDS, SERVER_SECONDS, SILENCE_SECONDS
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.errors import Unreachable
from simulated.gadget import GADGETS, Gadget, key
from simulated.server import NO_ANSWER, Fault, Server
from simulated.world import a_world, settle

pytestmark = [pytest.mark.looptime, pytest.mark.usefixtures("lists")]

LONGEST_STREAM = SERVER_SECONDS[1] + MARGIN_SECONDS


async def test_everything_that_exists_is_there_once_synced() -> None:
    world = a_world()
    for number in range(1203):  # three pages
        world.has(f"g{number}", number)
    async with world.synced():
        assert {f"g{number}": number for number in range(1203)} == world.sizes()
    assert 1 == world.server.lists(Gadget)
    assert all(each.initial for each in world.changes)
    assert 1203 == len(world.changes)


async def test_an_informer_that_is_cancelled_leaves_no_stream_open() -> None:
    world = a_world()
    async with world.synced():
        assert 1 == len(world.server.streams)
    assert [] == world.server.streams


async def test_the_store_is_complete_before_the_first_handler_is_woken() -> None:
    world = a_world()
    seen: list[int] = []
    world.cache.subscribe(Gadget, lambda _: seen.append(len(world.sizes())))
    world.has("a")
    world.has("b")
    async with world.synced():
        assert [2, 2] == seen


async def test_a_change_of_an_unread_field_wakes_no_controller() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.announced()
        world.server.storage.merge(GADGETS, key("a"), {"spec": {"color": "red"}, "x": 1})
        world.server.storage.merge(GADGETS, key("a"), {"metadata": {"managedFields": [{}]}})
        await settle()
        stored = world.cache.get(Gadget, key("a"))
        newest = world.server.storage.read(GADGETS, key("a"))["metadata"]["resourceVersion"]
    # The generation has changed with the spec, and that is read.
    assert [(1, 1)] == world.announced()
    assert stored is not None
    assert newest == stored.metadata.resource_version


@pytest.mark.parametrize("gone_as_event", [False, True], ids=["as a status", "as an event"])
async def test_a_410_lists_again_and_yields_what_was_missed(gone_as_event: bool) -> None:
    world = a_world()
    world.server.gone_as_event = gone_as_event
    for name in ("kept", "changed", "removed"):
        world.has(name, 1)
    async with world.synced():
        await settle()
        world.announced()
        world.server.streams[0].is_silent = True
        world.has("changed", 2)
        world.has_no("removed")
        world.has("new", 3)
        world.server.storage.compact()
        await settle(LONGEST_STREAM + 60)
        assert {"kept": 1, "changed": 2, "new": 3} == world.sizes()
    assert {(1, 2), (1, None), (None, 3)} == set(world.announced())
    assert 2 == world.server.lists(Gadget)


async def test_a_relist_announces_nothing_that_did_not_change() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.announced()
        before = world.cache.get(Gadget, key("a"))
        world.server.streams[0].expire()
        await settle(10)
        assert 2 == world.server.lists(Gadget)
        assert before is world.cache.get(Gadget, key("a"))
    assert [] == world.announced()


async def test_an_object_removed_and_created_anew_is_announced_with_both_uids() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.announced()
        world.server.streams[0].cut()
        world.has_no("a")
        world.has("a", 1)
        world.server.storage.compact()
        await settle(10)
        (change,) = world.changes
    assert change.old is not None
    assert change.new is not None
    assert change.old.metadata.uid != change.new.metadata.uid


async def test_bookmarks_carry_a_quiet_watch_over_forgotten_history() -> None:
    world = a_world()
    async with world.synced():
        for _ in range(20):
            world.server.storage.tick()
            await settle(100)
            world.server.storage.compact()
    assert 1 == world.server.lists(Gadget)


async def test_streams_that_end_in_order_follow_each_other_without_a_pause() -> None:
    world = a_world()
    async with world.synced():
        await settle(3000)
        assert (None, 0) == (world.informer.last_error, world.informer.interruptions)
    assert 10 <= world.server.watches(Gadget) <= 13
    assert 1 == world.server.lists(Gadget)


async def test_each_stream_asks_for_another_server_timeout() -> None:
    world = a_world()
    async with world.synced():
        await settle(3000)
    asked = [int(each.query["timeoutSeconds"]) for each in world.server.requests if "watch" in each.query]
    assert all(SERVER_SECONDS[0] <= each <= SERVER_SECONDS[1] for each in asked)
    assert 5 < len(set(asked))


async def test_a_server_that_does_not_know_our_version_is_listed_anew() -> None:
    world = a_world()
    world.has("a")
    async with world.synced():
        world.server.streams[0].is_mute = True
        await settle(SILENCE_SECONDS + 1)
        assert 1 == world.server.lists(Gadget), "the stream may have been half-open"
        world.server.streams[0].is_mute = True
        await settle(SILENCE_SECONDS + 10)
    assert 2 == world.server.lists(Gadget)


async def test_a_late_bookmark_is_enough() -> None:
    world = a_world()
    async with world.synced():
        world.server.streams[0].is_mute = True
        await asyncio.sleep(SILENCE_SECONDS - 1)
        world.server.streams[0].is_mute = False
        await settle(SERVER_SECONDS[1])
    assert 1 == world.server.lists(Gadget), "a bookmark came in time"


async def test_a_silent_stream_is_cut_and_resumes_without_a_list() -> None:
    world = a_world()
    async with world.synced():
        await settle(SERVER_SECONDS[0] / 2)  # bookmarks have come
        world.server.streams[0].is_silent = True
        world.has("a", 1)
        await settle(SILENCE_SECONDS / 3)
        assert {} == world.sizes()
        await settle(SILENCE_SECONDS * 2 / 3 + 1)
        assert {"a": 1} == world.sizes()
        assert 1 == len(world.server.streams), "the silent stream was closed"
    assert 1 == world.server.lists(Gadget)


class ClosingEachStream:
    """A proxy that lets a watch begin and ends it in order at once."""

    def __init__(self, server: Server) -> None:
        self.server = server

    async def send(self, request: Request) -> Answer:
        answer = await self.server.send(request)
        if "watch" in request.query:
            await answer.aclose()
            answer.body = nothing()
        return answer


async def nothing() -> AsyncIterator[bytes]:
    no_bytes: tuple[bytes, ...] = ()
    for each in no_bytes:
        yield each


@pytest.mark.parametrize(("opens", "most"), [(True, 50), (False, 60)])
async def test_streams_that_end_at_once_or_cannot_be_opened_back_off(opens: bool, most: int) -> None:
    world = a_world()
    if opens:
        world.client = Client(ClosingEachStream(world.server))
    else:
        world.server.faults.append(Fault(NO_ANSWER, times=10**6, is_watch=True))
    async with world.synced():
        await settle(600)
        assert isinstance(world.informer.last_error, Unreachable)
    assert 20 < world.server.watches(Gadget) < most
    ways = 2 if world.server.STREAMS_LISTS else 1
    assert ways == world.server.lists(Gadget)


async def test_a_list_that_expires_between_two_pages_starts_again(monkeypatch: pytest.MonkeyPatch) -> None:
    world = a_world()
    monkeypatch.setattr(world.server, "STREAMS_LISTS", False)
    for number in range(700):
        world.has(f"g{number}", number)
    world.server.answer_seconds = 2.0
    async with world.running():
        await settle(3.0)  # a stream was refused, and the first page is on its way
        world.has_no("g0")
        world.server.storage.compact()
        await world.informer.synced.wait()
        assert 699 == len(world.sizes())
    assert 2 == world.server.lists(Gadget)


async def test_silence_is_measured_from_the_last_word_of_the_server() -> None:
    world = a_world()
    assert float("inf") == world.informer.silent_seconds()
    async with world.synced():
        await settle(200)
        assert world.informer.silent_seconds() <= 60, "bookmarks count"
        world.server.streams[0].is_silent = True
        world.server.faults.append(Fault(NO_ANSWER, times=10**6))
        await settle(1000)
        assert 900 < world.informer.silent_seconds() < 1100


async def test_only_what_is_selected_is_watched_and_leaving_the_selection_is_a_removal() -> None:
    world = a_world(labels="app=ours")
    world.has("a", 1, labels={"app": "ours"})
    world.has("b", 2, labels={"app": "other"})
    async with world.synced():
        assert {"a": 1} == world.sizes()
        world.has("a", 1, labels={"app": "other"})
        world.has("b", 2, labels={"app": "ours"})
        await settle()
        assert {"b": 2} == world.sizes()
