"""Two types of one kind have two stores; a state that one of them shows too long deletes nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest

from kube_runtime.apply.applier import Applier, Controlled, Shared
from kube_runtime.apply.writer import ManagedFieldsUpgrade, Writer
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Cache
from kube_runtime.errors import Conflict
from kube_runtime.types.meta import Object, controller_reference
from simulated.gadget import GADGETS, Gadget, Maker, gadget, key
from simulated.world import World, a_world, settle

pytestmark = pytest.mark.looptime

MARK = "example.com/earlier"
SHARED = ("shared", "yes")
LABELS = {"app": "ours", "shared": "yes"}


class SharedGadget(Gadget):
    """A gadget of several owners; its watch selects another label."""


@dataclass
class Scene:
    """A gadget of an earlier operator, its only controller, and what the stores of both types show of it."""

    world: World
    applier: Applier
    owner: Maker

    @property
    def cache(self) -> Cache:
        """The cache with both types."""
        return self.applier.writer.cache

    def stored(self) -> Object:
        """The metadata of the gadget on the server."""
        metadata: Object = self.world.server.storage.read(GADGETS, key("model"))["metadata"]
        return metadata

    async def share(self, *, desired: bool = True) -> None:
        """Apply the gadget as a shared one."""
        objects = [gadget("model", 1, labels=LABELS)] if desired else []
        await self.applier.apply(self.owner, Shared(objects, (SharedGadget,), SHARED))

    async def read_by_name(self) -> None:
        """Bring the gadget into the store whose watch does not select it."""
        await self.applier.writer.read_existing(Gadget, key("model"), is_ours=lambda _: True)


@asynccontextmanager
async def a_scene() -> AsyncIterator[Scene]:
    """Both types watched, the gadget read by name into the store of `Gadget`."""
    world = a_world(labels="app=other")
    shared = Informer(SharedGadget, labels="app=ours")
    world.cache.add(shared.store)
    watching = asyncio.create_task(shared.run(world.client))
    async with world.synced():
        owner = world.has_maker("owner")
        maker = world.has_maker("other")
        other = {**controller_reference(maker, maker.KIND), "controller": False}
        references = [controller_reference(owner, owner.KIND), other]
        world.has("model", 1, labels=LABELS, annotations={MARK: "1"}, ownerReferences=references)
        await settle()
        writer = Writer(world.client, world.cache)
        upgrade = ManagedFieldsUpgrade(writer, MARK)
        yield Scene(world, Applier(writer, take_over=upgrade), owner)
        watching.cancel()


async def test_what_one_set_desires_is_not_deleted_by_the_next() -> None:
    async with a_scene() as scene:
        await scene.read_by_name()
        uid = scene.stored()["uid"]
        shared = Shared([gadget("model", 1, labels=LABELS)], (SharedGadget,), SHARED)
        await scene.applier.apply(scene.owner, shared, Controlled([], (SharedGadget, Gadget)))
        await settle()
        assert uid == scene.stored()["uid"]


async def test_a_write_ends_what_the_other_store_shows_of_the_object() -> None:
    async with a_scene() as scene:
        await scene.read_by_name()
        await scene.share()
        assert scene.cache.get(Gadget, key("model")) is None
        await scene.share(desired=False)
        await scene.applier.apply(scene.owner, Controlled([], (Gadget,)))
        owners = scene.stored()["ownerReferences"]
        assert ["other"] == [owner["name"] for owner in owners]


async def test_a_read_that_is_answered_late_does_not_show_what_was_written_meanwhile() -> None:
    async with a_scene() as scene:
        scene.world.server.answer_seconds = 5.0
        reading = asyncio.create_task(scene.read_by_name())
        await settle()
        await scene.share()
        await reading
        assert scene.cache.get(Gadget, key("model")) is None


async def test_a_deletion_is_of_the_version_that_was_read() -> None:
    async with a_scene() as scene:
        await scene.read_by_name()
        scene.world.has("model", 2)  # by another client
        with pytest.raises(Conflict):
            await scene.applier.apply(scene.owner, Controlled([], (Gadget,)))
        assert scene.stored()
