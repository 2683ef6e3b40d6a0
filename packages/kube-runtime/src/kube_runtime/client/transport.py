"""Requests to the API server and their responses. Tests replace `Transport.send`.

A response of any status is an `Answer`; everything else is `Unreachable`.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kube_runtime.url_path import UrlPath

ANSWER_SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request.

    `timeout_seconds` covers everything up to the last byte of the response; None, for watches, means without
    limit.
    """

    method: str
    path: UrlPath
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    content_type: str = "application/json"
    timeout_seconds: float | None = ANSWER_SECONDS
    accept: str = "application/json"


@dataclass(slots=True)
class Answer:
    """Status, headers (lower-case names) and body of a response. Read it or close it."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    close: Callable[[], None] = lambda: None

    async def read(self) -> bytes:
        """Read the whole body.

        Raises:
            Unreachable: the connection broke.
        """
        try:
            return b"".join([chunk async for chunk in self.body])
        finally:
            await self.aclose()

    async def aclose(self) -> None:
        """Return the connection to the pool, or close it if the body was not read to the end."""
        close_body = getattr(self.body, "aclose", None)  # a generator has to be closed
        if close_body is not None:
            await close_body()
        self.close()


class Transport(Protocol):
    """Sends requests: to a real API server, or to a simulated one in tests."""

    async def send(self, request: Request) -> Answer:
        """Send a request, and return the response of any status; its body may still be on the way.

        Raises:
            Unreachable: no response.
        """
        ...
