"""Report the progress of work that takes minutes: a spinner on a terminal, else an occasional line."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TextIO

from rich.console import Console
from rich.progress import Progress as RichProgress
from rich.progress import SpinnerColumn, TaskID, TextColumn, TimeElapsedColumn

QUIET_SECONDS = 15.0
"""Shortest time between two lines about the same step."""


class ProgressReporter(Protocol):
    """Reports the progress of long work."""

    def step(self, text: str) -> None:
        """Start a step."""

    def advance(self, done: int, total: int) -> None:
        """Report the progress of the current step. `total` 0 means unknown."""


class Silent:
    """Reports nothing."""

    def step(self, text: str) -> None:
        """Ignored."""

    def advance(self, done: int, total: int) -> None:
        """Ignored."""


SILENT = Silent()


class Lines:
    """Plain lines, about one step at most every `QUIET_SECONDS`."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._step = ""
        self._written = 0.0

    def step(self, text: str) -> None:
        """Print the step."""
        self._step = text
        self._write(text)

    def advance(self, done: int, total: int) -> None:
        """Print a line if the last one is old enough."""
        if time.monotonic() - self._written >= QUIET_SECONDS:
            self._write(f"{self._step}: {done} of {total}" if total else f"{self._step}: {done}")

    def _write(self, line: str) -> None:
        self._written = time.monotonic()
        print(line, file=self._stream, flush=True)


class Spinners:
    """One spinner per step, which becomes a check mark; a count if there is a total."""

    def __init__(self, spinners: RichProgress) -> None:
        self._spinners = spinners
        self._current: TaskID | None = None

    def step(self, text: str) -> None:
        """Check off the step before and start a new one."""
        self.finish()
        self._current = self._spinners.add_task(text, total=None, count="")

    def advance(self, done: int, total: int) -> None:
        """Show the count of the step."""
        if self._current is not None and total:
            self._spinners.update(self._current, count=f"{done} of {total}")

    def finish(self) -> None:
        """Check off the current step."""
        if self._current is not None:
            self._spinners.update(self._current, completed=1, total=1, count="")
            self._current = None


@contextmanager
def shown() -> Iterator[ProgressReporter]:
    """A reporter for standard error: spinners on a terminal, else lines. A failed step gets no check mark."""
    stream = sys.stderr
    if not stream.isatty():
        yield Lines(stream)
        return
    columns = (
        SpinnerColumn(finished_text="[green]✔"),
        TextColumn("{task.description}", markup=False),
        TextColumn("{task.fields[count]}", style="dim"),
        TimeElapsedColumn(),
    )
    with RichProgress(*columns, console=Console(file=stream)) as display:
        spinners = Spinners(display)
        yield spinners
        spinners.finish()
