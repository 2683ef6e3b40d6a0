"""A reconcile's own writes on its object do not requeue it; writes of others do."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_runtime.controller.controller import DONE, Controller, ControllerOptions, Result
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Key
from simulated.clock import on_simulated_clock
from simulated.gadget import GADGETS, Gadget, OfGadgets, key
from simulated.world import World, a_world

pytestmark = pytest.mark.looptime

PACE = ControllerOptions(workers=2, resync_seconds=10**6)


@dataclass
class Readiness(OfGadgets):
    """Says in the status how large the gadget is."""

    world: World
    hears_itself: bool = False
    meanwhile: Callable[[], Awaitable[None]] | None = None
    seen: list[int] = field(default_factory=list)

    async def reconcile(self, key: Key) -> Result:
        found = self.world.cache.get(Gadget, key)
        if found is None:
            return DONE
        self.seen.append(found.spec.size)
        if found.status.ready != found.spec.size:
            guard = {"resourceVersion": found.metadata.resource_version}
            patch = {"metadata": guard, "status": {"ready": found.spec.size}}
            found = await self.world.writer.merge_patch(Gadget, key, patch, subresource="status")
        if self.meanwhile is not None:
            once, self.meanwhile = self.meanwhile, None
            await once()
        return DONE if self.hears_itself else Result(written=found)


async def seen_by(world: World, controller: Readiness, act: Callable[[], object]) -> list[int]:
    """The sizes that the controller saw after `act`, one for each reconcile."""
    runner = Controller(controller, world.cache, metrics=RuntimeMetrics(), options=PACE)
    runner.subscribe()
    async with world.synced():
        working = asyncio.create_task(runner.run())
        await asyncio.sleep(30)
        controller.seen.clear()
        act()
        await asyncio.sleep(30)
        runner.close()
        await working
    return controller.seen


@pytest.mark.parametrize(("lag", "answer"), [(0.0, 0.5), (0.5, 0.0)], ids=["watch", "answer"])
def test_its_own_status_wakes_no_controller_whether_the_watch_or_the_response_is_first(
    lag: float, answer: float
) -> None:
    @on_simulated_clock
    async def scenario() -> None:
        world = a_world()
        world.server.lag_seconds, world.server.answer_seconds = lag, answer
        world.has("a", size=1)
        assert [2] == await seen_by(world, Readiness(world), lambda: world.has("a", size=2))

    scenario()


async def test_a_controller_without_the_self_write_filter_reconciles_again() -> None:
    world = a_world()
    world.has("a", size=1)
    controller = Readiness(world, hears_itself=True)
    assert [2, 2] == await seen_by(world, controller, lambda: world.has("a", size=2))


@pytest.mark.parametrize("lag", [0.0, 0.5])
def test_a_foreign_change_right_after_its_own_wakes(lag: float) -> None:
    @on_simulated_clock
    async def scenario() -> None:
        world = a_world()
        world.server.lag_seconds = lag
        world.has("a", size=1)
        controller = Readiness(world)

        async def foreign() -> None:
            world.has("a", size=3)
            await asyncio.sleep(1)

        def act() -> None:
            controller.meanwhile = foreign
            world.has("a", size=2)

        assert [2, 3] == await seen_by(world, controller, act)

    scenario()


async def test_a_deletion_by_another_controller_wakes_although_it_has_no_version_of_its_own() -> None:
    world = a_world()
    world.has("a", size=1)
    controller = Readiness(world)
    found: list[str | None] = []

    async def deleted_by_another() -> None:
        held = world.cache.get(Gadget, key("a"))
        assert held is not None
        world.cache.store(Gadget).deleted(key("a"), held.metadata.uid)
        found.append(held.metadata.deletion_timestamp)

    def act() -> None:
        controller.meanwhile = deleted_by_another
        world.has("a", size=2)

    assert [2, 2] == await seen_by(world, controller, act)
    assert [None] == found


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(1, 9), st.sampled_from([0.0, 0.1, 0.4, 3.0])), max_size=12),
    st.sampled_from([0.0, 0.3]),
    st.sampled_from([0.0, 0.2]),
    st.integers(0, 99),
)
def test_whoever_changes_it_when_the_status_is_that_of_the_last_state(
    changes: list[tuple[int, float]], lag: float, answer: float, seed: int
) -> None:
    @on_simulated_clock
    async def scenario() -> None:
        world = a_world(seed)
        world.server.lag_seconds, world.server.answer_seconds = lag, answer
        world.server.request_seconds = answer
        world.has("a", size=1)
        runner = Controller(Readiness(world), world.cache, metrics=RuntimeMetrics(), options=PACE)
        runner.subscribe()
        async with world.synced():
            working = asyncio.create_task(runner.run())
            for size, seconds in changes:
                world.has("a", size=size)
                await asyncio.sleep(seconds)
            await asyncio.sleep(100)
            assert runner.is_settled
            runner.close()
            await working
        stored = world.server.storage.objects[GADGETS][key("a")]
        assert stored["spec"]["size"] == stored["status"]["ready"]

    scenario()
