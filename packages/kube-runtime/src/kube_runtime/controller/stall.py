"""Detect code of ours that stalls the event loop, and log where.

A thread reads the CPU time that the loop's thread used since its last heartbeat. CPU time, not wall-clock
time: a process that gets no CPU is slow without a stall.
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
_BUSY_INTERVAL_SECONDS: Final = 0.02
_IDLE_INTERVAL_SECONDS: Final = 0.05
_IDLE_SECONDS: Final = 0.005
"""The loop is idle below this CPU time since the last heartbeat, and is not woken for another one."""
_LOG_INTERVAL_SECONDS: Final = 5.0
"""Shortest time between two log lines."""
_MAX_FRAMES: Final = 12
MESSAGE: Final = "event loop stalled"

_log = structlog.get_logger()


@contextmanager
def doing(work: str) -> Iterator[None]:
    """Name the current task during the block, for the log line of a stall."""
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
    """Watches the event loop that it runs in, from `start` until it is cancelled.

    It calls `observe` with the CPU seconds of each stall.
    """

    def __init__(self, observe: Callable[[float], None]) -> None:
        self._observe = observe
        self._started = asyncio.Event()
        self._ended = threading.Event()
        self._clock = 0
        self._awaits_beat = False
        self._beat_at = 0.0
        self._checked_at = -1.0  # the heartbeat after which a stall was logged
        self._logged_at = float("-inf")
        self._suppressed = 0

    async def start(self) -> None:
        """Begin: imports during the start of a process take longer, and delay nothing."""
        self._started.set()

    async def run(self) -> NoReturn:
        """Watch until cancelled."""
        await self._started.wait()
        ident = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(ident)
        self._beat_at = time.clock_gettime(self._clock)
        thread = threading.Thread(
            target=self._watch_loop,
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
        self._beat_at, self._awaits_beat = now, False
        if seconds > LIMIT_SECONDS:
            self._observe(seconds)
            if self._checked_at != began:  # it ended before the thread noticed
                self._log_stall(seconds, "", ())

    def _watch_loop(self, loop: asyncio.AbstractEventLoop, ident: int) -> None:
        """The thread: request heartbeats while the loop is busy, and log where it stalls."""
        pause = _IDLE_INTERVAL_SECONDS
        while not self._ended.wait(pause):
            began = self._beat_at
            seconds = time.clock_gettime(self._clock) - began
            if seconds < _IDLE_SECONDS:
                pause = _IDLE_INTERVAL_SECONDS
                continue
            pause = _BUSY_INTERVAL_SECONDS
            if not self._awaits_beat:
                self._awaits_beat = True
                with suppress(RuntimeError):  # the loop is closed; `run` is ending
                    loop.call_soon_threadsafe(self._beat)
            if seconds <= LIMIT_SECONDS or self._checked_at == began:
                continue
            frame = sys._current_frames().get(ident)  # noqa: SLF001 - documented for this use
            task = asyncio.current_task(loop)
            if self._beat_at == began:  # still stalled
                self._checked_at = began
                self._log_stall(seconds, task.get_name() if task else "", _stack(frame))

    def _log_stall(self, seconds: float, work: str, places: tuple[str, ...]) -> None:
        now = time.monotonic()
        if now - self._logged_at < _LOG_INTERVAL_SECONDS:
            self._suppressed += 1
            return
        self._logged_at = now
        suppressed, self._suppressed = self._suppressed, 0
        _log.warning(
            MESSAGE,
            seconds=round(seconds, 3),
            doing=work,
            stack=places,
            not_logged_before=suppressed,
        )


def _stack(frame: FrameType | None) -> tuple[str, ...]:
    """The stack of a thread, innermost first."""
    frames: list[str] = []
    while frame is not None and len(frames) < _MAX_FRAMES:
        code = frame.f_code
        frames.append(f"{code.co_filename}:{frame.f_lineno} {code.co_qualname}")
        frame = frame.f_back
    return tuple(frames)
