"""Rate limits: of writes per object, while many reconciles run, and of bursts."""

from collections import OrderedDict, deque
from dataclasses import dataclass

from kube_runtime.clock import loop_time

_GRAIN_SECONDS = 0.001
"""Shorter waits are skipped: the resolution of the clock may be coarser."""

MANY_A_SECOND = 20
"""Reconciles that write. A hundred graphs of three services that are made at once need about 45 a second on
two cores; one that is made needs 10 in all, and one that is settled none."""

_FORGOTTEN_SECONDS = 60.0
"""Seconds after which an unfinished first reconcile is forgotten, for example of a deleted object."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """A delay that doubles with each failure in a row, up to a limit, then halved at random.

    The jitter keeps keys that failed together from coming back together.
    """

    first_seconds: float
    limit_seconds: float

    def seconds(self, failures: int, jitter: float) -> float:
        """The delay after so many failures; `jitter` lies between 0 and 1."""
        doubled = self.first_seconds * 2.0 ** min(failures - 1, 32)
        return min(doubled, self.limit_seconds) * (0.5 + 0.5 * jitter)


@dataclass(slots=True)
class TokenBucket:
    """Allows a burst, then one more each time that a token is back. `at` is a time of the caller's clock."""

    tokens: float
    at: float

    def take(self, burst: float, refill_seconds: float, now: float) -> bool:
        """Take a token; False means: there is none."""
        self.tokens = min(burst, self.tokens + (now - self.at) / refill_seconds)
        self.at = now
        if self.tokens < 1:
            return False
        self.tokens -= 1
        return True


class WriteRate:
    """Allows one write for each uid in so many seconds. Forgets each after that time."""

    def __init__(self, seconds: float = 1.0) -> None:
        self._seconds = seconds
        self._written: OrderedDict[str, float] = OrderedDict()  # by uid, the oldest first

    @property
    def remembered(self) -> int:
        """Number of objects whose recent write is remembered."""
        return len(self._written)

    def wait(self, uid: str) -> float:
        """Seconds until this object may be written again; 0 means: now."""
        now = loop_time()
        self._forget_old(now)
        return self._left(self._written[uid], now) if uid in self._written else 0.0

    def note(self, uid: str) -> None:
        """Record a write."""
        now = loop_time()
        self._forget_old(now)
        self._written[uid] = now
        self._written.move_to_end(uid)

    def _forget_old(self, now: float) -> None:
        while self._written and self._left(next(iter(self._written.values())), now) == 0:
            self._written.popitem(last=False)

    def _left(self, written: float, now: float) -> float:
        left = self._seconds - (now - written)
        return left if left > _GRAIN_SECONDS else 0.0


class Debounce:
    """Debounces the first observation of each uid."""

    def __init__(self) -> None:
        self._since: OrderedDict[str, float] = OrderedDict()  # by uid, the oldest first

    @property
    def remembered(self) -> int:
        """Number of objects whose first observation is remembered."""
        return len(self._since)

    def wait(self, uid: str, seconds: float) -> float:
        """Seconds that are left of a wait of so many; 0 means: it is over."""
        now = loop_time()
        # Read before old ones are forgotten: it may be one of them.
        since = self._since.setdefault(uid, now)
        while self._since and now - next(iter(self._since.values())) > _FORGOTTEN_SECONDS:
            self._since.popitem(last=False)
        left = seconds - (now - since)
        return left if left > _GRAIN_SECONDS else 0.0

    def forget(self, uid: str) -> None:
        """Treat its next reconcile as the first."""
        self._since.pop(uid, None)


class WriteActivity:
    """Distinguishes busy from quiet times, by how many reconciles have written within a second."""

    def __init__(self, many: int = MANY_A_SECOND) -> None:
        self._times: deque[float] = deque(maxlen=many)

    def note(self) -> None:
        """Record one."""
        self._times.append(loop_time())

    @property
    def is_high(self) -> bool:
        """Whether the rate is reached."""
        return self.high_until > loop_time()

    @property
    def high_until(self) -> float:
        """When times become quiet unless there are more; the event loop's time, in the past if they are."""
        is_full = len(self._times) == self._times.maxlen
        return self._times[0] + 1.0 if is_full else 0.0
