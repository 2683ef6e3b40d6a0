"""Objects of all ownership policies in one call: one result, in order, from any point of interruption."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass

import pytest

from kube_runtime.apply.applier import Applier, Controlled, CreateOnly, DesiredObjects, Shared
from kube_runtime.apply.result import Applied, Obstacle, Verb
from kube_runtime.apply.status import REFUSED_SECONDS
from kube_runtime.apply.writer import Writer
from kube_runtime.errors import Conflict
from kube_runtime.leases import LeadershipLost
from simulated.gadget import GADGETS, Gadget, Maker, gadget, key
from simulated.server import Fault
from simulated.world import World, a_world, settle
from simulated.writing import LeaseFor

pytestmark = pytest.mark.looptime

HASH = "example.com/hash"
GENERATION = "example.com/owner-generation"
MARKER = ("example.com/managed-by", "us")
KINDS = (Gadget,)


@dataclass
class Scene:
    """A synced world with an applier on it, and an owner."""

    world: World
    applier: Applier
    owner: Maker

    def writes(self) -> int:
        """The number of requests that were no reads."""
        return sum(each.method != "GET" for each in self.world.server.requests)

    def owners(self, name: str) -> list[tuple[str, bool]]:
        """The uids of the owners of a gadget, each with whether it is the controller."""
        live = self.world.server.storage.read(GADGETS, key(name))
        references = live["metadata"].get("ownerReferences", ())
        return [(each["uid"], bool(each.get("controller"))) for each in references]

    async def apply(self, *desired: DesiredObjects) -> Applied:
        """Apply them for the owner, and let the watch bring what comes of it."""
        applied = await self.applier.apply(self.owner, *desired)
        await settle()
        return applied


@asynccontextmanager
async def a_scene() -> AsyncIterator[Scene]:
    """The scene, running."""
    world = a_world()
    async with world.synced():
        writer = Writer(world.client, world.cache)
        applier = Applier(writer, HASH, GENERATION)
        yield Scene(world, applier, world.has_maker("owner"))


def all_policies(size: int = 1, *, last: str = "ours") -> tuple[DesiredObjects, ...]:
    """Data, something shared and something controlled."""
    return (
        CreateOnly([gadget("data", size)], KINDS),
        Shared([gadget("shared", size)], KINDS, MARKER),
        Controlled([gadget(last, size)], KINDS, spared=[("Gadget", key("data"))]),
    )


async def test_one_call_applies_all_of_them_in_order_and_returns_one_result() -> None:
    async with a_scene() as scene:
        applied = await scene.apply(*all_policies())
        names = ["data", "shared", "ours"]
        assert names == [each.metadata.name for each in applied.objects]
        assert [(Verb.CREATE, name) for name in names] == [(each.verb, each.name) for each in applied.changes]
        uid = scene.owner.metadata.uid
        owners = [scene.owners(name) for name in names]
        assert [[(uid, True)], [(uid, False)], [(uid, True)]] == owners
        await scene.apply(*all_policies())
        assert 3 == scene.writes()


@pytest.mark.parametrize("until", range(4))
async def test_an_end_between_any_two_writes_is_made_up_for_by_the_next_process(until: int) -> None:
    async with a_scene() as scene:
        await scene.apply(*all_policies(last="old"))
        world, keys = scene.world, (HASH, GENERATION)
        ending = Writer(world.client, world.cache, leases=[LeaseFor(until)])
        before = scene.writes()
        with suppress(LeadershipLost):
            first = Applier(ending, *keys)
            await first.apply(scene.owner, *all_policies(2))
        await settle()
        assert until == scene.writes() - before
        second = Applier(world.writer, *keys)
        await second.apply(scene.owner, *all_policies(2))
        await settle()
        assert {"data": 1, "shared": 2, "ours": 2} == world.sizes()
        assert 3 == scene.writes() - before


async def test_a_shared_object_that_was_created_a_moment_ago_gets_both_owners() -> None:
    async with a_scene() as scene:
        other = scene.world.has_maker("other")
        scene.world.server.lag_seconds = 5.0
        reference = {"apiVersion": Maker.KIND.api_version, "kind": "Maker", "name": "other"}
        made = gadget("shared", 1, labels=dict([MARKER]))
        made["metadata"]["ownerReferences"] = [{**reference, "uid": other.metadata.uid}]
        scene.world.server.storage.create(GADGETS, made)
        with pytest.raises(Conflict):  # it is in the cache now, and the caller retries at once
            await scene.apply(Shared([gadget("shared", 1)], KINDS, MARKER))
        await scene.apply(Shared([gadget("shared", 1)], KINDS, MARKER))
        uids = [other.metadata.uid, scene.owner.metadata.uid]
        assert [(uid, False) for uid in uids] == scene.owners("shared")


async def test_a_refused_creation_is_not_requested_again_at_once() -> None:
    async with a_scene() as scene:
        scene.world.server.faults.append(Fault(403, times=99, method="PATCH"))
        desired = CreateOnly([gadget("data", 1)], KINDS)
        for _ in range(3):
            applied = await scene.apply(desired)
            assert [Obstacle.REJECTED] == [each.obstacle for each in applied.blocked]
        assert 1 == scene.writes()
        await settle(REFUSED_SECONDS)
        await scene.apply(desired)
        assert 2 == scene.writes()


async def test_retained_data_gets_no_owner_and_loses_the_one_that_it_has() -> None:
    async with a_scene() as scene:
        await scene.apply(CreateOnly([gadget("a", 1)], KINDS))
        both = [gadget("a", 1), gadget("b", 1)]
        applied = await scene.apply(CreateOnly(both, KINDS, retained=("a", "b")))
        assert [Verb.UPDATE, Verb.CREATE] == [each.verb for each in applied.changes]
        assert [] == scene.owners("a") == scene.owners("b")


async def test_what_was_decided_without_an_object_of_ours_is_not_applied_over_it() -> None:
    async with a_scene() as scene:
        await scene.apply(Controlled([gadget("ours", 1)], KINDS))
        writes = scene.writes()
        late = Controlled([gadget("ours", 2)], KINDS, decided_with=())
        with pytest.raises(Conflict, match="found after the decision"):
            await scene.apply(late)
        assert writes == scene.writes()
        known = [("Gadget", key("ours"))]
        await scene.apply(Controlled([gadget("ours", 2)], KINDS, decided_with=known))
        assert writes + 1 == scene.writes()


async def test_what_names_the_owner_but_has_another_controller_is_not_deleted() -> None:
    async with a_scene() as scene:
        reference = {"apiVersion": Maker.KIND.api_version, "kind": "Maker"}
        owners = [
            {**reference, "name": "owner", "uid": scene.owner.metadata.uid},
            {**reference, "name": "other", "uid": "other", "controller": True},
        ]
        scene.world.server.storage.create(GADGETS, gadget("theirs", 5, ownerReferences=owners))
        await settle()
        applied = await scene.apply(Controlled([gadget("ours", 1)], KINDS))
        assert ["ours"] == [each.name for each in applied.changes]
        assert {"theirs": 5, "ours": 1} == scene.world.sizes()
