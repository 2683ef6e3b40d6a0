"""Share the capacity of a server fairly among its clients: an amount, such as bytes, and concurrent slots.

A client is known by its address only, and the number of clients is not known in advance.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, TypeAlias

_SITE_BITS: Final = 64
"""A client with one IPv6 address usually has the whole prefix of this length."""

_Waiting: TypeAlias = "deque[asyncio.Future[None]]"


def client_of(address: str | None) -> str:
    """The client of an address: the address itself, or for IPv6 its prefix; "" if it is unknown."""
    try:
        ip = ip_address((address or "").partition("%")[0])
    except ValueError:
        return ""
    if not isinstance(ip, IPv6Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ip_network((ip, _SITE_BITS), strict=False))


class ShareExhausted(Exception):
    """The client has used its share, or nothing is left."""


class ClientShares:
    """An amount, such as bytes, and how much of it each client holds.

    A client may take more while it holds less than what is left. So one greedy client gets half of the
    total, two of them a third each, and something is always left for the next client, without taking
    anything back.
    """

    def __init__(self, total: int) -> None:
        self.left = total
        self._held: Counter[str] = Counter()

    @contextmanager
    def taken(self, client: str, amount: int) -> Iterator[None]:
        """Hold an amount while the block runs.

        Raises:
            ShareExhausted: nothing was taken.
        """
        if amount and (amount > self.left or self._held[client] >= self.left):
            raise ShareExhausted
        self._add(client, amount)
        try:
            yield
        finally:
            self._add(client, -amount)

    def _add(self, client: str, amount: int) -> None:
        self.left -= amount
        self._held[client] += amount
        if not self._held[client]:
            del self._held[client]


class FairSemaphore:
    """A semaphore whose slots go to waiting clients in turn, and to the tenants of one client in turn.

    So a client that sends much delays its own jobs, and another client by one job only.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """Number of slots. It may change; a lower limit takes no slot back."""
        self.taken = 0
        """Number of slots that are held."""
        self._clients: OrderedDict[str, OrderedDict[str, _Waiting]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Number of jobs that wait for a slot."""
        return sum(len(line) for tenants in self._clients.values() for line in tenants.values())

    @asynccontextmanager
    async def slot(self, client: str, tenant: str = "") -> AsyncIterator[None]:
        """Wait for a slot, and hold it while the block runs."""
        await self._take(client, tenant)
        try:
            yield
        finally:
            self._give_back()

    async def _take(self, client: str, tenant: str) -> None:
        if self.taken < self.limit and not self._clients:
            self.taken += 1
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
                self._give_back()  # the slot came in the same moment
            raise

    def _leave(self, client: str, tenant: str, turn: "asyncio.Future[None]") -> None:
        tenants = self._clients.get(client, OrderedDict())
        line = tenants.get(tenant, deque())
        if turn not in line:
            return  # its turn came after its cancellation, and passed to the next one
        line.remove(turn)
        if not line:
            del tenants[tenant]
        if not tenants:
            del self._clients[client]

    def _give_back(self) -> None:
        self.taken -= 1
        while self._clients and self.taken < self.limit:
            turn = self._next()
            if not turn.done():
                self.taken += 1
                turn.set_result(None)

    def _next(self) -> "asyncio.Future[None]":
        client, tenants = self._clients.popitem(last=False)
        tenant, line = tenants.popitem(last=False)
        turn = line.popleft()
        if line:
            tenants[tenant] = line  # behind the other tenants
        if tenants:
            self._clients[client] = tenants  # behind the other clients
        return turn
