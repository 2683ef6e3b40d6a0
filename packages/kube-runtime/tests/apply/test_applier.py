"""Apply writes what differs and nothing else, and never what is not ours. On a simulated API server."""

from contextlib import suppress

import pytest

from kube_runtime.apply.applier import Applier, Controlled, CreateOnly, DesiredObjects, Shared
from kube_runtime.apply.result import Applied, Obstacle, Verb
from kube_runtime.apply.writer import Writer
from kube_runtime.errors import Conflict
from kube_runtime.leases import LeadershipLost
from kube_runtime.types.meta import Object
from simulated.applying import GENERATION, HASH, MARKER, TYPES, Scene, a_scene, verbs
from simulated.gadget import GADGETS, MAKERS, Gadget, Maker, gadget, key
from simulated.server import Fault
from simulated.world import settle
from simulated.writing import LeaseFor

pytestmark = pytest.mark.looptime


async def test_what_is_missing_is_created_once() -> None:
    async with a_scene() as scene:
        assert [Verb.CREATE] == verbs(await scene.apply(gadget("a", 1)))
        assert [] == verbs(await scene.apply(gadget("a", 1)))
        await settle()
        assert [] == verbs(await scene.apply(gadget("a", 1)))
        assert ["PATCH"] == scene.writes()
        assert [Verb.UPDATE] == verbs(await scene.apply(gadget("a", 2)))
        assert {"a": 2} == scene.world.sizes()


async def test_what_is_no_longer_wanted_goes_last() -> None:
    async with a_scene() as scene:
        await scene.apply(gadget("a", 1))
        applied = await scene.apply(gadget("b", 1))
        assert [Verb.CREATE, Verb.DELETE] == verbs(applied)
        await settle()
        assert {"b": 1} == scene.world.sizes()


def with_surplus(*wanted: Object) -> Controlled:
    """These gadgets, where the one named `surplus` is replaced by none."""
    return Controlled(wanted, TYPES, is_surplus=lambda live: live.metadata.name == "surplus")


@pytest.mark.parametrize("owner_uid", ["", "another-uid"])
async def test_a_name_that_is_taken_is_left_alone_and_only_surplus_is_deleted(owner_uid: str) -> None:
    async with a_scene() as scene:
        await scene.apply(gadget("old", 1), gadget("surplus", 1))
        scene.world.server.storage.create(GADGETS, gadget("a", 5, owner_uid=owner_uid))
        await settle()
        applied = await scene.apply_sets(with_surplus(gadget("a", 1), gadget("b", 1)))
        assert [Obstacle.NAME_CONFLICT] == [each.obstacle for each in applied.blocked]
        assert {"a": 5, "b": 1, "old": 1} == scene.world.sizes()


async def test_a_failing_api_server_is_asked_once_for_a_kind_and_only_surplus_is_deleted() -> None:
    async with a_scene() as scene:
        await scene.apply(gadget("a", 1), gadget("surplus", 1))
        scene.world.server.faults.append(Fault(500, times=99, method="PATCH"))
        before = len(scene.writes())
        applied = await scene.apply_sets(with_surplus(gadget("b", 1), gadget("c", 1)))
        assert 1 == len(applied.failures)
        assert ["b", "c"] == [obstruction.name for obstruction in applied.blocked]
        assert {"a": 1} == scene.world.sizes()
        assert ["PATCH", "DELETE"] == scene.writes()[before:], "a request for another object of the kind"


async def test_what_is_being_deleted_is_waited_for() -> None:
    async with a_scene() as scene:
        await scene.apply(gadget("a", 1))
        scene.world.has("a", 1, finalizers=["example.com/wait"])
        scene.world.has_no("a")
        await settle()
        applied = await scene.apply(gadget("a", 2))
        assert ([], []) == (applied.objects, applied.changes)
        assert ["PATCH"] == scene.writes()


@pytest.mark.parametrize(
    ("obstacle", "message"),
    [
        (Obstacle.NOT_SERVED, "is not served"),
        (Obstacle.FORBIDDEN, "is installed, but the operator may not read it; a chart value grants it"),
    ],
)
async def test_an_object_of_a_kind_that_is_not_served_or_may_not_be_read_is_not_written(
    obstacle: Obstacle, message: str
) -> None:
    async with a_scene() as scene:
        store = scene.world.cache.store(Gadget)
        store.granted_by = "a chart value"
        store.mark_kind_gone()
        if obstacle is Obstacle.FORBIDDEN:
            store.mark_kind_forbidden()
        [blocked] = (await scene.apply(gadget("a", 1))).blocked
        assert obstacle is blocked.obstacle
        assert blocked.message.endswith(message)
        assert [] == scene.writes()


async def test_an_object_of_the_owners_predecessor_blocks_until_it_is_collected() -> None:
    async with a_scene() as scene:
        kind = Maker.KIND
        reference = {
            "apiVersion": kind.api_version,
            "kind": kind.name,
            "controller": True,
            "name": scene.owner.metadata.name,
            "uid": "the uid before",
        }
        scene.world.server.storage.create(GADGETS, gadget("a", 5, ownerReferences=[reference]))
        await settle()
        (blocked,) = (await scene.apply(gadget("a", 1))).blocked
        assert blocked.passes_by_itself


async def test_nothing_is_deleted_for_an_owner_that_is_newer_than_the_cache_knows() -> None:
    async with a_scene() as scene:
        await scene.apply(gadget("a", 1))
        newer = {"metadata": {"labels": {"edited": "yes"}}}
        scene.world.server.storage.merge(MAKERS, scene.owner.key, newer)
        with pytest.raises(Conflict, match="newer on the API server"):
            await scene.apply()
        assert {"a": 1} == scene.world.sizes()
        scene.owner = await scene.world.client.get(Maker, scene.owner.key)
        assert [Verb.DELETE] == verbs(await scene.apply())


async def test_what_was_written_for_a_newer_owner_is_left_until_the_cache_knows_it() -> None:
    async with a_scene() as scene:
        old = scene.owner
        scene.world.server.storage.merge(MAKERS, old.key, {"spec": {"edited": True}})
        scene.owner = await scene.world.client.get(Maker, old.key)
        await scene.apply(gadget("a", 2))
        newer, scene.owner = scene.owner, old
        with pytest.raises(Conflict, match="newer on the API server"):
            await scene.apply(gadget("a", 1))
        assert {"a": 2} == scene.world.sizes()
        scene.owner = newer
        assert [Verb.UPDATE] == verbs(await scene.apply(gadget("a", 3)))


@pytest.mark.parametrize("stamp", ["99", "9" * 5000, "-1", "", "soon"])
async def test_a_wrong_owner_generation_blocks_no_write(stamp: str) -> None:
    async with a_scene() as scene:
        await scene.apply(gadget("a", 1))
        high = {"metadata": {"annotations": {GENERATION: stamp}}}
        scene.world.server.storage.merge(GADGETS, key("a"), high)
        await settle()
        assert [] == verbs(await scene.apply(gadget("a", 1)))
        assert [Verb.UPDATE] == verbs(await scene.apply(gadget("a", 2)))
        assert "1" == next(scene.world.cache.list(Gadget)).metadata.annotations[GENERATION]


async def test_a_new_generation_of_the_owner_alone_writes_nothing() -> None:
    async with a_scene() as scene:
        await scene.apply(gadget("a", 1))
        scene.world.server.storage.merge(MAKERS, scene.owner.key, {"spec": {"edited": True}})
        scene.owner = await scene.world.client.get(Maker, scene.owner.key)
        assert [] == verbs(await scene.apply(gadget("a", 1)))
        assert ["PATCH"] == scene.writes()


async def test_a_refused_deletion_is_reported() -> None:
    async with a_scene() as scene:
        await scene.apply(gadget("a", 1))
        scene.world.server.faults.append(Fault(403, method="DELETE"))
        applied = await scene.apply()
        assert [Obstacle.REJECTED] == [each.obstacle for each in applied.blocked]


async def test_what_is_spared_is_neither_written_nor_deleted() -> None:
    async with a_scene() as scene:
        await scene.apply(gadget("a", 1), gadget("b", 1))
        spared = (("Gadget", key("b")),)
        before = len(scene.writes())
        applied = await scene.applier.apply(scene.owner, Controlled([gadget("a", 1)], TYPES, spared))
        assert [] == verbs(applied)
        assert before == len(scene.writes())
        assert [Verb.DELETE] == verbs(await scene.apply(gadget("a", 1)))


async def create(scene: Scene, size: int) -> Applied:
    """Create the gadget `a` for the owner, unless it exists."""
    return await scene.applier.apply(scene.owner, CreateOnly([gadget("a", size)], TYPES))


async def test_what_is_of_another_is_left_alone() -> None:
    async with a_scene() as scene:
        scene.world.server.storage.create(GADGETS, gadget("a", 5))
        await settle()
        applied = await create(scene, 1)
        assert ([], ()) == (applied.changes, applied.blocked)
        assert {"a": 5} == scene.world.sizes()


async def test_what_was_made_a_moment_ago_is_found_by_the_next_try() -> None:
    async with a_scene() as scene:
        scene.world.server.lag_seconds = 5.0
        scene.world.server.storage.create(GADGETS, gadget("a", 5))
        with pytest.raises(Conflict):
            await create(scene, 1)
        assert 5 == scene.world.server.storage.read(GADGETS, key("a"))["spec"]["size"]


def shared(*objects: Object) -> Shared:
    """These objects for several owners."""
    return Shared(objects, TYPES, MARKER)


async def test_every_user_is_an_owner_and_the_last_one_takes_it_along() -> None:
    async with a_scene() as scene:
        two = scene.world.has_maker("two")
        users = [(scene.owner.metadata.uid, False), (two.metadata.uid, False)]
        for user in (scene.owner, two) * 3:
            await scene.apply_sets(shared(gadget("shared", 1)), owner=user)
        assert (users, 2) == (scene.owners("shared"), len(scene.writes()))
        await scene.apply_sets(shared())
        assert users[1:] == scene.owners("shared")
        scene.world.has("shared", 1, finalizers=["example.com/wait"])
        await settle()
        for _ in range(3):
            await scene.apply_sets(shared(), owner=two)
        assert 1 == scene.writes().count("DELETE")
        scene.world.has("shared", 1, finalizers=None)
        await settle()
        assert {} == scene.world.sizes()


async def test_a_user_that_has_not_seen_the_other_does_not_remove_it() -> None:
    async with a_scene() as scene:
        await scene.apply_sets(shared(gadget("shared", 1)))
        storage = scene.world.server.storage
        other = {"apiVersion": "v1", "kind": "Maker", "name": "other", "uid": "uid-of-another"}
        scene.world.server.lag_seconds = 5.0
        owners = [*storage.read(GADGETS, key("shared"))["metadata"]["ownerReferences"], other]
        storage.merge(GADGETS, key("shared"), {"metadata": {"ownerReferences": owners}})
        with pytest.raises(Conflict):
            await scene.apply_sets(shared(gadget("shared", 1)), owner=scene.world.has_maker("two"))
        uids = [scene.owner.metadata.uid, "uid-of-another"]
        assert [(uid, False) for uid in uids] == scene.owners("shared")


def all_policies(size: int = 1, *, last: str = "ours") -> tuple[DesiredObjects, ...]:
    """Data, something shared and something controlled."""
    return (
        CreateOnly([gadget("data", size)], TYPES),
        shared(gadget("shared", size)),
        Controlled([gadget(last, size)], TYPES, spared=[("Gadget", key("data"))]),
    )


async def test_one_call_applies_all_of_them_in_order_and_returns_one_result() -> None:
    async with a_scene() as scene:
        applied = await scene.apply_sets(*all_policies())
        names = ["data", "shared", "ours"]
        assert names == [each.metadata.name for each in applied.objects]
        assert [(Verb.CREATE, name) for name in names] == [(each.verb, each.name) for each in applied.changes]
        uid = scene.owner.metadata.uid
        owners = [scene.owners(name) for name in names]
        assert [[(uid, True)], [(uid, False)], [(uid, True)]] == owners
        await scene.apply_sets(*all_policies())
        assert 3 == len(scene.writes())


@pytest.mark.parametrize("until", range(4))
async def test_an_end_between_any_two_writes_is_made_up_for_by_the_next_process(until: int) -> None:
    async with a_scene() as scene:
        await scene.apply_sets(*all_policies(last="old"))
        world, keys = scene.world, (HASH, GENERATION)
        ending = Writer(world.client, world.cache, leases=[LeaseFor(until)])
        before = len(scene.writes())
        with suppress(LeadershipLost):
            first = Applier(ending, *keys)
            await first.apply(scene.owner, *all_policies(2))
        await settle()
        assert until == len(scene.writes()) - before
        second = Applier(world.writer, *keys)
        await second.apply(scene.owner, *all_policies(2))
        await settle()
        assert {"data": 1, "shared": 2, "ours": 2} == world.sizes()
        assert 3 == len(scene.writes()) - before


async def test_a_shared_object_that_was_created_a_moment_ago_gets_both_owners() -> None:
    async with a_scene() as scene:
        other = scene.world.has_maker("other")
        scene.world.server.lag_seconds = 5.0
        reference = {"apiVersion": Maker.KIND.api_version, "kind": "Maker", "name": "other"}
        made = gadget("shared", 1, labels=dict([MARKER]))
        made["metadata"]["ownerReferences"] = [{**reference, "uid": other.metadata.uid}]
        scene.world.server.storage.create(GADGETS, made)
        with pytest.raises(Conflict):  # it is in the cache now, and the caller retries at once
            await scene.apply_sets(shared(gadget("shared", 1)))
        await scene.apply_sets(shared(gadget("shared", 1)))
        uids = [other.metadata.uid, scene.owner.metadata.uid]
        assert [(uid, False) for uid in uids] == scene.owners("shared")


async def test_retained_data_gets_no_owner_and_loses_the_one_that_it_has() -> None:
    async with a_scene() as scene:
        await scene.apply_sets(CreateOnly([gadget("a", 1)], TYPES))
        both = [gadget("a", 1), gadget("b", 1)]
        applied = await scene.apply_sets(CreateOnly(both, TYPES, retained=("a", "b")))
        assert [Verb.UPDATE, Verb.CREATE] == [each.verb for each in applied.changes]
        assert [] == scene.owners("a") == scene.owners("b")


async def test_what_was_decided_without_an_object_of_ours_is_not_applied_over_it() -> None:
    async with a_scene() as scene:
        await scene.apply_sets(Controlled([gadget("ours", 1)], TYPES))
        writes = len(scene.writes())
        late = Controlled([gadget("ours", 2)], TYPES, decided_with=())
        with pytest.raises(Conflict, match="found after the decision"):
            await scene.apply_sets(late)
        assert writes == len(scene.writes())
        known = [("Gadget", key("ours"))]
        await scene.apply_sets(Controlled([gadget("ours", 2)], TYPES, decided_with=known))
        assert writes + 1 == len(scene.writes())


async def test_what_names_the_owner_but_has_another_controller_is_not_deleted() -> None:
    async with a_scene() as scene:
        reference = {"apiVersion": Maker.KIND.api_version, "kind": "Maker"}
        owners = [
            {**reference, "name": "owner", "uid": scene.owner.metadata.uid},
            {**reference, "name": "other", "uid": "other", "controller": True},
        ]
        scene.world.server.storage.create(GADGETS, gadget("theirs", 5, ownerReferences=owners))
        await settle()
        applied = await scene.apply_sets(Controlled([gadget("ours", 1)], TYPES))
        assert ["ours"] == [each.name for each in applied.changes]
        assert {"theirs": 5, "ours": 1} == scene.world.sizes()
