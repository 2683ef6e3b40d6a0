"""What serves a test from a thread and a loop of its own, until the end of a block."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any

Serving = Callable[[threading.Event, asyncio.Event], Coroutine[Any, Any, None]]
"""Sets the first event once it serves, and serves until the second one is set."""


@contextmanager
def in_a_thread(serving: Serving) -> Iterator[None]:
    started, stop, loop = threading.Event(), asyncio.Event(), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(serving(started, stop),))
    thread.start()
    try:
        assert started.wait(10)
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(20)
        loop.close()
