"""Whatever happens to the candidates for a lease, there are never two leaders, and one in the end."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from simulated.clock import run as run_simulated
from simulated.election import Candidate, World
from simulated.server import Fault, Server


@dataclass(frozen=True)
class Step:
    """What happens to a candidate, and how long until the next thing happens."""

    candidate: int
    action: str
    seconds: float


steps = st.builds(
    Step,
    candidate=st.integers(0, 2),
    action=st.sampled_from(["cut", "heal", "hang", "die", "stop", "clock", "lose answer"]),
    seconds=st.sampled_from([0.0, 1.0, 3.0, 9.0, 14.0, 20.0]),
)


@settings(max_examples=40, deadline=None)
@given(st.lists(steps, max_size=12), st.integers(0, 10_000))
def test_never_two_lead_whatever_happens_and_in_the_end_one_does(steps: list[Step], seed: int) -> None:
    run_simulated(_leads_at_most_once(steps, seed))


async def _leads_at_most_once(steps: list[Step], seed: int) -> None:
    world = World(Server(seed))
    world.server.request_seconds = world.server.answer_seconds = 0.5
    for number in range(3):
        world.candidate(f"first-{number}")
    watching = asyncio.create_task(_watch(world))
    for number, step in enumerate(steps):
        await _act(world, step, f"later-{number}")
        await asyncio.sleep(step.seconds)
    for number, each in enumerate(world.candidates):
        each.line.is_cut = each.line.is_mute = False
        if each.task.done():
            await each.die()
            world.candidates[number] = Candidate(world.server, f"last-{number}")
    await asyncio.sleep(60)
    assert 1 == sum(each.leads for each in world.candidates)
    watching.cancel()
    with suppress(asyncio.CancelledError):
        await watching
    for each in world.candidates:
        await each.die()


async def _watch(world: World) -> None:
    while True:
        assert sum(each.leads for each in world.candidates) <= 1
        await asyncio.sleep(0.25)


async def _act(world: World, step: Step, name: str) -> None:
    candidate = world.candidates[step.candidate]
    match step.action:
        case "cut":
            candidate.line.is_cut = True
        case "hang":
            candidate.line.is_mute = True
        case "heal":
            candidate.line.is_cut = candidate.line.is_mute = False
        case "clock":
            candidate.clock_error += timedelta(hours=5)
        case "lose answer":
            world.server.faults.append(Fault(0, after=True))
        case end:
            await (candidate.die() if end == "die" else candidate.stop())
            world.candidates[step.candidate] = Candidate(world.server, name)
