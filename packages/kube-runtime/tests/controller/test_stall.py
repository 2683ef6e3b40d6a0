"""A stall of the event loop is noticed, with what was done and where; waiting is none."""

import asyncio
import time
from typing import Any

import pytest
from structlog.testing import capture_logs

from kube_runtime.controller.stall import LIMIT_SECONDS, MESSAGE, StallWatch, doing

pytestmark = pytest.mark.stalls


def burn(seconds: float) -> None:
    """Use so much CPU time."""
    end = time.thread_time() + seconds
    while time.thread_time() < end:
        pass


async def watched(act: Any) -> tuple[list[float], list[Any]]:
    """The stalls while something is done, and what was logged."""
    stalls: list[float] = []
    watch = StallWatch(stalls.append)
    with capture_logs() as logged:
        await watch.start()
        running = asyncio.create_task(watch.run())
        await asyncio.sleep(0.1)
        with doing("Gadget default/a"):
            await act()
        await asyncio.sleep(0.1)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    return stalls, [each for each in logged if each["event"] == MESSAGE]


def test_a_stall_is_measured_and_said_with_its_key_and_its_place() -> None:
    async def act() -> None:
        burn(0.4)

    stalls, (line,) = asyncio.run(watched(act))
    assert len(stalls) == 1
    assert stalls[0] >= 0.4
    assert line["doing"] == "Gadget default/a"
    assert any("burn" in each for each in line["stack"])


def test_who_waits_or_gives_others_their_turn_does_not_stand_still() -> None:
    async def act() -> None:
        time.sleep(0.3)  # noqa: ASYNC251 - as if another process had the processor
        for _ in range(30):
            burn(LIMIT_SECONDS / 10)
            await asyncio.sleep(0)

    assert ([], []) == asyncio.run(watched(act))


def test_many_stalls_are_all_counted_and_said_once() -> None:
    async def act() -> None:
        for _ in range(3):
            burn(0.2)
            await asyncio.sleep(0.05)

    stalls, lines = asyncio.run(watched(act))
    assert (3, 1) == (len(stalls), len(lines))


def test_a_loop_at_rest_is_left_alone() -> None:
    beats: list[float] = []

    class Counted(StallWatch):
        def _beat(self, *args: float) -> None:
            beats.append(time.monotonic())
            super()._beat(*args)

    async def scenario() -> None:
        watch = Counted(lambda _: None)
        await watch.start()
        running = asyncio.create_task(watch.run())
        await asyncio.sleep(1.0)
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)

    asyncio.run(scenario())
    assert len(beats) < 10
