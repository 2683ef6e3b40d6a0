"""A lock between processes that the kernel releases when its holder dies, however it dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster.progress import ProgressReporter


@contextmanager
def held(path: Path, progress: ProgressReporter, awaited: str) -> Iterator[None]:
    """Holds the lock file `path`; `progress` says once that it waits for `awaited` if another process does.

    The file is never removed: a waiter would keep waiting on the removed one, beside a new holder.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)  # not inherited by children
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            progress.step(f"waiting for {awaited}")
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)
