"""Random worlds: whatever happens, the cache comes to rest at what the server has.

Each script is a list of acts with pauses between them, played on a simulated clock. The acts are those of
other clients, those of ours, and those of the network and the server that go wrong.
"""

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kube_runtime.errors import ApiError, Unreachable
from kube_runtime.types.meta import Object
from simulated.clock import on_simulated_clock
from simulated.gadget import GADGETS, Gadget, gadget, key
from simulated.server import NO_ANSWER, Fault, Stream
from simulated.witness import Witness
from simulated.world import World, a_world

pytestmark = pytest.mark.usefixtures("lists")

NAMES = ("a", "b", "c", "d", "e")
REST_SECONDS = 2000.0
PAUSES = (0.0, 0.0, 0.1, 1.0, 5.0, 100.0, 400.0)
SHORT_PAUSES = (0.0, 0.0, 0.1, 0.5, 1.0, 5.0)

OTHERS = ("change", "remove", "recreate", "touch", "malform", "hold back")
OURS = ("apply", "patch", "patch status", "delete")
HARMLESS = ("cut", "silence", "end", "tick")
LOSSES = ("expire", "compact", "restart", "refuse", "refuse after")


def silence(stream: Stream) -> None:
    stream.is_silent = True


STREAMS: dict[str, Callable[[Stream], None]] = {
    "cut": Stream.cut,
    "end": Stream.end,
    "expire": Stream.expire,
    "silence": silence,
}


@dataclass(frozen=True)
class Act:
    """Something that happens to one gadget or to all, after a pause."""

    what: str
    name: str
    number: int
    pause_seconds: float


@dataclass(frozen=True)
class Delays:
    """Upper bounds, in seconds."""

    request: float
    answer: float
    lag: float
    mark: float


def acts(*what: str, pauses: tuple[float, ...] = PAUSES) -> st.SearchStrategy[list[Act]]:
    one = st.builds(
        Act, st.sampled_from(what), st.sampled_from(NAMES), st.integers(0, 3), st.sampled_from(pauses)
    )
    return st.lists(one, min_size=1, max_size=40)


delays = st.builds(
    Delays,
    *(st.sampled_from(each) for each in ((0.0, 0.5), (0.0, 0.5, 3.0), (0.0, 0.5, 3.0), (0.0, 1.0, 5.0))),
)
seeds = st.integers(0, 2**16)


@dataclass
class Play:
    """A script being played."""

    world: World
    witness: Witness
    writes: set[asyncio.Task[None]] = field(default_factory=set)
    informer: asyncio.Task[None] | None = None

    async def run(self, script: list[Act]) -> None:
        self.start()
        await self.world.informer.synced.wait()
        for act in script:
            self.witness.record(str(act))
            await self.one(act)
            await self.pass_seconds(act.pause_seconds)
        await self.pass_seconds(REST_SECONDS)
        assert not self.writes, self.witness.history()
        self.witness.is_at_rest()
        await self.stop()

    async def pass_seconds(self, seconds: float) -> None:
        self.witness.check_order()
        assert self.informer is not None
        await asyncio.wait([self.informer], timeout=seconds)
        if self.informer.done():
            self.informer.result()
        self.witness.check_order()

    def start(self) -> None:
        self.informer = asyncio.create_task(self.world.informer.run(self.world.client))

    async def stop(self) -> None:
        assert self.informer is not None
        self.informer.cancel()
        await asyncio.wait([self.informer])

    async def one(self, act: Act) -> None:
        server = self.world.server
        if act.what in STREAMS:
            for stream in server.streams:
                STREAMS[act.what](stream)
        elif act.what in OURS:
            task = asyncio.create_task(self.write(act))
            self.writes.add(task)
            task.add_done_callback(self.writes.discard)
        elif act.what == "restart":
            await self.stop()
            self.start()
        elif act.what in ("refuse", "refuse after"):
            code = (NO_ANSWER, 429, 500, 410)[act.number]
            server.faults.append(Fault(code, after=act.what == "refuse after"))
        else:
            self.others(act)

    def others(self, act: Act) -> None:
        stored = self.world.server.storage.objects.get(GADGETS, {})
        exists = key(act.name) in stored
        match act.what:
            case "tick":
                self.world.server.storage.tick()
            case "compact":
                self.world.server.storage.compact()
            case "change":
                self.world.has(act.name, act.number)
            case "malform":
                self.world.has(act.name, "huge")
            case "hold back":
                self.world.has(act.name, act.number, finalizers=["f"] if act.number else [])
            case "touch" if exists:
                patch: Object = {"spec": {}, "metadata": {"managedFields": [act.number]}}
                self.world.server.storage.merge(GADGETS, key(act.name), patch)
            case "remove" if exists:
                self.world.has_no(act.name)
            case "recreate" if exists and not stored[key(act.name)]["metadata"].get("finalizers"):
                self.world.has_no(act.name)
                self.world.has(act.name, act.number)
            case _:
                pass

    async def write(self, act: Act) -> None:
        ways: dict[str, Callable[[Act], Awaitable[Gadget | None]]] = {
            "apply": self.apply,
            "patch": self.patch,
            "patch status": self.patch_status,
            "delete": self.delete,
        }
        try:
            written = await ways[act.what](act)
        except (ApiError, Unreachable) as error:
            self.witness.record(f"{act} failed: {error!r}")
            return
        if written is not None:
            self.witness.has_seen_write(written)

    def apply(self, act: Act) -> Awaitable[Gadget]:
        return self.world.writer.apply(Gadget, gadget(act.name, act.number), force=True)

    def patch(self, act: Act) -> Awaitable[Gadget]:
        patch = {"spec": {"size": act.number}}
        return self.world.writer.merge_patch(Gadget, key(act.name), patch)

    def patch_status(self, act: Act) -> Awaitable[Gadget]:
        patch = {"status": {"ready": act.number}}
        return self.world.writer.merge_patch(Gadget, key(act.name), patch, subresource="status")

    async def delete(self, act: Act) -> None:
        present = self.world.cache.get(Gadget, key(act.name))
        if present is not None:
            await self.world.writer.delete(present)
            self.witness.has_seen_deletion(present)


def a_play(seed: int, delays: Delays, *, is_strict: bool) -> Play:
    world = a_world(seed)
    server = world.server
    server.is_jittered = True
    server.page_limit = 2
    server.gone_as_event = bool(seed % 2)
    server.request_seconds, server.answer_seconds = delays.request, delays.answer
    server.lag_seconds, server.mark_seconds = delays.lag, delays.mark
    return Play(world, Witness(world.cache, server.storage, is_strict))


WORLDS = int(os.environ.get("SIMULATED_WORLDS", "150"))
"""How many worlds each test plays; more of them before a change of the runtime is trusted."""

simulated = settings(deadline=None, max_examples=WORLDS, suppress_health_check=[HealthCheck.too_slow])


@simulated
@given(seeds, delays, acts(*OTHERS, *OURS, *HARMLESS, *LOSSES))
@on_simulated_clock
async def test_at_rest_the_cache_equals_the_server_and_every_change_was_announced_once(
    seed: int, delays: Delays, script: list[Act]
) -> None:
    play = a_play(seed, delays, is_strict=False)
    await play.run(script)
    most = 1 + 2 * sum(act.what in LOSSES for act in script) + deafness(script)
    assert play.world.server.lists(Gadget) <= most, play.witness.history()


def deafness(script: list[Act]) -> int:
    """How often at most two streams in a row are without a line, which the watch answers with a list."""
    return sum(act.what == "silence" for act in script) // 2


@simulated
@given(seeds, delays, acts(*OTHERS, *OURS, *HARMLESS))
@on_simulated_clock
async def test_while_history_is_kept_one_list_is_enough(seed: int, delays: Delays, script: list[Act]) -> None:
    play = a_play(seed, delays, is_strict=False)
    await play.run(script)
    assert play.world.server.lists(Gadget) <= 1 + deafness(script), play.witness.history()


@simulated
@given(seeds, delays, acts(*OTHERS, *OURS, "end", "tick", "cut", pauses=SHORT_PAUSES))
@on_simulated_clock
async def test_own_writes_among_those_of_others_are_shown_at_once_and_time_never_runs_back(
    seed: int, delays: Delays, script: list[Act]
) -> None:
    await a_play(seed, delays, is_strict=True).run(script)


@simulated
@given(seeds, delays, acts(*OURS, "expire", "cut", "end", "restart", pauses=SHORT_PAUSES))
@on_simulated_clock
async def test_lists_that_race_with_own_writes_neither_drop_nor_resurrect(
    seed: int, delays: Delays, script: list[Act]
) -> None:
    await a_play(seed, delays, is_strict=True).run(script)
