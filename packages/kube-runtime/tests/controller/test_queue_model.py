"""The queue against a model: random adds and random workers on a simulated clock.

The model knows nothing of the queue's structure, only what its users rely on.
"""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import looptime
from hypothesis import given, settings
from hypothesis import strategies as st

from kube_runtime.controller.controller import FAIR_INTERVAL, Priority, WorkQueue
from kube_runtime.times import Backoff
from kube_runtime.types.meta import Key

KEYS = [Key("ns", name) for name in "abcd"]
BACKOFF = Backoff(first_seconds=0.5, limit_seconds=4)


@dataclass(frozen=True)
class Add:
    pause: float
    key: Key
    priority: Priority
    after: float


@dataclass(frozen=True)
class Work:
    """How long a reconcile takes, and whether it fails."""

    seconds: float
    fails: bool


adds = st.builds(
    Add,
    pause=st.sampled_from([0.0, 0.0, 0.25, 1.0]),
    key=st.sampled_from(KEYS),
    priority=st.sampled_from(Priority),
    after=st.sampled_from([0.0, 0.0, 0.5, 3.0]),
)
works = st.builds(Work, seconds=st.sampled_from([0.0, 0.25, 2.0]), fails=st.booleans())


@dataclass
class World:
    """What users of the queue can see."""

    queue: WorkQueue
    works: Sequence[Work]
    done_until: dict[Key, float] = field(default_factory=dict[Key, float])
    wanted_at: dict[Key, float] = field(default_factory=dict[Key, float])
    active: Counter[Key] = field(default_factory=Counter[Key])
    runs: int = 0

    async def work(self) -> None:
        loop = asyncio.get_running_loop()
        while taken := await self.queue.take():
            key, started = taken[0], loop.time()
            self.active[key] += 1
            assert 1 == self.active[key], "one key, two workers"
            work = self.works[self.runs % len(self.works)] if self.runs < 40 else Work(0, fails=False)
            self.runs += 1
            await asyncio.sleep(work.seconds)
            self.active[key] -= 1
            if work.fails:
                self.queue.failed(key, BACKOFF)
            else:
                self.queue.succeeded(key)
                self.done_until[key] = started
            self.queue.done(key)

    async def add(self, add: Add) -> None:
        await asyncio.sleep(add.pause)
        self.queue.add(add.key, priority=add.priority, after_seconds=add.after)
        self.wanted_at[add.key] = asyncio.get_running_loop().time()


async def run(steps: list[Add], works: list[Work], workers: int, is_ahead: bool) -> World:
    world = World(WorkQueue(is_ahead=lambda: is_ahead), works)
    tasks = [asyncio.create_task(world.work()) for _ in range(workers)]
    for step in steps:
        await world.add(step)
    await asyncio.sleep(2000)
    world.queue.close()
    await asyncio.gather(*tasks)
    return world


@settings(max_examples=150, deadline=None)
@given(
    steps=st.lists(adds, max_size=25),
    works=st.lists(works, min_size=1, max_size=8),
    workers=st.integers(1, 3),
    is_ahead=st.booleans(),
)
def test_at_rest_every_key_was_handled_after_its_last_add(
    steps: list[Add], works: list[Work], workers: int, is_ahead: bool
) -> None:
    loop = looptime.new_event_loop()
    try:
        world = loop.run_until_complete(run(steps, works, workers, is_ahead))
    finally:
        loop.close()
    assert world.queue.is_settled
    for key, wanted_at in world.wanted_at.items():
        assert world.done_until[key] >= wanted_at


@settings(max_examples=150, deadline=None)
@given(steps=st.lists(adds, max_size=25))
def test_due_keys_come_out_by_priority_and_then_by_when_they_were_due(steps: list[Add]) -> None:
    async def taken_in_order() -> list[tuple[Priority, float]]:
        queue, loop = WorkQueue(), asyncio.get_running_loop()
        due: dict[Key, Due] = {}
        for step in steps:
            await asyncio.sleep(step.pause)
            queue.add(step.key, priority=step.priority, after_seconds=step.after)
            due[step.key] = after_add(due.get(step.key), step, loop.time())
        await asyncio.sleep(100)
        order = [taken[0] for _ in due if (taken := await queue.take()) is not None]
        assert set(due) == set(order)
        return [(due[key].priority, due[key].at) for key in order]

    loop = looptime.new_event_loop()
    try:
        order = loop.run_until_complete(taken_in_order())
    finally:
        loop.close()
    oldest_each = FAIR_INTERVAL - 1
    for number, taken in enumerate(order):
        left = order[number:]
        is_fair = number % FAIR_INTERVAL == oldest_each
        assert taken == (min(left, key=lambda due: due[1]) if is_fair else min(left))


@dataclass(frozen=True)
class Due:
    at: float
    priority: Priority


def after_add(before: Due | None, step: Add, now: float) -> Due:
    """A key that is due stands where it is, unless a higher priority moves it behind its equals."""
    if before is None:
        return Due(now + step.after, step.priority)
    if before.at > now:
        return Due(min(before.at, now + step.after), min(before.priority, step.priority))
    return before if before.priority <= step.priority else Due(now, step.priority)
