"""Running a coroutine on a simulated clock: sleeps take no time, and nothing else changes.

The hard thing is a world in which nothing will ever happen again: it fails instead of hanging.
"""

import asyncio
import functools
from collections.abc import Callable, Coroutine
from typing import Any, ParamSpec

import looptime

_P = ParamSpec("_P")
_IDLE_SECONDS = 0.5


def _new_loop() -> asyncio.AbstractEventLoop:
    return looptime.new_event_loop(noop_cycles=1, idle_timeout=_IDLE_SECONDS)


def run(scenario: Coroutine[Any, Any, None]) -> None:
    """Run it to its end in a loop of its own, which starts at time 0."""
    with asyncio.Runner(loop_factory=_new_loop) as runner:
        runner.run(scenario)


def on_simulated_clock(
    scenario: Callable[_P, Coroutine[Any, Any, None]],
) -> Callable[_P, None]:
    """A test, with or without generated arguments, each call in a loop of its own."""

    @functools.wraps(scenario)
    def test(*args: _P.args, **kwargs: _P.kwargs) -> None:
        run(scenario(*args, **kwargs))

    return test
