"""Run a coroutine on a simulated clock, on which sleeps take no real time.

A deadlock fails instead of hanging.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from datetime import UTC, datetime, timedelta
from typing import Any, ParamSpec

from kube_runtime.times import microtime

_P = ParamSpec("_P")

BIRTH = datetime(2026, 1, 1, tzinfo=UTC)
"""The time of day at which simulated clocks start."""


def now() -> float:
    """The simulated time in seconds."""
    return asyncio.get_running_loop().time()


def wall_clock(error_seconds: float = 0.0) -> datetime:
    """The time of day, on a clock with that error."""
    return BIRTH + timedelta(seconds=now() + error_seconds)


def at(seconds: float) -> str:
    """The time of day after that simulated time, as in a Lease."""
    return microtime(BIRTH + timedelta(seconds=seconds))


class _Selector(selectors.SelectSelector):
    """Advances the clock by what the loop would sleep, instead of waiting."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("deadlock: every task waits for another one")
        self.now += timeout
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop without I/O whose time starts at 0 and jumps to the next timer."""

    def __init__(self) -> None:
        self._simulated = _Selector()
        super().__init__(self._simulated)

    def time(self) -> float:
        return self._simulated.now


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine to its end in a new loop."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(scenario)


def on_simulated_clock(scenario: Callable[_P, Coroutine[Any, Any, None]]) -> Callable[_P, None]:
    """Make a test of a coroutine function; each call runs in a new loop, also with generated arguments."""

    @functools.wraps(scenario)
    def test(*args: _P.args, **kwargs: _P.kwargs) -> None:
        run(scenario(*args, **kwargs))

    return test
