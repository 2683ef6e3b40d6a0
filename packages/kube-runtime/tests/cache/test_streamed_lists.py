"""A list as the beginning of a stream: what changes meanwhile, what breaks off, who cannot do it."""

import asyncio

import pytest
from structlog.testing import capture_logs

from kube_runtime.cache.informer import Informer
from kube_runtime.cache.watch import LIST_SECONDS, LIST_SILENCE_SECONDS
from kube_runtime.client.client import Answer, Request
from kube_runtime.errors import Unreachable
from scripted.transport import Script
from simulated.gadget import GADGETS, Gadget, gadget, key
from simulated.server import NO_ANSWER, Fault, Server, status
from simulated.world import World, a_world, settle

pytestmark = pytest.mark.looptime


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


async def test_readers_do_not_see_an_incomplete_list() -> None:
    world = a_world()
    world.has("a")
    world.server.mark_seconds = 5.0
    async with world.running():
        await settle(0.1)
        assert {} == world.sizes()
        assert not world.informer.synced.is_set()
        await settle(5)
        assert {"a": 0} == world.sizes()


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
        assert {"changed": 2, "anew": 3, "new": 4, "broken": 1, "mended": 5} == world.sizes()
        assert world.cache.broken(Gadget, key("broken")) is not None
        assert world.cache.broken(Gadget, key("mended")) is None
    assert {(None, 1), (None, 2), (None, 3), (None, 4), (None, 5)} == set(world.announced())
    assert ["stream of all"] == asked(world)


async def test_after_a_list_the_stream_continues_from_its_version() -> None:
    world = a_world()
    world.has("a", 1)
    async with world.synced():
        world.server.streams[0].cut()
        world.has("a", 2)
        await settle(5)
        assert {"a": 2} == world.sizes()
    assert ["stream of all", "changes"] == asked(world)


@pytest.mark.parametrize("end", ["cut", "end"])
async def test_who_does_not_finish_a_list_is_asked_for_pages_from_then_on(end: str) -> None:
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
        world.server.streams[0].expire()
        await settle(60)
    assert ["stream of all", "page", "changes", "page", "changes"] == asked(world)


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


async def test_a_list_that_only_brings_changes_is_given_up() -> None:
    world = a_world()
    world.has("a", 1)
    world.server.mark_seconds = 10**6
    async with world.running():
        for number in range(int(LIST_SECONDS)):
            world.has("a", number)
            await settle(1)
        await settle(5)
        assert world.informer.synced.is_set()
    assert ["stream of all", "page", "changes"] == asked(world)


async def test_a_bookmark_without_a_version_does_not_end_the_list() -> None:
    world = a_world()
    world.has("a", 1)
    world.server.mark_seconds = 10**6
    async with world.running():
        await settle(0.1)
        marks = {"annotations": {"k8s.io/initial-events-end": "true"}}
        world.server.streams[0].send("BOOKMARK", {"metadata": marks})
        await settle(5)
        assert {"a": 1} == world.sizes()
    assert ["stream of all", "page", "changes"] == asked(world)


PAGES = ["stream of all", "page", "changes"]


@pytest.mark.parametrize(
    ("code", "times", "expected"),
    [
        *((code, 1, PAGES) for code in (NO_ANSWER, 400, 403, 404, 410, 500, 504)),
        *((code, 2, ["stream of all", "page", "stream of all"]) for code in (404, 410)),
        (429, 3, ["stream of all"] * 4),  # a server with too much to do: pages cost it more
    ],
)
async def test_after_a_failure_pages_are_tried_and_then_a_stream(
    code: int, times: int, expected: list[str]
) -> None:
    world = a_world()
    world.has("a", 1)
    world.server.faults.append(Fault(code, times=times))
    async with world.running():
        await settle(60)
        assert {"a": 1} == world.sizes()
    assert expected == asked(world)


async def test_who_may_list_and_not_watch_has_the_list() -> None:
    world = a_world()
    world.has("a", 1)
    world.server.faults.append(Fault(403, times=10**6, is_watch=True))
    async with world.running():
        await settle(300)
        assert {"a": 1} == world.sizes()


@pytest.mark.parametrize("code", [403, 500])
async def test_an_outage_is_logged_once_per_text(code: int) -> None:
    class Wordy(Server):
        async def send(self, request: Request) -> Answer:
            way = "stream" if "watch" in request.query else "page"
            return await Script().then(code, status(code, "", f"no {way}")).send(request)

    world = World(Wordy(), Informer(Gadget))
    with capture_logs() as logs:
        async with world.running():
            await settle(1800)
    warnings = [each["error"] for each in logs if each["log_level"] == "warning"]
    assert ["gadgets.example.com: no stream", "gadgets.example.com: no page"] == warnings


async def test_what_we_make_and_others_remove_while_a_list_is_sent_is_gone_at_its_end() -> None:
    world = a_world()
    async with world.synced():
        world.server.mark_seconds = 5.0
        world.server.streams[0].expire()
        await settle(1)
        await world.writer.apply(Gadget, gadget("ours", 1), force=True)
        assert {"ours": 1} == world.sizes()
        world.has_no("ours")
        await settle(6)
        assert {} == world.sizes()


async def test_what_is_removed_while_a_list_is_sent_and_our_answer_is_late_is_not_shown() -> None:
    world = a_world()
    async with world.synced():
        world.server.mark_seconds = 2.0
        world.server.streams[0].expire()
        await settle(1)
        world.server.answer_seconds = 10.0
        writing = asyncio.create_task(world.writer.apply(Gadget, gadget("ours", 1), force=True))
        await settle(0.01)
        world.has_no("ours")
        await writing
        assert {} == world.sizes()


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
