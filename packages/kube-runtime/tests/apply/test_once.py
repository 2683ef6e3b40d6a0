"""What is made once is created where there is none, and never touched again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kube_runtime.apply.applier import Applier, CreateOnly
from kube_runtime.apply.result import Applied, Obstacle, Verb
from kube_runtime.apply.writer import Writer
from kube_runtime.errors import Conflict
from kube_runtime.types.meta import Metadata
from simulated.clock import on_simulated_clock
from simulated.gadget import GADGETS, NAMESPACE, Gadget, gadget, key
from simulated.server import Fault
from simulated.world import World, a_world, settle

HASH = "example.com/hash"
GENERATION = "example.com/owner-generation"
OWNER = Gadget(Metadata("owner", NAMESPACE, "owner-uid"))


@asynccontextmanager
async def a_scene() -> AsyncIterator[tuple[World, Applier]]:
    world = a_world()
    async with world.synced():
        yield (
            world,
            Applier(Writer(world.client, world.cache), HASH, GENERATION),
        )


async def create(creator: Applier, size: int) -> Applied:
    return await creator.apply(OWNER, CreateOnly([gadget("a", size)], (Gadget,)))


def verbs(applied: Applied) -> list[Verb]:
    return [each.verb for each in applied.changes]


@on_simulated_clock
async def test_what_is_missing_is_created_and_belongs_to_the_owner() -> None:
    async with a_scene() as (_, creator):
        applied = await create(creator, 1)
        assert [Verb.CREATE] == verbs(applied)
        [made] = applied.objects
        assert made.metadata.controller is not None
        assert "owner-uid" == made.metadata.controller.uid


@on_simulated_clock
async def test_what_exists_is_left_alone_however_it_differs() -> None:
    async with a_scene() as (world, creator):
        await create(creator, 1)
        assert [] == verbs(await create(creator, 2))
        await settle()
        assert [] == verbs(await create(creator, 2))
        assert {"a": 1} == world.sizes()


@on_simulated_clock
async def test_what_is_of_another_is_left_alone() -> None:
    async with a_scene() as (world, creator):
        world.server.storage.create(GADGETS, gadget("a", 5))
        await settle()
        applied = await create(creator, 1)
        assert ((), ()) == (applied.changes, applied.blocked)
        assert {"a": 5} == world.sizes()


@on_simulated_clock
async def test_what_was_made_a_moment_ago_is_found_by_the_next_try() -> None:
    async with a_scene() as (world, creator):
        world.server.lag_seconds = 5.0
        world.server.storage.create(GADGETS, gadget("a", 5))
        with pytest.raises(Conflict):
            await create(creator, 1)
        assert 5 == world.server.storage.read(GADGETS, key("a"))["spec"]["size"]


@on_simulated_clock
async def test_a_refusal_is_told() -> None:
    async with a_scene() as (world, creator):
        world.server.faults.append(Fault(422, method="PATCH"))
        applied = await create(creator, 1)
        assert [Obstacle.REJECTED] == [each.obstacle for each in applied.blocked]
