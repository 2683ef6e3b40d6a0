"""Limit the concurrent calls to workers, fairly among namespaces.

Each call holds a connection and the memory of a response, so all of them together are limited. A tenant
whose workers hang must not exhaust that limit: each namespace has its own, free slots go round-robin to
waiting namespaces, and some are reserved for namespaces without a running call.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

_PARTS = 4
"""The number of shares: one namespace gets one at most, and one is reserved for those without a call."""


class FairCallSlots:
    """Limits concurrent calls to `total`, and to `per_namespace` in each namespace (default: its share)."""

    def __init__(self, total: int, per_namespace: int = 0) -> None:
        self._total = total
        self._per_namespace = per_namespace or max(1, total // _PARTS)
        self._shared = total - total // _PARTS
        self._used: Counter[str] = Counter()
        # In round-robin order: a namespace that got a slot goes to the end.
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}

    @asynccontextmanager
    async def slot(self, namespace: str) -> AsyncIterator[None]:
        """Hold a slot of the namespace during the block; the wait for it is not limited."""
        await self._take(namespace)
        try:
            yield
        finally:
            self._give_back(namespace)

    async def _take(self, namespace: str) -> None:
        if namespace not in self._waiting and self._has_room(namespace):
            self._used[namespace] += 1
            return
        granted = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(namespace, deque()).append(granted)
        try:
            await granted
        except asyncio.CancelledError:
            if granted.done() and not granted.cancelled():
                self._give_back(namespace)  # granted and cancelled at the same moment
            else:
                self._leave(namespace, granted)
            raise

    def _has_room(self, namespace: str) -> bool:
        used, everywhere = self._used[namespace], self._used.total()
        limit = self._shared if used else self._total
        return used < self._per_namespace and everywhere < limit

    def _leave(self, namespace: str, granted: asyncio.Future[None]) -> None:
        queue = self._waiting.get(namespace)
        if queue is not None and granted in queue:
            queue.remove(granted)
            if not queue:
                del self._waiting[namespace]

    def _give_back(self, namespace: str) -> None:
        self._used[namespace] -= 1
        if not self._used[namespace]:
            del self._used[namespace]
        # Grant free slots to the namespaces whose turn it is.
        while (turn := next(filter(self._has_room, self._waiting), None)) is not None:
            queue = self._waiting.pop(turn)
            granted = queue.popleft()
            if not granted.done():  # else it was cancelled, and its task has not run since
                self._used[turn] += 1
                granted.set_result(None)
            if queue:
                self._waiting[turn] = queue
