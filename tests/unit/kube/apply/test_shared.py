"""An object with several users: each is an owner, none controls it, and a refusal is told."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from dynamo_operator.kube.applied import Obstacle
from dynamo_operator.kube.shared import SharedApplier
from dynamo_operator.kube.types.meta import Metadata
from dynamo_operator.kube.writer import Writer
from simulated.clock import on_simulated_clock
from simulated.gadget import GADGETS, NAMESPACE, Gadget, gadget, key
from simulated.server import Fault
from simulated.world import World, a_world, settle

MARKER = ("example.com/managed-by", "us")
ONE = Gadget(Metadata("one", NAMESPACE, "uid-of-one"))
TWO = Gadget(Metadata("two", NAMESPACE, "uid-of-two"))


@asynccontextmanager
async def a_scene() -> AsyncIterator[tuple[World, SharedApplier]]:
    """A synced world with an applier on it."""
    world = a_world()
    async with world.synced():
        yield world, SharedApplier(Writer(world.client, world.cache), world.cache, MARKER)


def users(world: World) -> list[str]:
    """The uids of the owners of the shared gadget, in their order."""
    live = world.server.storage.read(GADGETS, key("shared"))
    assert not any(each.get("controller") for each in live["metadata"]["ownerReferences"])
    return [each["uid"] for each in live["metadata"]["ownerReferences"]]


@on_simulated_clock
async def test_every_user_is_an_owner_and_the_last_one_takes_it_along() -> None:
    async with a_scene() as (world, applier):
        for user in (ONE, TWO, ONE):
            await applier.apply(user, wanted=[gadget("shared", 1)], types=(Gadget,))
            await settle()
        assert ["uid-of-one", "uid-of-two"] == users(world)
        await applier.apply(ONE, wanted=[], types=(Gadget,))
        await settle()
        assert ["uid-of-two"] == users(world)
        await applier.apply(TWO, wanted=[], types=(Gadget,))
        await settle()
        assert {} == world.sizes()


@on_simulated_clock
async def test_two_users_that_want_the_same_write_once_each() -> None:
    async with a_scene() as (world, applier):
        for user in (ONE, TWO) * 5:
            await applier.apply(user, wanted=[gadget("shared", 1)], types=(Gadget,))
            await settle()
        assert 2 == len([each for each in world.server.requests if each.method == "PATCH"])


@on_simulated_clock
async def test_a_refusal_is_told_and_ends_nothing() -> None:
    async with a_scene() as (world, applier):
        world.server.faults.append(Fault(403, method="PATCH"))
        wanted = [gadget("shared", 1), gadget("other", 2)]
        applied = await applier.apply(ONE, wanted=wanted, types=(Gadget,))
        assert [Obstacle.REJECTED] == [each.obstacle for each in applied.blocked]
        assert {"other": 2} == world.sizes()


@on_simulated_clock
async def test_an_object_without_our_marker_is_left_alone() -> None:
    async with a_scene() as (world, applier):
        world.has("shared", 5)
        await settle()
        applied = await applier.apply(ONE, wanted=[gadget("shared", 1)], types=(Gadget,))
        assert [Obstacle.NAME_CONFLICT] == [each.obstacle for each in applied.blocked]
        assert {"shared": 5} == world.sizes()
