"""A bounded number of places, handed out in turn.

Clients take turns, and the tenants of one client among themselves. The client
that sends most therefore waits longest, and delays another one by one job only.
"""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TypeAlias

_Waiting: TypeAlias = "deque[asyncio.Future[None]]"


class FairSemaphore:
    """Places for work of clients and their tenants."""

    def __init__(self, places: int) -> None:
        self._free = places
        self._clients: OrderedDict[str, OrderedDict[str, _Waiting]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return sum(len(line) for tenants in self._clients.values() for line in tenants.values())

    @asynccontextmanager
    async def place(self, client: str, tenant: str = "") -> AsyncIterator[None]:
        """Hold a place while the block runs; wait for it first."""
        await self._take(client, tenant)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, client: str, tenant: str) -> None:
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        tenants = self._clients.setdefault(client, OrderedDict())
        tenants.setdefault(tenant, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.cancelled():
                self._leave(client, tenant, turn)
            else:
                self._give_back()  # the place came in the same moment
            raise

    def _leave(self, client: str, tenant: str, turn: "asyncio.Future[None]") -> None:
        tenants = self._clients.get(client, OrderedDict())
        line = tenants.get(tenant, deque())
        if turn not in line:
            return  # its turn came after it was cancelled, and passed to the next one
        line.remove(turn)
        if not line:
            del tenants[tenant]
        if not tenants:
            del self._clients[client]

    def _give_back(self) -> None:
        while self._clients:
            turn = self._next()
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1

    def _next(self) -> "asyncio.Future[None]":
        client, tenants = self._clients.popitem(last=False)
        tenant, line = tenants.popitem(last=False)
        turn = line.popleft()
        if line:
            tenants[tenant] = line  # behind the other tenants
        if tenants:
            self._clients[client] = tenants  # behind the other clients
        return turn
