"""A controller begins only little while what it has made waits in line, and never stops to finish it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from msgspec import structs

from kube_runtime.controller.controller import AHEAD, DONE, ControllerOptions, Result
from kube_runtime.kind import Key
from kube_runtime.types.apps import Deployment
from kube_runtime.types.meta import Metadata, OwnerReference
from kube_runtime.watch.events import Changed
from simulated.widgets import Script, World, running, widget

pytestmark = pytest.mark.looptime

WORKERS = 8
PACE = ControllerOptions(workers=WORKERS, resync_seconds=100_000, timeout_seconds=50_000)


def above(below: World) -> ControllerOptions:
    """How a controller works that makes what is controlled `below`."""
    return replace(PACE, is_ahead=below.runner.has_backlog)


LINE_SECONDS = 1_000
NEW = [Key("ns", f"new-{number}") for number in range(20)]
OLD = Key("ns", "old")


async def long() -> Result:
    await asyncio.sleep(LINE_SECONDS)
    return DONE


async def short() -> Result:
    await asyncio.sleep(1)
    return DONE


def come(world: World, *script: Script) -> None:
    """Have the new ones created, each reconcile of which does what comes next in the script."""
    for key in NEW:
        world.controller.script[key] = iter(script)
        world.widgets.on_watch_event(Changed(widget(key)))


@asynccontextmanager
async def made(lines: int) -> AsyncIterator[World]:
    """What controls the objects that are made: each takes `LINE_SECONDS`, and so many wait for another."""
    one_by_one = World(replace(PACE, workers=1))
    keys = [Key("ns", f"made-{number}") for number in range(lines + 1)]
    for key in keys:
        one_by_one.controller.script[key] = iter([long])
    async with running(world=one_by_one) as world:
        world.list(*map(widget, keys))
        await asyncio.sleep(1)
        yield world


@pytest.mark.parametrize(("lines", "at_once"), [(0, WORKERS), (1, AHEAD), (3, AHEAD)])
async def test_few_are_begun_while_what_was_made_waits(lines: int, at_once: int) -> None:
    async with made(lines) as below, running(world=World(above(below))) as world:
        world.list(widget(OLD))
        await asyncio.sleep(1)
        come(world, short)
        await asyncio.sleep(LINE_SECONDS / 10)
        assert at_once == world.controller.most_active
        assert {OLD, *NEW} == set(world.controller.keys())


async def test_what_is_worked_on_and_is_to_be_looked_at_again_is_no_line() -> None:
    async with made(0) as below, running(world=World(above(below))) as world:
        below.widgets.on_watch_event(Changed(widget(Key("ns", "made-0"), 2)))
        world.list(widget(OLD))
        await asyncio.sleep(1)
        come(world, short)
        await asyncio.sleep(1)
        assert WORKERS == world.controller.most_active


async def test_an_edit_of_what_there_is_is_not_held_back() -> None:
    async with made(3) as below, running(world=World(above(below))) as world:
        world.list(widget(OLD))
        come(world, long)
        await asyncio.sleep(10)
        world.controller.runs.clear()
        edited = structs.replace(widget(OLD, 2).metadata, generation=2)
        world.widgets.on_watch_event(Changed(structs.replace(widget(OLD, 2), metadata=edited)))
        await asyncio.sleep(1)
        assert [OLD] == world.controller.keys()


async def test_all_workers_begin_again_soon_after_the_line_is_gone() -> None:
    async with made(1) as below, running(world=World(above(below))) as world:
        world.list(widget(OLD))
        come(world, long, long)
        await asyncio.sleep(LINE_SECONDS - 10)
        assert AHEAD == world.controller.active
        await asyncio.sleep(20)
        assert WORKERS == world.controller.active


async def test_what_is_reported_of_those_that_have_begun_is_heard_meanwhile() -> None:
    async with made(3) as below, running(world=World(above(below))) as world:
        world.list(widget(OLD))
        come(world, long)
        await asyncio.sleep(10)
        world.controller.runs.clear()
        owner = OwnerReference(
            *("Widget", "old", "uid-old"), api_version="example.com/v1", controller=True
        )
        child = Deployment(Metadata("child", "ns", "uid-c", "1", 1, owner_references=(owner,)))
        world.children.on_watch_event(Changed(child))
        await asyncio.sleep(1)
        assert [OLD] == world.controller.keys()
