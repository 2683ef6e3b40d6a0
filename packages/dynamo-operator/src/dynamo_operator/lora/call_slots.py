"""Places for calls to workers, shared fairly between namespaces.

Each call holds a connection and the memory of an answer, so there is a bound on all of them together. A
tenant whose workers hang must not use it up: each namespace has a bound too, places that become free go round
the namespaces that wait, and some are reserved for namespaces without a running call.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_PARTS = 4
"""The share of one namespace in all places; one share is kept for namespaces without a call."""


class FairCallSlots:
    """Limits calls to `total` at once, and to `per_namespace` in one."""

    def __init__(self, total: int, per_namespace: int = 0) -> None:
        self._total = total
        self._per_namespace = per_namespace or max(1, total // _PARTS)
        self._shared = total - total // _PARTS
        self._used: Counter[str] = Counter()
        # In the order of their turns: a namespace that got a place goes to the end.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def place(self, namespace: str) -> AsyncIterator[None]:
        """Hold a place of the namespace during the block; the wait for it is not limited."""
        await self._take(namespace)
        try:
            yield
        finally:
            self._give_back(namespace)

    async def _take(self, namespace: str) -> None:
        if namespace not in self._waiting and self._has_room(namespace):
            self._used[namespace] += 1
            return
        given = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(given)
        try:
            await given
        except asyncio.CancelledError:
            if given.done() and not given.cancelled():
                self._give_back(namespace)  # it came at the same moment
            else:
                self._leave(namespace, given)
            raise

    def _has_room(self, namespace: str) -> bool:
        used, everywhere = self._used[namespace], self._used.total()
        limit = self._shared if used else self._total
        return used < self._per_namespace and everywhere < limit

    def _leave(self, namespace: str, given: asyncio.Future[None]) -> None:
        queue = self._waiting.get(namespace)
        if queue is not None and given in queue:
            queue.remove(given)
            if not queue:
                del self._waiting[namespace]

    def _give_back(self, namespace: str) -> None:
        self._used[namespace] -= 1
        if not self._used[namespace]:
            del self._used[namespace]
        # The namespace whose turn it is, as long as a place is free.
        while (next_ := next(filter(self._has_room, self._waiting), None)) is not None:
            queue = self._waiting.pop(next_)
            given = queue.popleft()
            if not given.done():  # else it was cancelled, and its task has not run since
                self._used[next_] += 1
                given.set_result(None)
            if queue:
                self._waiting[next_] = queue
