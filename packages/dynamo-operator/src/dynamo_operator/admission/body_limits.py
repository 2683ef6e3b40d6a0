"""Read the bodies of reviews within limits: only what the API server could have sent.

Any client that reaches the port may send requests, so they are refused before their body is read if possible.
Concurrent reviews, and the bytes of large bodies, are limited for all clients together and shared among their
addresses: those of the API server are unknown, and no client may use up the limit.
"""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from aiohttp import web

from kube_runtime.serving.clients import ClientShares, ShareExhausted

LARGEST_BODY: Final = 7 * 1024 * 1024
"""In bytes. The API server accepts objects of 3 MiB, and an update contains two."""

SMALL_BODY: Final = 64 * 1024
"""In bytes. Connections are limited, so such bodies cannot add up."""

ALL_BODIES: Final = 32 * 1024 * 1024
"""In bytes: larger bodies that are read or validated concurrently."""

ALL_REVIEWS: Final = 256
"""Concurrent reviews; the limit of connections."""

JSON: Final = "application/json"
_BODY_SECONDS: Final = 5.0
"""Seconds to receive a body. The API server sends it at once, and waits ten seconds for the response."""


class RequestRefused(Exception):
    """The request is refused. `status` is a 4xx or 503."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class BodyLimits:
    """Reads bodies within limits of their size and number."""

    def __init__(self) -> None:
        self._reviews = ClientShares(ALL_REVIEWS)
        self._bytes = ClientShares(ALL_BODIES)

    @contextmanager
    def admitted(self, http: web.Request, client: str) -> Iterator[None]:
        """Reserve capacity for a client's request while the block reads and validates its body.

        Raises:
            RequestRefused: a limit is reached.
        """
        size = _size(http)
        try:
            with (
                self._reviews.taken(client, 1),
                self._bytes.taken(client, size if size > SMALL_BODY else 0),
            ):
                yield
        except ShareExhausted:
            raise RequestRefused(503, "too many requests in progress, retry later") from None

    @staticmethod
    async def read(http: web.Request) -> bytes:
        """The body of a request.

        Raises:
            RequestRefused: it did not arrive.
        """
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                return await http.read()
        except TimeoutError:
            raise RequestRefused(408, "timed out reading the body") from None
        except (web.RequestPayloadError, ConnectionError) as error:
            raise RequestRefused(400, f"failed to read the body: {error}") from error


def _size(http: web.Request) -> int:
    """The size of a body, from its Content-Length.

    Raises:
        RequestRefused: the API server would not send it.
    """
    if http.content_type != JSON:
        raise RequestRefused(400, f"expected {JSON}, got {http.content_type}")
    if http.headers.get("Content-Encoding", "identity") != "identity":
        raise RequestRefused(415, "the body must not be compressed")
    size = http.content_length
    if size is None:
        raise RequestRefused(411, "missing Content-Length")
    if size > LARGEST_BODY:
        raise RequestRefused(413, f"the body exceeds {LARGEST_BODY} bytes")
    return size
