"""Backoff of repairs that another client keeps reverting.

The first time at once, for it may be an accident and requests fail meanwhile. But a tool that keeps another
state will take it away again and again: then each repair waits twice as long as the one before.
"""

import asyncio
from typing import Final

import structlog

_FIRST_SECONDS: Final = 1.0
_LONGEST_SECONDS: Final = 60.0
_CALM_SECONDS: Final = 600.0
"""Seconds without a repair after which the backoff resets."""
_QUARREL: Final = 5
"""Consecutive repairs after which another writer is assumed to compete."""
_log = structlog.get_logger()


class PatchBackoff:
    """Delays repairs, each longer than the one before."""

    def __init__(self) -> None:
        self._last = float("-inf")
        self._in_a_row = 0

    async def turn(self) -> None:
        """Wait until the next repair is allowed, and count it."""
        now = asyncio.get_running_loop().time()
        if now - self._last > _CALM_SECONDS:
            self._in_a_row = 0
        if self._in_a_row:
            wait = min(_FIRST_SECONDS * 2 ** (self._in_a_row - 1), _LONGEST_SECONDS)
            await asyncio.sleep(max(0.0, self._last + wait - now))
        self._in_a_row = min(self._in_a_row + 1, 10)
        if self._in_a_row == _QUARREL:
            _log.warning("another client keeps removing the caBundle of the webhooks")
        self._last = asyncio.get_running_loop().time()
