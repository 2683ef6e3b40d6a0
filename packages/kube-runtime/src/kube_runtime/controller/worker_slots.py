"""Let another reconcile run while one waits for expensive work.

A controller has a fixed number of workers. If reconciles that wait for the worker pool kept theirs, sixteen
large objects of one tenant would block the small ones of all others.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class WorkerSlots:
    """The workers of one controller. `spawn` starts one more."""

    def __init__(self, spawn: Callable[[], object]) -> None:
        self._spawn = spawn
        self._surplus = 0

    @contextmanager
    def released(self) -> Iterator[None]:
        """Have one more worker within the block. Afterwards one of them ends."""
        if self._surplus:
            self._surplus -= 1
        else:
            self._spawn()
        try:
            yield
        finally:
            self._surplus += 1

    def is_surplus(self) -> bool:
        """Whether there is one worker too many; the caller then has to end."""
        if not self._surplus:
            return False
        self._surplus -= 1
        return True


WORKER_SLOTS: ContextVar[WorkerSlots | None] = ContextVar("worker_slots", default=None)


@contextmanager
def worker_slot_released() -> Iterator[None]:
    """Let another reconcile run during the block. Outside of reconciles this does nothing."""
    if (slots := WORKER_SLOTS.get()) is None:
        yield
        return
    with slots.released():
        yield
