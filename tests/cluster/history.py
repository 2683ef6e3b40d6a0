"""What happened in a namespace since a moment, however long ago that is.

The API server remembers changes for 75 s; older ones it may forget after 100 newer ones of the kind in the
whole cluster. A recording reads them before that.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from threading import Event

from cluster.world import World
from kube_runtime.kind import Kind, Object

Changes = dict[Kind, list[Object]]

READ_SECONDS = 20.0
"""How often changes are read; well under the time for which the API server remembers all of them."""


@contextmanager
def recording(world: World, kinds: Sequence[Kind]) -> Iterator[Callable[[], Changes]]:
    """Record the changes of those kinds from now on; the function ends the recording and returns them."""
    since, has_ended = world.version(), Event()

    def record(kind: Kind) -> list[Object]:
        found: list[Object] = []
        reached, is_last = since, False
        while not is_last:
            is_last = has_ended.wait(READ_SECONDS)
            until = world.version()
            found += world.changes(kind, since=reached, until=until)
            reached = until
        return found

    with ThreadPoolExecutor(len(kinds)) as pool:
        records = {kind: pool.submit(record, kind) for kind in kinds}

        def changes() -> Changes:
            has_ended.set()
            return {kind: each.result() for kind, each in records.items()}

        try:
            yield changes
        finally:
            has_ended.set()
