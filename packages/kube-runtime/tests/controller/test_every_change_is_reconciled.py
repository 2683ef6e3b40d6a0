"""From a server with faults to reconciles that fail: at rest, the last one saw the last state."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from hypothesis import given, settings
from hypothesis import strategies as st
from structlog.testing import capture_logs

from kube_runtime.controller.controller import DONE, Controller, ControllerOptions, Result
from kube_runtime.errors import Conflict, Invalid, Unreachable
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Key
from simulated.clock import run
from simulated.gadget import GADGETS, Gadget, OfGadgets, key
from simulated.world import World, a_world

NAMES = "abc"
FAILURES: dict[str, Callable[[], Exception]] = {
    "bug": lambda: ZeroDivisionError("a bug"),
    "conflict": lambda: Conflict(409, "Conflict", "changed"),
    "outage": lambda: Unreachable("refused"),
    "refusal": lambda: Invalid(422, "Invalid", "no"),
}


@dataclass
class Sizes(OfGadgets):
    """Remembers the size it last reconciled without an error."""

    world: World
    moods: Sequence[str]
    seen: dict[Key, int | None] = field(default_factory=dict[Key, int | None])
    runs: int = 0
    active: set[Key] = field(default_factory=set[Key])

    async def reconcile(self, key: Key) -> Result:
        assert key not in self.active
        self.active.add(key)
        try:
            return await self._reconcile(key)
        finally:
            self.active.remove(key)

    async def _reconcile(self, key: Key) -> Result:
        found = self.world.cache.get(Gadget, key)
        mood = self.moods[self.runs % len(self.moods)] if self.runs < 30 else "quick"
        self.runs += 1
        if mood == "slow":
            await asyncio.sleep(3)
        if mood in FAILURES:
            failure = FAILURES[mood]()
            raise failure
        self.seen[key] = found.spec.size if found else None
        return Result(requeue_after_seconds=5) if mood == "again" else DONE


@dataclass(frozen=True)
class Step:
    action: str
    name: str
    seconds: float


steps = st.builds(
    Step,
    action=st.sampled_from(["change", "change", "remove", "cut", "compact", "relist"]),
    name=st.sampled_from(NAMES),
    seconds=st.sampled_from([0.0, 0.0, 0.2, 2.0, 40.0]),
)
moods = st.sampled_from(["quick", "quick", "slow", "again", *FAILURES])


@settings(max_examples=60, deadline=None)
@given(
    steps=st.lists(steps, max_size=20),
    moods=st.lists(moods, min_size=1, max_size=6),
    seed=st.integers(0, 1000),
)
def test_at_rest_the_last_reconcile_of_each_key_saw_its_last_state(
    steps: list[Step], moods: list[str], seed: int
) -> None:
    with capture_logs():
        run(_reconciles_the_last_state(steps, moods, seed))


async def _reconciles_the_last_state(steps: list[Step], moods: list[str], seed: int) -> None:
    world = a_world(seed)
    world.server.lag_seconds = 0.3
    controller = Sizes(world, moods)
    # No resync within the test: nothing may depend on it.
    pace = ControllerOptions(workers=2, resync_seconds=10**6)
    runner = Controller(controller, world.cache, metrics=RuntimeMetrics(), options=pace)
    runner.subscribe()
    async with world.running():
        working = asyncio.create_task(runner.run())
        for number, step in enumerate(steps):
            _act(world, step, number)
            await asyncio.sleep(step.seconds)
        await asyncio.sleep(30_000)
        assert runner.is_settled
        runner.close()
        await working
    sizes = {
        each: stored["spec"]["size"] for each, stored in world.server.storage.objects.get(GADGETS, {}).items()
    }
    assert sizes == {each: size for each, size in controller.seen.items() if size is not None}


def _act(world: World, step: Step, number: int) -> None:
    storage = world.server.storage
    match step.action:
        case "change":
            world.has(step.name, size=number + 1)
        case "remove":
            if key(step.name) in storage.objects.get(GADGETS, {}):
                world.has_no(step.name)
        case "compact":
            storage.compact()
        case "cut":
            for stream in list(world.server.streams):
                stream.cut()
        case _:
            storage.compact()
            for stream in list(world.server.streams):
                stream.cut()
