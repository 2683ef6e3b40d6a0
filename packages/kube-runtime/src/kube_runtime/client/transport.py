"""What a request to the API server and its answer are. The seam for tests is `Transport.send`.

An `Answer` of any status is an answer, and everything else is `Unreachable`.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request. `path` is absolute.

    Units: `timeout_seconds` covers everything up to the last byte of the answer.
    None means: no limit but the caller's own, as a watch needs it.
    """

    method: str
    path: str
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    content_type: str = "application/json"
    timeout_seconds: float | None = ANSWER_SECONDS
    accept: str = "application/json"


@dataclass(slots=True)
class Answer:
    """Status, headers (lower-case names) and body of an answer. Read it or close it."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    close: Callable[[], None] = lambda: None

    async def read(self) -> bytes:
        """The whole body.

        Raises:
            Unreachable: the connection broke off.
        """
        try:
            return b"".join([chunk async for chunk in self.body])
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Give the connection back, or end it if the body was not read to its end."""
        close_body = getattr(self.body, "aclose", None)  # a generator has to be closed
        if close_body is not None:
            await close_body()
        self.close()


class Transport(Protocol):
    """Where requests go: a real API server, or a script in a test."""

    async def send(self, request: Request) -> Answer:
        """The answer, whatever its status; its body may still be on the way.

        Raises:
            Unreachable: no answer.
        """
        ...
