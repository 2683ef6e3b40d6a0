"""Running a coroutine on a simulated clock: sleeps take no time, and nothing else changes.

A simulation in which nothing will ever happen again fails instead of hanging.
"""

import asyncio
import functools
import selectors
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

_P = ParamSpec("_P")


class _Selector(selectors.SelectSelector):
    """Waits for nothing outside of the loop: whatever the loop would sleep has passed at once."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        if timeout is None:
            raise RuntimeError("every task waits for another one")
        self.now += timeout
        return []


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time starts at 0 and jumps to the next timer. It cannot do I/O."""

    def __init__(self) -> None:
        self._simulated = _Selector()
        super().__init__(self._simulated)

    def time(self) -> float:
        return self._simulated.now


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run it to its end in a loop of its own."""
    with asyncio.Runner(loop_factory=SimulatedLoop) as runner:
        runner.run(scenario)


def on_simulated_clock(
    scenario: Callable[_P, Coroutine[Any, Any, None]],
) -> Callable[_P, None]:
    """A test, with or without generated arguments, each call in a loop of its own."""

    @functools.wraps(scenario)
    def test(*args: _P.args, **kwargs: _P.kwargs) -> None:
        run(scenario(*args, **kwargs))

    return test
