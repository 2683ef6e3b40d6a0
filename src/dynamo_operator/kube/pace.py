"""Keeps writes to one object apart from each other, without keeping the first one waiting."""

import asyncio
from collections import OrderedDict

_GRAIN_SECONDS = 0.001
"""A wait that is shorter is none: the clock may not even tell its end from its beginning."""

_FORGOTTEN_SECONDS = 60.0
"""When a first look is forgotten of which nobody said that it was over, as when its object has gone."""


class WritePace:
    """Allows one write for each uid in so many seconds. Forgets each after that time."""

    def __init__(self, seconds: float = 1.0) -> None:
        self._seconds = seconds
        self._written: OrderedDict[str, float] = OrderedDict()  # by uid, the oldest first

    @property
    def remembered(self) -> int:
        """Of how many objects a recent write is remembered."""
        return len(self._written)

    def wait(self, uid: str) -> float:
        """Seconds until this object may be written again; 0 means: now."""
        now = asyncio.get_running_loop().time()
        while self._written and self._left(next(iter(self._written.values())), now) == 0:
            self._written.popitem(last=False)
        return self._left(self._written[uid], now) if uid in self._written else 0.0

    def note(self, uid: str) -> None:
        """Take note of a write."""
        self._written[uid] = asyncio.get_running_loop().time()
        self._written.move_to_end(uid)

    def _left(self, written: float, now: float) -> float:
        left = self._seconds - (now - written)
        return left if left > _GRAIN_SECONDS else 0.0


class FirstLook:
    """Puts off what is first seen of each uid, by so many seconds at most, however often it is seen."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._since: OrderedDict[str, float] = OrderedDict()  # by uid, the oldest first

    @property
    def remembered(self) -> int:
        """Of how many objects the first look is remembered."""
        return len(self._since)

    def wait(self, uid: str) -> float:
        """Seconds that are left of the wait; 0 means: it is over."""
        now = asyncio.get_running_loop().time()
        while self._since and now - next(iter(self._since.values())) > _FORGOTTEN_SECONDS:
            self._since.popitem(last=False)
        left = self._seconds - (now - self._since.setdefault(uid, now))
        return left if left > _GRAIN_SECONDS else 0.0

    def forget(self, uid: str) -> None:
        """Have the next look at it be the first."""
        self._since.pop(uid, None)
