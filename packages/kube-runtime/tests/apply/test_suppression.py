"""What is settled, was refused, or is kept reverted is not written again. On a simulated API server."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.apply.applier import Controlled, CreateOnly, DesiredObjects, Shared
from kube_runtime.apply.result import Obstacle, Verb
from kube_runtime.apply.suppression import (
    CONTEST_SECONDS,
    CONTEST_WRITES,
    REFUSED_SECONDS,
    Recent,
    SettledObjects,
)
from kube_runtime.types.meta import Metadata, Object
from simulated.applying import HASH, MARKER, TYPES, a_scene, verbs
from simulated.gadget import GADGETS, Gadget, GadgetSpec, gadget, key
from simulated.server import Fault
from simulated.world import settle

pytestmark = pytest.mark.looptime

SHARED = partial(Shared, marker=MARKER)
CONTENT = {"spec": {"size": 7}}


def reordered(value: object) -> object:
    """The same JSON with the keys of every map in the reverse order."""
    if isinstance(value, dict):
        return {name: reordered(value[name]) for name in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("policy", "writes"), [(Controlled, 1), (SHARED, 2)])
async def test_a_server_that_insists_costs_one_write_and_no_loop(
    policy: Callable[..., DesiredObjects], writes: int
) -> None:
    async with a_scene() as scene:
        storage = scene.world.server.storage
        plain = storage.apply

        def insistent(collection: str, desired: Object, manager: str) -> Object:
            return plain(collection, {**desired, "spec": {"size": 9}}, manager)

        storage.apply = insistent  # type: ignore[method-assign]  # as a mutating webhook does
        for _ in range(5):
            applied = await scene.apply_sets(policy([gadget("a", 1)], TYPES))
        assert [] == verbs(applied)
        assert ["PATCH"] * writes == scene.writes()
        assert {"a": 9} == scene.world.sizes()
        for number in range(2 * CONTEST_WRITES * (policy is SHARED)):
            owner = scene.world.has_maker(str(number))
            assert [] == (await scene.apply_sets(policy([gadget("a", 1)], TYPES), owner=owner)).contested


@pytest.mark.parametrize("policy", [Controlled, CreateOnly])
async def test_a_refused_write_is_not_repeated_before_its_time(policy: Callable[..., DesiredObjects]) -> None:
    async with a_scene() as scene:
        scene.world.server.faults.append(Fault(422, times=1, method="PATCH"))
        for _ in range(5):
            applied = await scene.apply_sets(policy([gadget("a", 1)], TYPES))
            assert [Obstacle.REJECTED] == [each.obstacle for each in applied.blocked]
        assert ["PATCH"] == scene.writes()
        another = policy([gadget("a", 2)], TYPES)
        assert [Verb.CREATE] == verbs(await scene.apply_sets(another))
        scene.world.server.faults.append(Fault(403, times=1, method="PATCH"))
        await scene.apply_sets(policy([gadget("b", 1)], TYPES))
        await asyncio.sleep(REFUSED_SECONDS)
        assert [Verb.CREATE] == verbs(await scene.apply_sets(policy([gadget("b", 1)], TYPES)))


@pytest.mark.parametrize(
    ("policy", "reverted"),
    [
        (Controlled, CONTENT),
        (SHARED, CONTENT),
        (Controlled, {"metadata": {"annotations": {HASH: None}}}),
        (SHARED, {"metadata": {"ownerReferences": []}}),
    ],
)
async def test_a_contest_with_another_client_is_given_up_until_a_write_lasts(
    policy: Callable[..., DesiredObjects], reverted: Object
) -> None:
    async with a_scene() as scene:
        merge, desired = scene.world.server.storage.merge, policy([gadget("a", 1)], TYPES)
        last = await scene.apply_sets(desired)
        merge(GADGETS, key("a"), reverted)
        scene.world.server.faults.append(Fault(501, times=CONTEST_WRITES, method="PATCH"))
        for _ in range(CONTEST_WRITES):
            await settle()
            assert (await scene.apply_sets(desired)).failures, "a failed write counts as reverted"
        for minute in range(3):
            for _ in range(CONTEST_WRITES + 3):
                merge(GADGETS, key("a"), reverted)
                await settle()
                last = await scene.apply_sets(desired)
            assert 2 * CONTEST_WRITES + 1 + minute == len(scene.writes())
            assert "another client reverts Gadget a" in last.contested[0].message
            assert (reverted is CONTENT) == bool(last.blocked), "our own records change nothing that runs"
            assert ("a",) == tuple(each.metadata.name for each in last.objects)
            await asyncio.sleep(CONTEST_SECONDS)
        for _ in range(2):
            last = await scene.apply_sets(desired)
            assert (reverted is CONTENT) == bool(last.blocked), "it may be reverted again"
        await asyncio.sleep(CONTEST_SECONDS)
        assert [] == (await scene.apply_sets(desired)).contested


async def test_the_order_in_which_fields_were_set_causes_no_write() -> None:
    async with a_scene() as scene:
        desired = gadget("a", 1, labels={"b": "1", "a": "2"})
        await scene.apply(desired)
        await settle()
        same = reordered(desired)
        assert isinstance(same, dict)
        await scene.apply(same)
        assert ["PATCH"] == scene.writes()


@pytest.mark.parametrize(
    ("annotations", "labels", "size", "is_settled"),
    [
        ({HASH: "1", "theirs": ""}, {"ours": ""}, 1, True),
        ({HASH: "1"}, {}, 1, False),
        ({HASH: "1"}, {"ours": ""}, 2, False),
        ({HASH: "2"}, {"ours": ""}, 1, False),
    ],
)
def test_what_is_settled_is_compared_again_where_it_changed(
    annotations: dict[str, str], labels: dict[str, str], size: int, *, is_settled: bool
) -> None:
    settled, digest = SettledObjects(HASH), annotations[HASH]
    created = Metadata(labels={"ours": ""}, annotations={HASH: "1"})
    settled.created(Gadget(metadata=created, spec=GadgetSpec(size=1)), "1")
    live = Gadget(metadata=Metadata(labels=labels, annotations=annotations), spec=GadgetSpec(size=size))
    desired = gadget("a", int(digest), labels={"ours": ""}, annotations={HASH: digest})
    assert is_settled == settled.contains(live, desired, digest)


STEPS = st.tuples(st.sampled_from(["put", "put", "get", "get", "forget"]), st.integers(0, 4))


@given(st.lists(STEPS, min_size=20))
def test_the_last_keys_in_use_are_remembered_and_no_more(steps: list[tuple[str, int]]) -> None:
    recent = Recent[int](3)
    in_use: list[int] = []
    for number, (act, name) in enumerate(steps):
        is_known = name in in_use
        if act == "put":
            recent.put(name, number)
        elif act == "forget":
            recent.forget(name)
        else:
            assert is_known == (recent.get(name) is not None)
        if is_known:
            in_use.remove(name)
        if act == "put" or (act == "get" and is_known):
            in_use = [*in_use, name][-3:]
    assert len(in_use) == len(recent)
    assert all(recent.get(name) is not None for name in in_use)
