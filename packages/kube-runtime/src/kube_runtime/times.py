"""Times of the API (RFC 3339), the event loop's clock, and what it limits: backoff, bursts, writes."""

import asyncio
import random
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial


def loop_time() -> float:
    """Seconds on the clock of the running event loop, from an arbitrary start."""
    return asyncio.get_running_loop().time()


wall_clock = partial(datetime.now, UTC)
"""The current time."""


def rfc3339(time: datetime | None = None) -> str:
    """Format a time, by default the current one, in whole seconds, such as `2026-11-22T12:00:00Z`."""
    utc = (time or wall_clock()).astimezone(UTC)
    return utc.isoformat(timespec="seconds").removesuffix("+00:00") + "Z"


def microtime(time: datetime) -> str:
    """Format a time in microseconds, as in a Lease."""
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def instant(text: str | None) -> datetime | None:
    """Parse a time, in UTC; None if it is missing, invalid or before 1970.

    Users may write Leases and statuses. The API server accepts `0001-01-01T00:00:00+99:99` as `date-time`.
    """
    try:
        time = datetime.fromisoformat(text or "")
        return time.astimezone(UTC) if time.tzinfo and time.year >= 1970 else None  # noqa: PLR2004
    except (ValueError, OverflowError):
        return None


def seconds_between(earlier: str | None, later: datetime) -> float | None:
    """The seconds from one time to another; None if the first is missing or invalid."""
    time = instant(earlier)
    return None if time is None else (later - time).total_seconds()


_GRAIN_SECONDS = 0.001
"""Shorter waits count as none: the resolution of the clock may be coarser."""

MANY_A_SECOND = 20
"""Reconciles a second that write in busy times. A hundred graphs of three services that are created at once
need about 45 a second on two cores, a single one 10 in all, and one that is settled none."""

FORGOTTEN_SECONDS = 60.0
"""Seconds after which the start of a wait is forgotten, for example of a deleted object."""


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


class Since(OrderedDict[str, float]):
    """By uid, a time on the event loop's clock; one that is older than `most_seconds` is forgotten."""

    def __init__(self, most_seconds: float) -> None:
        super().__init__()
        self._most_seconds = most_seconds

    def record(self, uid: str) -> None:
        """Record the present time for an object."""
        self[uid] = now = loop_time()
        self.move_to_end(uid)
        while now - next(iter(self.values())) >= self._most_seconds - _GRAIN_SECONDS:
            self.popitem(last=False)

    def left(self, uid: str, seconds: float) -> float:
        """Seconds until `seconds` have passed since the recorded time; 0 if they have or none is known."""
        if uid not in self:
            return 0.0
        left = seconds - (loop_time() - self[uid])
        return left if left > _GRAIN_SECONDS else 0.0

    def left_of_wait(self, uid: str, seconds: float) -> float:
        """The same for a wait that begins with the first call for an object."""
        if uid not in self:
            self.record(uid)
        return self.left(uid, seconds)


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

    So a client that sends much delays its own jobs, and another client by one job only. One whose jobs hang
    stops no other if a client gets `most_each` slots at most (0: all), and `reserved` ones are for clients
    without a slot.
    """

    def __init__(self, limit: int, *, most_each: int = 0, reserved: int = 0) -> None:
        self.limit = limit
        """Number of slots. It may change; a lower limit takes no slot back."""
        self.taken = 0
        """Number of slots that are held."""
        self._most_each = most_each
        self._reserved = reserved
        self._used: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    @property
    def waiting(self) -> int:
        """Number of jobs that wait for a slot."""
        return sum(map(len, self._waiting.values()))

    @asynccontextmanager
    async def slot(self, client: str) -> AsyncIterator[None]:
        """Wait for a slot, and hold it while the block runs."""
        await self.enter(client)
        try:
            yield
        finally:
            self.leave(client)

    async def enter(self, client: str) -> None:
        """Wait for a slot, and hold it until `leave`."""
        if self._waiting or not self._take(client):
            await self._turn(client)

    def _take(self, client: str) -> bool:
        used = self._used[client]
        limit = self.limit - self._reserved if used else self.limit
        if self.taken >= limit or used >= (self._most_each or limit):
            return False
        self.taken += 1
        self._used[client] += 1
        return True

    async def _turn(self, client: str) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(client, deque()).append(turn)
        self._grant()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():
                self.leave(client)  # the slot came in the same moment
            elif turn in (line := self._waiting.get(client, deque())):
                line.remove(turn)
                if not line:
                    del self._waiting[client]
            raise

    def leave(self, client: str) -> None:
        """Give a slot back."""
        self.taken -= 1
        self._used[client] -= 1
        if not self._used[client]:
            del self._used[client]
        if self._waiting:
            self._grant()

    def _grant(self) -> None:
        while (client := next(filter(self._take, self._waiting), None)) is not None:
            line = self._waiting.pop(client)
            turn = line.popleft()
            if line:
                self._waiting[client] = line  # behind the other clients
            if turn.done():  # cancelled, and its task has not run since
                self.taken -= 1
                self._used -= Counter((client,))  # keeps positive numbers only
            else:
                turn.set_result(None)
