"""Divides what is limited among clients whose number is not known beforehand.

A client may take more while it holds less than what is left. So a single greedy client gets half of all, two
of them a third each, and something is always left for a client that comes next. Nothing has to be taken back.
"""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager


class ShareExhausted(Exception):
    """The client has its share, or all is taken."""


class ClientShares:
    """An amount, such as bytes, and how much of it each client holds."""

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
