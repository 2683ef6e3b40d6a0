"""Whose fields are whose after an earlier operator: the requests that it takes."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from field_sets import entry
from kube_runtime.apply.applier import Applier, Controlled, Shared
from kube_runtime.apply.result import Obstacle, Verb
from kube_runtime.apply.writer import (
    AGAIN_SECONDS,
    SHOWN_SECONDS,
    ManagedFieldsUpgrade,
    UnselectedObjects,
    Writer,
    complement,
)
from kube_runtime.cache.store import FETCHED_SECONDS
from kube_runtime.errors import Conflict
from kube_runtime.types.meta import Metadata, Object, Selector, controller_reference
from simulated.gadget import GADGETS, NAMESPACE, Gadget, Maker, gadget, key
from simulated.server import Fault
from simulated.world import World, a_world, settle

pytestmark = pytest.mark.looptime

MARK = "example.com/earlier"
HASH = "example.com/hash"
GENERATION = "example.com/owner-generation"
OWNER = Gadget(Metadata("owner", NAMESPACE, "owner-uid"))
BOOKS: Object = {"f:metadata": {"f:annotations": {f"f:{MARK}": {}}}}


def earlier(name: str, size: int) -> Object:
    """A gadget of ours as the earlier operator has left it."""
    managed = [entry("manager", "Update", {**BOOKS, "f:spec": {"f:size": {}}})]
    made = gadget(name, size, annotations={MARK: "2"}, managedFields=managed)
    owner = {"apiVersion": "example.com/v1", "kind": "Gadget", "name": "owner"}
    made["metadata"]["ownerReferences"] = [{**owner, "uid": "owner-uid", "controller": True}]
    return made


async def test_an_object_is_taken_over_once_with_one_read_and_one_patch_before_the_apply() -> None:
    world = a_world()
    world.server.storage.create(GADGETS, earlier("a", 1))
    async with world.synced():
        writer = Writer(world.client, world.cache)
        take_over = ManagedFieldsUpgrade(writer, MARK)
        applier = Applier(writer, HASH, GENERATION, take_over)
        world.server.requests.clear()
        for size in (1, 1, 2):
            await applier.apply(OWNER, Controlled([gadget("a", size)], (Gadget,)))
            # The simulated server knows nothing of managers, so it leaves this in place.
            world.server.storage.merge(GADGETS, key("a"), {"metadata": {"annotations": {MARK: None}}})
            await settle(0.1)
        requests = [(each.method, each.content_type) for each in world.server.requests]
        read, take, apply = (
            ("GET", "application/json"),
            ("PATCH", "application/merge-patch+json"),
            ("PATCH", "application/apply-patch+yaml"),
        )
        assert [read, take, apply, apply] == requests
        stored = world.server.storage.read(GADGETS, key("a"))["metadata"]["managedFields"]
        assert [("operator", "Apply")] == [(each["manager"], each["operation"]) for each in stored]


LABEL = "example.com/part-of"
UNMARKED = {"metadata": {"labels": {LABEL: None}}}
TYPES = (Gadget,)


@asynccontextmanager
async def a_scene() -> AsyncIterator[tuple[World, Applier, Maker]]:
    """A world whose watch selects by the label, with an applier and an owner."""
    world = a_world(labels=LABEL)
    async with world.synced():
        applier = Applier(world.writer, "example.com/h", "example.com/g")
        yield world, applier, world.has_maker("owner")


def wanted(size: int = 1) -> Object:
    """The gadget as its owner wants it, with the label."""
    return gadget("a", size, labels={LABEL: "us"})


def stored(world: World) -> Object:
    """The gadget as the API server has it."""
    return world.server.storage.read(GADGETS, key("a"))


async def test_a_taken_name_is_found_by_the_conflict_of_the_create() -> None:
    async with a_scene() as (world, applier, owner):
        world.has("a", 5)
        for _ in range(2):
            applied = await applier.apply(owner, Controlled([wanted()], TYPES))
            assert [Obstacle.NAME_CONFLICT] == [each.obstacle for each in applied.blocked]
        assert (5, {}) == (stored(world)["spec"]["size"], world.sizes())
        world.has_no("a")
        await applier.apply(owner, Controlled([wanted()], TYPES))
        assert {"a": 1} == world.sizes()


async def test_a_label_that_a_user_removes_is_restored() -> None:
    async with a_scene() as (world, applier, owner):
        await applier.apply(owner, Controlled([wanted()], TYPES))
        await settle()
        uid = stored(world)["metadata"]["uid"]
        world.server.storage.merge(GADGETS, key("a"), UNMARKED)
        await settle()
        assert {} == world.sizes(), "the watch says that it is gone"
        with pytest.raises(Conflict):
            await applier.apply(owner, Controlled([wanted()], TYPES))
        assert {"a": 1} == world.sizes(), "what is decided next, is decided with it"
        applied = await applier.apply(owner, Controlled([wanted()], TYPES))
        await settle(2 * FETCHED_SECONDS)
        assert [Verb.UPDATE] == [each.verb for each in applied.changes]
        assert "us" == stored(world)["metadata"]["labels"][LABEL]
        assert (uid, {"a": 1}) == (stored(world)["metadata"]["uid"], world.sizes())


async def test_an_object_that_stays_without_the_label_is_forgotten_and_announced_as_removed() -> None:
    async with a_scene() as (world, applier, owner):
        world.has("a", 1, ownerReferences=[controller_reference(owner, owner.KIND)])
        with pytest.raises(Conflict):
            await applier.apply(owner, Controlled([wanted()], TYPES))
        assert [(None, 1)] == world.announced()
        await settle(FETCHED_SECONDS + 1)
        assert ([(1, None)], {}) == (world.announced(), world.sizes())


async def test_an_unreadable_object_is_retried_and_not_overwritten() -> None:
    async with a_scene() as (world, applier, owner):
        world.has("a", 5, ownerReferences=[controller_reference(owner, owner.KIND)])
        world.server.faults.append(Fault(403, method="GET"))
        with pytest.raises(Conflict):
            await applier.apply(owner, Controlled([wanted()], TYPES))
        assert (5, {}) == (stored(world)["spec"]["size"], world.sizes())


async def test_a_shared_object_without_its_marker_is_a_taken_name() -> None:
    async with a_scene() as (world, applier, owner):
        world.has("a", 5)
        shared = Shared([gadget("a", 1)], TYPES, (LABEL, "us"))
        applied = await applier.apply(owner, shared)
        assert [Obstacle.NAME_CONFLICT] == [each.obstacle for each in applied.blocked]


async def test_what_a_reconcile_met_before_the_start_is_not_forgotten() -> None:
    async with a_scene() as (world, applier, owner):
        world.has("a", 1, ownerReferences=[controller_reference(owner, owner.KIND)])
        with pytest.raises(Conflict):
            await applier.apply(owner, Controlled([wanted()], TYPES))
        async with looking(world, owner):
            await settle(FETCHED_SECONDS + AGAIN_SECONDS + 1)
            assert {"a": 1} == world.sizes(), "however long its owner cannot decide"
            await applier.apply(owner, Controlled([], TYPES))
            assert key("a") not in world.server.storage.objects[GADGETS]


async def test_what_is_not_wanted_any_more_is_found_at_the_start_and_goes() -> None:
    async with a_scene() as (world, applier, owner):
        world.has("a", 1, ownerReferences=[controller_reference(owner, owner.KIND)])
        world.has("theirs", 1)
        world.server.faults.append(Fault(500, method="GET"))
        async with looking(world, owner):
            await settle(60)
            assert {"a": 1} == world.sizes(), "an outage only delays the look"
            await applier.apply(owner, Controlled([], TYPES))
            assert key("a") not in world.server.storage.objects[GADGETS]
            await settle(SHOWN_SECONDS + 1)
            assert {} == world.sizes()
        assert key("theirs") in world.server.storage.objects[GADGETS]


@pytest.mark.parametrize("desired", [[], [wanted()]])
async def test_what_others_change_after_the_look_is_written_at_the_second_try(desired: list[Object]) -> None:
    """No watch brings the change, so without another read each try would meet the same conflict."""
    async with a_scene() as (world, applier, owner):
        world.has("a", 1, ownerReferences=[controller_reference(owner, owner.KIND)])
        async with looking(world, owner):
            world.has_no("a")
            world.has("a", 2, ownerReferences=[controller_reference(owner, owner.KIND)])
            with pytest.raises(Conflict):
                await applier.apply(owner, Controlled(desired, TYPES))
            await applier.apply(owner, Controlled(desired, TYPES))
            assert bool(desired) == (key("a") in world.server.storage.objects[GADGETS])


async def test_a_label_that_the_watch_brings_before_the_response_counts() -> None:
    """Else the state without it would be shown on, and each deletion would meet a conflict."""
    async with a_scene() as (world, applier, owner):
        world.has("a", 1, ownerReferences=[controller_reference(owner, owner.KIND)])
        async with looking(world, owner):
            world.server.answer_seconds = 1
            await applier.apply(owner, Controlled([wanted(2)], TYPES))
            world.server.answer_seconds = 0
            assert {"a": 2} == world.sizes()
            await applier.apply(owner, Controlled([], TYPES))
            assert key("a") not in world.server.storage.objects[GADGETS]


@asynccontextmanager
async def looking(world: World, owner: Maker) -> AsyncIterator[None]:
    """Have a leader look for objects without their label."""
    look = UnselectedObjects(
        world.writer,
        selectors={Gadget: Selector(labels=complement(LABEL))},
        is_ours=lambda each: (
            each.metadata.controller is not None and each.metadata.controller.uid == owner.metadata.uid
        ),
    )
    task = asyncio.create_task(look.run())
    await settle()
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def test_the_complement_of_a_selector() -> None:
    assert ("!a", "a!=b") == (complement("a"), complement("a=b"))
    with pytest.raises(ValueError, match="negated"):
        complement("!a")
