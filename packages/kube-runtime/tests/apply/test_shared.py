"""An object with several users: each is an owner, none controls it, and a refusal is reported."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kube_runtime.apply.applier import Applier, Shared
from kube_runtime.apply.result import Obstacle
from kube_runtime.apply.writer import Writer
from kube_runtime.errors import Conflict
from simulated.clock import on_simulated_clock
from simulated.gadget import GADGETS, Gadget, Maker, gadget, key
from simulated.world import World, a_world, settle

HASH = "example.com/hash"
GENERATION = "example.com/owner-generation"
MARKER = ("example.com/managed-by", "us")


@asynccontextmanager
async def a_scene() -> AsyncIterator[tuple[World, Applier, Maker, Maker]]:
    """A synced world with an applier on it, and two users."""
    world = a_world()
    async with world.synced():
        applier = Applier(Writer(world.client, world.cache), HASH, GENERATION)
        yield world, applier, world.has_maker("one"), world.has_maker("two")


def users(world: World) -> list[str]:
    """The uids of the owners of the shared gadget, in their order."""
    live = world.server.storage.read(GADGETS, key("shared"))
    assert not any(each.get("controller") for each in live["metadata"]["ownerReferences"])
    return [each["uid"] for each in live["metadata"]["ownerReferences"]]


@on_simulated_clock
async def test_every_user_is_an_owner_and_the_last_one_takes_it_along() -> None:
    async with a_scene() as (world, applier, one, two):
        for user in (one, two) * 3:
            await applier.apply(user, Shared([gadget("shared", 1)], (Gadget,), MARKER))
            await settle()
        assert [one.metadata.uid, two.metadata.uid] == users(world)
        assert 2 == sum(each.method == "PATCH" for each in world.server.requests)
        await applier.apply(one, Shared([], (Gadget,), MARKER))
        await settle()
        assert [two.metadata.uid] == users(world)
        await applier.apply(two, Shared([], (Gadget,), MARKER))
        await settle()
        assert {} == world.sizes()


@on_simulated_clock
async def test_a_user_that_has_not_seen_the_other_does_not_remove_it() -> None:
    async with a_scene() as (world, applier, one, two):
        await applier.apply(one, Shared([gadget("shared", 1)], (Gadget,), MARKER))
        await settle()
        other = {"apiVersion": "v1", "kind": "Maker", "name": "other", "uid": "uid-of-another"}
        world.server.lag_seconds = 5.0
        live = world.server.storage.read(GADGETS, key("shared"))
        owners = {"ownerReferences": [*live["metadata"]["ownerReferences"], other]}
        world.server.storage.merge(GADGETS, key("shared"), {"metadata": owners})
        with pytest.raises(Conflict):
            await applier.apply(two, Shared([gadget("shared", 1)], (Gadget,), MARKER))
        assert [one.metadata.uid, "uid-of-another"] == users(world)


@on_simulated_clock
async def test_an_object_without_our_marker_is_left_alone() -> None:
    async with a_scene() as (world, applier, one, _):
        world.has("shared", 5)
        await settle()
        applied = await applier.apply(one, Shared([gadget("shared", 1)], (Gadget,), MARKER))
        assert [Obstacle.NAME_CONFLICT] == [each.obstacle for each in applied.blocked]
        assert {"shared": 5} == world.sizes()
