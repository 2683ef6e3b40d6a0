"""A lock between processes that the kernel releases when its holder dies, however it dies."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Holds the lock file `path`; `waiting` is called once if another process holds it now.

    The file is never removed: a waiter would keep waiting on the removed one, beside a new holder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # not inherited by children
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
