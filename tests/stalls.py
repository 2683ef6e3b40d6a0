"""Finds the steps of event loops that hold their thread for long, in every test of this process.

A step is what an event loop does between two checks for due work: one callback, or a task from one `await`
to the next. It is measured in CPU time of its thread: a test on a busy machine stands still by no fault
of its own. CPU time grows there too, by the caches and cores that programs share, so a step over the limit is
compared with how long a known piece of work takes in the same moment.

Not counted: loading modules, which the operator does before it takes part in anything, and collecting
garbage, because the heap of a test run is many times that of an operator, which freezes what it starts with.
"""

import asyncio
import gc
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from importlib.machinery import ExtensionFileLoader, SourceFileLoader
from typing import Any, Final

LIMIT_SECONDS: Final = 0.1

_REFERENCE_SECONDS: Final = 0.0013
"""CPU time of `_reference` on a quiet machine: the least of 400 runs, where the limit was chosen."""


@dataclass
class _Thread(threading.local):
    """What one thread has spent on what does not count."""

    excluded_seconds: float = 0.0
    depth: int = 0
    began: float = 0.0

    def enter(self) -> None:
        """Begin what does not count; it may be nested."""
        if not self.depth:
            self.began = time.thread_time()
        self.depth += 1

    def leave(self) -> None:
        """End it."""
        self.depth -= 1
        if not self.depth:
            self.excluded_seconds += time.thread_time() - self.began


@dataclass
class Steps:
    """Watches the steps of all event loops from `watch` on; `long` are those over the limit."""

    long: list[str] = field(default_factory=list[str])
    _thread: _Thread = field(default_factory=_Thread)

    def watch(self) -> None:
        """Watch from now on, as long as the process lives."""
        asyncio.Handle._run = self._measured(asyncio.Handle._run)  # type: ignore[assignment]
        for loader in (SourceFileLoader, ExtensionFileLoader):
            for name in ("create_module", "exec_module"):
                setattr(loader, name, self._excluded(getattr(loader, name)))
        gc.callbacks.append(self._collecting)

    def _measured(self, run: Callable[[asyncio.Handle], None]) -> Callable[[asyncio.Handle], None]:
        def measured(handle: asyncio.Handle) -> None:
            excluded, began = self._thread.excluded_seconds, time.thread_time()
            run(handle)
            seconds = time.thread_time() - began
            if seconds > LIMIT_SECONDS:
                seconds -= self._thread.excluded_seconds - excluded
                if seconds > LIMIT_SECONDS * _slowness():
                    self.long.append(f"{seconds:.3f} s of CPU time in {_owner(handle)}")

        return measured

    def _excluded(self, load: Callable[..., Any]) -> Callable[..., Any]:
        def excluded(*args: Any) -> Any:
            self._thread.enter()
            try:
                return load(*args)
            finally:
                self._thread.leave()

        return excluded

    def _collecting(self, phase: str, _: dict[str, int]) -> None:
        self._thread.enter() if phase == "start" else self._thread.leave()


def _slowness() -> float:
    """How many times longer than on a quiet machine work takes now; at least 1."""
    return max(1.0, sorted(_reference() for _ in range(5))[2] / _REFERENCE_SECONDS)


def _reference() -> float:
    """CPU time of a piece of work like that of the operator: small objects, made, sorted and read."""
    began = time.thread_time()
    rows = [{"name": f"n{n}", "labels": {"a": str(n), "b": [n, n + 1]}} for n in range(2_000)]
    rows.sort(key=lambda row: str(row["name"]))
    assert all("a" in row["labels"] for row in rows)
    return time.thread_time() - began


def _owner(handle: asyncio.Handle) -> object:
    """The task that a step belongs to, else what was called."""
    held = gc.get_referents(getattr(handle, "_callback", None))
    return next((referent for referent in held if isinstance(referent, asyncio.Task)), handle)
