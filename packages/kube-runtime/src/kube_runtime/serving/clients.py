"""What the clients of a server share: an amount, such as bytes, and places that are handed out in turn.

A client is known by its address only, and how many there are is not known beforehand.
"""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, TypeAlias

_SITE_BITS: Final = 64
"""A client with one IPv6 address has the whole prefix of this length."""

_Waiting: TypeAlias = "deque[asyncio.Future[None]]"


def client_of(address: str | None) -> str:
    """The client behind an address: the address, or for IPv6 its prefix. "" means: not known."""
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
    """The client has its share, or all is taken."""


class ClientShares:
    """An amount, such as bytes, and how much of it each client holds.

    A client may take more while it holds less than what is left. So a single greedy client gets half of all,
    two of them a third each, and something is always left for a client that comes next. Nothing has to be
    taken back.
    """

    def __init__(self, total: int) -> None:
        self.left = total
        self._held: Counter[str] = Counter()

    @contextmanager
    def taken(self, client: str, amount: int) -> Iterator[None]:
        """Hold so much while the block runs.

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
    """A bounded number of places. Clients take turns, and the tenants of one client among themselves.

    The client that sends most therefore waits longest, and delays another one by one job only.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """How many places there are. It may change: a lower limit takes no place back."""
        self.taken = 0
        """How many of them are held."""
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
