"""Detects steps that block an event loop for long, in every test of this process.

A step is one callback, or a task from one `await` to the next. It is measured in CPU time of its thread,
because a busy machine may pause a test. CPU time grows on a busy machine too, because programs share caches
and cores, so a step over the limit is compared with the time of a reference computation at the same moment.

Excluded are loading modules, which an operator does at its start, and garbage collection, because the heap of
a test run is many times that of an operator.
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
"""CPU time of `_reference` on an idle machine, on which the limit was chosen: the minimum of 400 runs."""


@dataclass
class _Thread(threading.local):
    excluded_seconds: float = 0.0
    depth: int = 0
    started: float = 0.0

    def enter(self) -> None:
        if not self.depth:
            self.started = time.thread_time()
        self.depth += 1

    def leave(self) -> None:
        self.depth -= 1
        if not self.depth:
            self.excluded_seconds += time.thread_time() - self.started


@dataclass
class Steps:
    """Measures the steps of all event loops from `watch` on; `long` are those over the limit."""

    long: list[str] = field(default_factory=list[str])
    _thread: _Thread = field(default_factory=_Thread)

    def watch(self) -> None:
        """Measure from now on, until the process ends."""
        asyncio.Handle._run = self._measured(asyncio.Handle._run)  # type: ignore[assignment]
        for loader in (SourceFileLoader, ExtensionFileLoader):
            for name in ("create_module", "exec_module"):
                setattr(loader, name, self._excluded(getattr(loader, name)))
        gc.callbacks.append(self._collecting)

    def _measured(self, run: Callable[[asyncio.Handle], None]) -> Callable[[asyncio.Handle], None]:
        def measured(handle: asyncio.Handle) -> None:
            excluded, started = self._thread.excluded_seconds, time.thread_time()
            run(handle)
            seconds = time.thread_time() - started
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
    """How many times longer than on an idle machine the reference takes now; at least 1."""
    return max(1.0, sorted(_reference() for _ in range(5))[2] / _REFERENCE_SECONDS)


def _reference() -> float:
    """CPU time of work like the operator's: create, sort and read small objects."""
    started = time.thread_time()
    rows = [{"name": f"n{n}", "labels": {"a": str(n), "b": [n, n + 1]}} for n in range(2_000)]
    rows.sort(key=lambda row: str(row["name"]))
    assert all("a" in row["labels"] for row in rows)
    return time.thread_time() - started


def _owner(handle: asyncio.Handle) -> object:
    held = gc.get_referents(getattr(handle, "_callback", None))
    return next((referent for referent in held if isinstance(referent, asyncio.Task)), handle)
