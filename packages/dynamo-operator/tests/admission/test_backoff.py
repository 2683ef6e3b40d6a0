"""What another client removes is restored at once, and repeatedly only with a backoff."""

import asyncio
import itertools

import pytest

from dynamo_operator.admission.certificates import PatchBackoff
from simulated.clock import on_simulated_clock


@on_simulated_clock
async def test_the_first_repair_is_made_at_once_and_the_others_wait_longer_and_longer() -> None:
    pace, loop = PatchBackoff(), asyncio.get_running_loop()
    made = []
    for _ in range(10):
        await pace.turn()
        made.append(loop.time())
    waits = [later - earlier for earlier, later in itertools.pairwise(made)]
    assert pytest.approx([1, 2, 4, 8, 16, 32, 60, 60, 60]) == waits


@on_simulated_clock
async def test_after_a_calm_time_the_next_is_the_first_again() -> None:
    pace, loop = PatchBackoff(), asyncio.get_running_loop()
    for _ in range(4):
        await pace.turn()
    await asyncio.sleep(700)
    before = loop.time()
    await pace.turn()
    assert before == loop.time()
