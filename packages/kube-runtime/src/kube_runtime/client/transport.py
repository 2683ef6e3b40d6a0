"""Requests to the API server and their responses. Tests replace `Transport.send`.

A response of any status is an `Answer`; everything else is `Unreachable`.
"""

from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from kube_runtime.url_path import UrlPath

ANSWER_SECONDS = 30.0
MOST_ANSWER_BYTES = 8 * 1024 * 1024
"""Most bytes of a response. etcd stores 1.5 MiB per object; its JSON has up to six times as many, because the
API server escapes `<`, `>` and `&`."""
MOST_ERROR_BYTES = 1024 * 1024
"""Most bytes of an error; the rest is cut off."""


@dataclass(frozen=True, slots=True)
class Request:
    """One HTTP request.

    `timeout_seconds` covers everything up to the last byte of the response; None, for watches, means without
    limit. `most_bytes` is the limit of a response that is read as a whole.
    """

    method: str
    path: UrlPath
    query: Mapping[str, str] = field(default_factory=dict[str, str])
    body: bytes | None = None
    content_type: str = "application/json"
    timeout_seconds: float | None = ANSWER_SECONDS
    accept: str = "application/json"
    most_bytes: int = MOST_ANSWER_BYTES


@dataclass(slots=True)
class Answer:
    """Status, headers (lower-case names) and body of a response. Read it or close it."""

    status: int
    headers: Mapping[str, str]
    body: AsyncIterator[bytes]
    close: Callable[[], None] = lambda: None

    async def read(self, most_bytes: int) -> bytes:
        """Read the body, up to `most_bytes`; a longer one is cut off after one more.

        Raises:
            Unreachable: the connection broke.
        """
        chunks: list[bytes] = []
        rest = most_bytes + 1
        try:
            async for chunk in self.body:
                chunks.append(chunk[:rest])
                rest -= len(chunks[-1])
                if rest == 0:
                    break
            return b"".join(chunks)
        finally:
            await self.aclose()

    async def read_error(self) -> bytes:
        """Read the body of an error, up to `MOST_ERROR_BYTES`.

        Raises:
            Unreachable: the connection broke.
        """
        return await self.read(MOST_ERROR_BYTES)

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
