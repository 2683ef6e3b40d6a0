"""Backoff, rate limits of bursts and of writes per object, and fair turns."""

import asyncio
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from kube_runtime.times import loop_time

_GRAIN_SECONDS = 0.001
"""Shorter waits count as none: the resolution of the clock may be coarser."""

_FORGOTTEN_SECONDS = 60.0
"""Seconds after which a first observation is forgotten, for example of a deleted object."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """A delay that doubles with each consecutive failure up to a limit; jitter takes up to half of it off.

    The jitter keeps keys that failed together from being retried together.
    """

    first_seconds: float
    limit_seconds: float

    def seconds(self, failures: int, jitter: float) -> float:
        """The delay after that number of failures; `jitter` lies between 0 and 1."""
        doubled = self.first_seconds * 2.0 ** min(failures - 1, 32)
        return min(doubled, self.limit_seconds) * (0.5 + 0.5 * jitter)


@dataclass(slots=True)
class TokenBucket:
    """Allows a burst, then one more per refill. `at` is a time of the caller's clock."""

    tokens: float
    at: float

    def take(self, burst: float, refill_seconds: float, now: float) -> bool:
        """Take a token; false if there is none."""
        self.tokens = min(burst, self.tokens + (now - self.at) / refill_seconds)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class _Times:
    """A time for each uid, on the event loop's clock; the oldest come first and are forgotten first."""

    def __init__(self) -> None:
        self._times: OrderedDict[str, float] = OrderedDict()

    @property
    def remembered(self) -> int:
        """Number of objects whose time is remembered."""
        return len(self._times)

    def _forget_older_than(self, seconds: float) -> None:
        while self._times and loop_time() - next(iter(self._times.values())) >= seconds:
            self._times.popitem(last=False)


class WriteRate(_Times):
    """Allows one write for each uid in that number of seconds."""

    def __init__(self, seconds: float = 1.0) -> None:
        super().__init__()
        self._seconds = seconds

    def wait(self, uid: str) -> float:
        """Seconds until this object may be written again; 0 means now."""
        self._forget_older_than(self._seconds - _GRAIN_SECONDS)
        return _seconds_left(self._times[uid], self._seconds) if uid in self._times else 0.0

    def record(self, uid: str) -> None:
        """Record a write."""
        self._forget_older_than(self._seconds - _GRAIN_SECONDS)
        self._times[uid] = loop_time()
        self._times.move_to_end(uid)


class Debounce(_Times):
    """Debounces the first observation of each uid."""

    def wait(self, uid: str, seconds: float) -> float:
        """Seconds left of a wait of `seconds` that began with the first call for `uid`; 0 when it is over."""
        since = self._times.setdefault(uid, loop_time())
        self._forget_older_than(_FORGOTTEN_SECONDS)
        return _seconds_left(since, seconds)

    def forget(self, uid: str) -> None:
        """Treat the next observation as the first."""
        self._times.pop(uid, None)


def _seconds_left(since: float, seconds: float) -> float:
    left = seconds - (loop_time() - since)
    return left if left > _GRAIN_SECONDS else 0.0


_Waiting: TypeAlias = "deque[asyncio.Future[None]]"


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
