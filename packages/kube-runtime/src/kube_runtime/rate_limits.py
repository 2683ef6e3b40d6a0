"""Backoff, rate limits of bursts and of writes per object, and fair turns."""

import asyncio
import random
from collections import OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from kube_runtime.times import loop_time

_GRAIN_SECONDS = 0.001
"""Shorter waits count as none: the resolution of the clock may be coarser."""

MANY_A_SECOND = 20
"""Reconciles a second that write in busy times. A hundred graphs of three services that are created at once
need about 45 a second on two cores, a single one 10 in all, and one that is settled none."""

_FORGOTTEN_SECONDS = 60.0
"""Seconds after which a first observation is forgotten, for example of a deleted object."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """A delay that doubles with each consecutive failure up to a limit; jitter takes up to half of it off.

    The jitter keeps keys that failed together from being retried together.
    """

    first_seconds: float
    limit_seconds: float

    def seconds(self, failures: int) -> float:
        """The delay after that number of failures."""
        doubled = self.first_seconds * 2.0 ** min(failures - 1, 32)
        return min(doubled, self.limit_seconds) * random.uniform(0.5, 1)  # noqa: S311 - no secret


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


class WriteActivity:
    """Whether times are busy: that many reconciles wrote within the last second."""

    def __init__(self, many: int = MANY_A_SECOND) -> None:
        self._times: deque[float] = deque(maxlen=many)

    def record(self) -> None:
        """Record a reconcile that wrote."""
        self._times.append(loop_time())

    @property
    def is_high(self) -> bool:
        """Whether times are busy."""
        return len(self._times) == self._times.maxlen and self._times[0] + 1.0 > loop_time()


class FairSemaphore:
    """A semaphore whose slots go to waiting clients in turn.

    So a client that sends much delays its own jobs, and another client by one job only.
    """

    def __init__(self, limit: int) -> None:
        self.limit = limit
        """Number of slots. It may change; a lower limit takes no slot back."""
        self.taken = 0
        """Number of slots that are held."""
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Number of jobs that wait for a slot."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it while the block runs."""
        if self.taken < self.limit and not self._waiting:
            self.taken += 1
        else:
            await self._turn(client)
        try:
            yield
        finally:
            self._give_back()

    async def _turn(self, client: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self._give_back()  # the slot came in the same moment
            elif turn in (line := self._waiting.get(client, deque())):
                line.remove(turn)
                if not line:
                    del self._waiting[client]
            raise

    def _give_back(self) -> None:
        self.taken -= 1
        while self._waiting and self.taken < self.limit:
            client, line = self._waiting.popitem(last=False)
            turn = line.popleft()
            if line:
                self._waiting[client] = line  # behind the other clients
            if not turn.done():
                self.taken += 1
                turn.set_result(None)
