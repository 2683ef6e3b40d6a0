"""Owner references name the stored version of the owner, also after it changes, and also those of others."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import pytest
from msgspec.structs import replace

from kube_runtime.apply.applier import Controlled, CreateOnly, Shared
from kube_runtime.apply.owners import AGAIN_SECONDS, OwnerVersions
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer
from kube_runtime.client.client import Client, Request, Transport
from kube_runtime.types.meta import Kind, Object
from simulated.applying import MARKER, TYPES, a_scene
from simulated.gadget import GADGETS, Gadget, Maker, gadget, key
from simulated.killing import Killed, Killing
from simulated.server import Fault, Server, Target
from simulated.translation import SameInBoth
from simulated.world import World, a_world, settle

pytestmark = pytest.mark.looptime

LATER = Kind("example.com", "v2", "Maker", "makers")


def reference(version: str = "v1", kind: str = "Maker", **more: Any) -> Object:
    return {"apiVersion": f"example.com/{version}", "kind": kind, "name": "m", "uid": f"{kind}-uid", **more}


CONTROLLER = reference(controller=True, blockOwnerDeletion=True)
OTHER = reference(kind="Other")


def versions(world: World, name: str) -> list[str]:
    """The versions that the references of a gadget name."""
    references = world.server.storage.read(GADGETS, key(name))["metadata"].get("ownerReferences", ())
    return [it["apiVersion"].rpartition("/")[2] for it in references]


@dataclass
class Corrected:
    """A world whose stale references are corrected; the cache keeps one owner of each object."""

    world: World
    owners: OwnerVersions

    def store_later(self) -> None:
        self.world.client.translations[Maker.KIND] = SameInBoth(LATER)
        self.owners.wake()

    def writes(self) -> list[str]:
        return [it.path.rpartition("/")[2] for it in self.world.server.requests if it.method != "GET"]


def first_owner(live: Gadget) -> Gadget:
    metadata = replace(live.metadata, owner_references=live.metadata.owner_references[:1])
    return replace(live, metadata=metadata)


@asynccontextmanager
async def correcting() -> AsyncIterator[Corrected]:
    world = a_world(transform=first_owner)
    owners = OwnerVersions(world.writer, [Maker.KIND], lambda live: "foreign" not in live.metadata.labels)
    async with world.synced():
        task = asyncio.create_task(owners.run())
        await settle(0.1)
        yield Corrected(world, owners)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert task.cancelled()


async def test_every_stale_reference_is_corrected_once_and_nothing_else_of_the_object() -> None:
    async with correcting() as scene:
        scene.world.has("controlled", 1, ownerReferences=[CONTROLLER, OTHER])
        scene.world.has("shared", 1, ownerReferences=[reference(), reference(uid="second")])
        scene.world.has("foreign", 1, ownerReferences=[reference()], labels={"foreign": ""})
        scene.world.has("unowned", 1, ownerReferences=[OTHER])
        await settle()
        assert [] == scene.writes(), "the version is the stored one"
        scene.store_later()
        await settle(AGAIN_SECONDS * 2)
        assert [["v2", "v1"], ["v2", "v2"], ["v1"], ["v1"]] == [
            versions(scene.world, name) for name in ("controlled", "shared", "foreign", "unowned")
        ]
        assert ["controlled", "shared"] == sorted(scene.writes())
        (first, other) = scene.world.server.storage.read(GADGETS, key("controlled"))["metadata"][
            "ownerReferences"
        ]
        assert (CONTROLLER | {"apiVersion": "example.com/v2"}, OTHER) == (first, other)


async def test_what_others_write_later_is_corrected_in_time() -> None:
    async with correcting() as scene:
        scene.store_later()
        await settle()
        scene.world.has("late", 1, ownerReferences=[reference()])
        await settle(AGAIN_SECONDS + 1)
        assert ["v2"] == versions(scene.world, "late")


async def test_an_object_that_is_refused_stops_no_other() -> None:
    async with correcting() as scene:
        for name in "ab":
            scene.world.has(name, 1, ownerReferences=[reference()])
        await settle()
        scene.world.server.faults.append(Fault(403, method="PATCH", collection=GADGETS))
        scene.store_later()
        await settle()
        assert {("v1",), ("v2",)} == {tuple(versions(scene.world, name)) for name in "ab"}
        await settle(AGAIN_SECONDS)
        assert {("v2",)} == {tuple(versions(scene.world, name)) for name in "ab"}


async def test_objects_of_another_operators_namespace_are_left_alone() -> None:
    world = a_world()
    world.writer.excluded = {key("a").namespace}
    owners = OwnerVersions(world.writer, [Maker.KIND], lambda _: True)
    world.has("a", 1, ownerReferences=[reference()])
    world.client.translations[Maker.KIND] = SameInBoth(LATER)
    async with world.synced():
        task = asyncio.create_task(owners.run())
        await settle()
        task.cancel()
    assert ["v1"] == versions(world, "a")


async def test_an_owner_that_is_added_at_the_same_time_stays() -> None:
    async with correcting() as scene:
        server = scene.world.server
        scene.world.has("a", 1, ownerReferences=[reference()])
        await settle()

        def meanwhile(_: Request, __: Target) -> None:
            server.refuse = lambda _, __: None
            scene.world.has("a", 1, ownerReferences=[reference(), reference(uid="second")])

        server.refuse = meanwhile
        scene.store_later()
        await settle()
        assert ["v1", "v1"] == versions(scene.world, "a")
        await settle(AGAIN_SECONDS)
        assert ["v2", "v2"] == versions(scene.world, "a")


STATES = {
    "controlled": [[CONTROLLER, OTHER], [CONTROLLER | {"apiVersion": "example.com/v2"}, OTHER]],
    "shared": [[reference(), reference(uid="second")], [reference("v2"), reference("v2", uid="second")]],
    "settled": [[reference("v2")]],
}
"""The references of objects, from their creation on."""


async def was_killed(server: Server, transport: Transport) -> bool:
    """Whether a process is killed before it has corrected the references."""
    world = World(server, Informer(Gadget, transform=first_owner))
    client = Client(transport, field_manager="operator")
    client.translations[Maker.KIND] = SameInBoth(LATER)
    owners = OwnerVersions(Writer(client, world.cache), [Maker.KIND], lambda _: True)
    async with world.synced():
        task = asyncio.create_task(owners.run())
        await asyncio.wait([task], timeout=5)
        task.cancel()
        (end,) = await asyncio.gather(task, return_exceptions=True)
    return isinstance(end, Killed)


@pytest.mark.parametrize("has_effect", [False, True])
async def test_whenever_it_is_killed_each_reference_is_corrected_once(has_effect: bool) -> None:
    """None is missing or there twice in between."""
    is_killed, survived = True, 0
    while is_killed:
        world = a_world()
        for name, (references, *_) in STATES.items():
            world.has(name, 1, ownerReferences=references)
        is_killed = await was_killed(world.server, Killing(world.server, survived, has_effect))
        assert not await was_killed(world.server, world.server)
        states = defaultdict[str, list[Any]](list)
        for entry in world.server.storage.history:
            assert entry.new is not None
            states[entry.key.name].append(entry.new["metadata"]["ownerReferences"])
        assert states == STATES
        survived += is_killed
    assert 2 == survived, "writes"


async def test_an_apply_names_the_stored_version_and_one_without_a_change_writes_nothing() -> None:
    async with a_scene() as scene:
        await scene.apply_sets(Controlled([gadget("controlled", 1)], TYPES))
        scene.world.client.translations[Maker.KIND] = SameInBoth(LATER)
        before = len(scene.writes())
        await scene.apply_sets(Controlled([gadget("controlled", 1)], TYPES))
        assert (["v1"], before) == (versions(scene.world, "controlled"), len(scene.writes()))
        shared, data = Shared([gadget("shared")], TYPES, MARKER), CreateOnly([gadget("data")], TYPES)
        await scene.apply_sets(Controlled([gadget("controlled", 2)], TYPES), shared, data)
        names = ("controlled", "shared", "data")
        assert [["v2"]] * 3 == [versions(scene.world, name) for name in names]
