"""What is settled, was refused, or is kept reverted is not written again. On a simulated API server."""

import asyncio
from collections.abc import Callable
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.apply.applier import Controlled, CreateOnly, DesiredObjects, Shared
from kube_runtime.apply.result import Obstacle, Verb
from kube_runtime.apply.suppression import CONTEST_SECONDS, CONTEST_WRITES, REFUSED_SECONDS, Recent
from kube_runtime.types.meta import Object
from simulated.applying import MARKER, TYPES, a_scene, verbs
from simulated.gadget import GADGETS, gadget, key
from simulated.server import Fault
from simulated.world import settle

pytestmark = pytest.mark.looptime


def reordered(value: object) -> object:
    """The same JSON with the keys of every map in the reverse order."""
    if isinstance(value, dict):
        return {name: reordered(value[name]) for name in reversed(value)}
    return [reordered(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(("policy", "writes"), [(Controlled, 1), (partial(Shared, marker=MARKER), 2)])
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


async def test_a_contest_with_another_client_is_given_up_for_a_while() -> None:
    async with a_scene() as scene:
        last = await scene.apply(gadget("a", 0))
        scene.world.server.faults.append(Fault(501, times=CONTEST_WRITES, method="PATCH"))
        for _ in range(CONTEST_WRITES):
            assert (await scene.apply(gadget("a", 1))).failures, "a failed write counts as reverted"
        for _ in range(30):
            scene.world.has("a", 7)
            await settle()
            last = await scene.apply(gadget("a", 1))
        assert 2 * CONTEST_WRITES + 1 == len(scene.writes())
        assert {"a": 7} == scene.world.sizes()
        assert "another client reverts Gadget a" in last.blocked[0].message
        assert ("a",) == tuple(each.metadata.name for each in last.objects)
        await asyncio.sleep(CONTEST_SECONDS)
        await scene.apply(gadget("a", 1))
        assert {"a": 1} == scene.world.sizes()


async def test_the_order_in_which_fields_were_set_causes_no_write() -> None:
    async with a_scene() as scene:
        desired = gadget("a", 1, labels={"b": "1", "a": "2"})
        await scene.apply(desired)
        await settle()
        same = reordered(desired)
        assert isinstance(same, dict)
        await scene.apply(same)
        assert ["PATCH"] == scene.writes()


async def test_what_another_client_changes_after_it_was_found_right_is_changed_back_each_time() -> None:
    async with a_scene() as scene:
        await scene.apply(gadget("a", 1))
        for _ in range(2):
            assert [] == verbs(await scene.apply(gadget("a", 1)))
            scene.world.server.storage.merge(GADGETS, key("a"), {"spec": {"size": 7}})
            await settle()
            assert [Verb.UPDATE] == verbs(await scene.apply(gadget("a", 1)))


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
