"""Detects stalls of the event loop that our own code causes, and logs where.

A thread reads the CPU time that the loop's thread has used since its last heartbeat. CPU time
and not wall-clock time: a process that gets no CPU does not stall the loop itself.
"""

import asyncio
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Final, NoReturn

import structlog

LIMIT_SECONDS: Final = 0.1
"""CPU time between two heartbeats that counts as a stall."""
_BUSY_LOOK_SECONDS: Final = 0.02
_IDLE_LOOK_SECONDS: Final = 0.05
_IDLE_SECONDS: Final = 0.005
"""CPU time since the last heartbeat below which the loop is idle, and is not woken for another."""
_QUIET_SECONDS: Final = 5.0
"""Shortest time between two log lines."""
_FRAMES: Final = 12
MESSAGE: Final = "event loop stalled"

_log = structlog.get_logger()


@contextmanager
def doing(work: str) -> Iterator[None]:
    """Name the work of the current task within the block, for the log line of a stall."""
    task = asyncio.current_task()
    if task is None:
        yield
        return
    before = task.get_name()
    task.set_name(work)
    try:
        yield
    finally:
        task.set_name(before)


class StallWatch:
    """Watches the event loop that it runs in, from `start` on until it is cancelled.

    `observe` gets the CPU seconds of each stall.
    """

    def __init__(self, observe: Callable[[float], None]) -> None:
        self._observe = observe
        self._started = asyncio.Event()
        self._ended = threading.Event()
        self._clock = 0
        self._is_asked = False
        self._beat_at = 0.0
        self._seen_at = -1.0  # the heartbeat whose stall was logged or checked
        self._logged_at = float("-inf")
        self._silent = 0

    async def start(self) -> None:
        """Watch from now on: imports at start take longer, and delay nothing."""
        self._started.set()

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        await self._started.wait()
        ident = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(ident)
        self._beat_at = time.clock_gettime(self._clock)
        thread = threading.Thread(
            target=self._look,
            args=(asyncio.get_running_loop(), ident),
            name="stall watch",
            daemon=True,
        )
        thread.start()
        try:
            await asyncio.Event().wait()
            raise AssertionError
        finally:
            self._ended.set()

    def _beat(self) -> None:
        now, began = time.clock_gettime(self._clock), self._beat_at
        seconds = now - began
        self._beat_at, self._is_asked = now, False
        if seconds > LIMIT_SECONDS:
            self._observe(seconds)
            if self._seen_at != began:  # it was over before the thread had a turn
                self._say(seconds, "", ())

    def _look(self, loop: asyncio.AbstractEventLoop, ident: int) -> None:
        """Body of the thread: request heartbeats while the loop works, and log where it stalls."""
        pause = _IDLE_LOOK_SECONDS
        while not self._ended.wait(pause):
            began = self._beat_at
            seconds = time.clock_gettime(self._clock) - began
            if seconds < _IDLE_SECONDS:
                pause = _IDLE_LOOK_SECONDS
                continue
            pause = _BUSY_LOOK_SECONDS
            if not self._is_asked:
                self._is_asked = True
                with suppress(RuntimeError):  # the loop is closed; `run` has ended, or is about to
                    loop.call_soon_threadsafe(self._beat)
            if seconds <= LIMIT_SECONDS or self._seen_at == began:
                continue
            frame = sys._current_frames().get(ident)  # noqa: SLF001 - the way that is documented for it
            task = asyncio.current_task(loop)
            if self._beat_at == began:  # it still stands
                self._seen_at = began
                self._say(seconds, task.get_name() if task else "", _places(frame))

    def _say(self, seconds: float, work: str, places: tuple[str, ...]) -> None:
        now = time.monotonic()
        if now - self._logged_at < _QUIET_SECONDS:
            self._silent += 1
            return
        self._logged_at = now
        silent, self._silent = self._silent, 0
        _log.warning(
            MESSAGE, seconds=round(seconds, 3), doing=work, stack=places, not_logged_before=silent
        )


def _places(frame: FrameType | None) -> tuple[str, ...]:
    """The stack of a thread, innermost first."""
    frames: list[str] = []
    while frame is not None and len(frames) < _FRAMES:
        code = frame.f_code
        frames.append(f"{code.co_filename}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return tuple(frames)
