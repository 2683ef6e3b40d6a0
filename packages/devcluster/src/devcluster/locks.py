"""A lock between processes, which the kernel releases when its holder dies."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from devcluster.progress import ProgressReporter


@contextmanager
def held(path: Path, progress: ProgressReporter, awaited: str) -> Iterator[None]:
    """Hold the lock file `path`. Reports that it waits for `awaited` if another process holds it.

    The file is never removed, because waiters would wait for the removed file while others lock a new one.
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
