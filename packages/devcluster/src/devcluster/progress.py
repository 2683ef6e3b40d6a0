"""What a person sees while something takes minutes: a bar on a terminal, a line now and then elsewhere.

Log files and CI have no cursor to move, so there a bar would be thousands of lines.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TaskID, TextColumn, TimeElapsedColumn
from rich.progress import Progress as RichProgress

QUIET_SECONDS = 15.0
"""At least this long between two lines about the same step."""


class ProgressReporter(Protocol):
    """Where long work reports to."""

    def step(self, text: str) -> None:
        """Says what is being done from now on."""

    def advance(self, done: int, total: int) -> None:
        """Report the progress of the current step. `total` 0 means unknown."""


class Silent:
    """Reports nothing."""

    def step(self, text: str) -> None:
        """Ignored."""

    def advance(self, done: int, total: int) -> None:
        """Ignored."""


class Lines:
    """Plain lines; between those about one step lie `QUIET_SECONDS`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._step = ""
        self._written = 0.0

    def step(self, text: str) -> None:
        """Writes the step as a line."""
        self._step = text
        self._write(text)

    def advance(self, done: int, total: int) -> None:
        """Writes a line if the last one is old enough."""
        if time.monotonic() - self._written >= QUIET_SECONDS:
            self._write(f"{self._step}: {done} of {total}" if total else f"{self._step}: {done}")

    def _write(self, line: str) -> None:
        self._written = time.monotonic()
        print(line, file=self._stream, flush=True)


class Bars:
    """One bar per step; the finished ones stay visible."""

    def __init__(self, bars: RichProgress) -> None:
        self._bars = bars
        self._current: TaskID | None = None

    def step(self, text: str) -> None:
        """Fills the bar of the step before and starts one."""
        self._finish()
        self._current = self._bars.add_task(text, total=None)

    def advance(self, done: int, total: int) -> None:
        """Moves the bar."""
        if self._current is not None:
            self._bars.update(self._current, completed=done, total=total or None)

    def _finish(self) -> None:
        if self._current is not None:
            done = self._bars.tasks[-1].completed or 1
            self._bars.update(self._current, completed=done, total=done)


@contextmanager
def shown() -> Iterator[ProgressReporter]:
    """A progress report on standard error, fit for what that is."""
    stream = sys.stderr
    if not stream.isatty():
        yield Lines(stream)
        return
    text = TextColumn("{task.description}")
    with RichProgress(
        text, BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(), console=Console(file=stream)
    ) as bars:
        yield Bars(bars)
