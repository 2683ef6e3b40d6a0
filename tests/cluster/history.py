"""Record the changes in a namespace for any length of time.

The API server keeps changes for 75 s; then it may forget them after 100 newer ones of the kind in the whole
cluster. A recording reads them before that.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

from cluster.world import World
from kube_runtime.types.meta import Kind, Object

Changes = dict[Kind, list[Object]]

READ_SECONDS = 20.0
"""Interval of reads, well under the time for which the API server keeps changes."""


@contextmanager
def recording(world: World, kinds: Sequence[Kind]) -> Iterator[Callable[[], Changes]]:
    """Record the changes of these kinds; the yielded function ends the recording and returns them."""
    since, has_ended = world.version(), Event()

    def record(kind: Kind) -> list[Object]:
        recorded: list[Object] = []
        reached, is_last = since, False
        while not is_last:
            is_last = has_ended.wait(READ_SECONDS)
            until = world.version()
            recorded += world.changes(kind, since=reached, until=until)
            reached = until
        return recorded

    with ThreadPoolExecutor(len(kinds)) as pool:
        records = {kind: pool.submit(record, kind) for kind in kinds}

        def changes() -> Changes:
            has_ended.set()
            return {kind: record.result() for kind, record in records.items()}

        try:
            yield changes
        finally:
            has_ended.set()
