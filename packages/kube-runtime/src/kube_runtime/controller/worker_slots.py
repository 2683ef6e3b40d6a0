"""Worker slots: as many as a controller has workers, less those that wait for a bounded worker.

A reconcile that waits for expensive work costs the event loop nothing. If it kept its slot, sixteen large
objects of one tenant would keep the small ones of all others waiting.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class WorkerSlots:
    """The slots of one controller. `spawn` starts one more worker."""

    def __init__(self, spawn: Callable[[], object]) -> None:
        self._spawn = spawn
        self._surplus = 0

    @contextmanager
    def given_up(self) -> Iterator[None]:
        """Give the slot of this worker to another one within the block; afterwards one of them ends."""
        if self._surplus:
            self._surplus -= 1
        else:
            self._spawn()
        try:
            yield
        finally:
            self._surplus += 1

    def is_surplus(self) -> bool:
        """Whether there is one worker too many, so that the caller has to end."""
        if not self._surplus:
            return False
        self._surplus -= 1
        return True


WORKER_SLOTS: ContextVar[WorkerSlots | None] = ContextVar("worker_slots", default=None)


@contextmanager
def worker_slot_released() -> Iterator[None]:
    """Within a reconcile, let another one run during the block; elsewhere do nothing."""
    if (slots := WORKER_SLOTS.get()) is None:
        yield
        return
    with slots.given_up():
        yield
