"""Takes the bodies of reviews in: only what the API server could have sent, and never too much at once.

The hard part is that anybody who reaches the port may send. So what is wrong with a request is said before
its body is read, and the bodies of all requests together have a limit, or many strangers with large ones
would take the memory of the process.
"""

import asyncio
from typing import Final

from aiohttp import web

LARGEST_BODY: Final = 7 * 1024 * 1024
"""In bytes. The API server takes 3 MiB for an object, and an update shows it twice."""

ALL_BODIES: Final = 32 * 1024 * 1024
"""In bytes: what may be read or judged at one time."""

JSON: Final = "application/json"
_BODY_SECONDS: Final = 5.0
"""So long a body may take: the API server sends it at once, and waits ten seconds for the whole answer."""


class NotTaken(Exception):
    """The request is not taken in. `status` is a 4xx or 503."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status


class Intake:
    """Reads bodies, and remembers how much of them there is."""

    def __init__(self, largest: int = LARGEST_BODY, together: int = ALL_BODIES) -> None:
        self._largest = largest
        self._left = together

    def reserve(self, http: web.Request) -> int:
        """The size of a body that may be read now; `release` it when it is done with.

        Raises:
            NotTaken: it may not.
        """
        size = self._size(http)
        if size > self._left:
            raise NotTaken(503, "too much is under way, try again")
        self._left -= size
        return size

    def release(self, size: int) -> None:
        """Be done with a body of that size."""
        self._left += size

    def _size(self, http: web.Request) -> int:
        if http.content_type != JSON:
            raise NotTaken(400, f"expected {JSON}, got {http.content_type}")
        if http.headers.get("Content-Encoding", "identity") != "identity":
            raise NotTaken(415, "the body must not be compressed")
        size = http.content_length
        if size is None:
            raise NotTaken(411, "the length of the body must be said before it comes")
        if size > self._largest:
            raise NotTaken(413, f"the body has more than {self._largest} bytes")
        return size

    @staticmethod
    async def read(http: web.Request) -> bytes:
        """The body of a request.

        Raises:
            NotTaken: it did not come.
        """
        try:
            async with asyncio.timeout(_BODY_SECONDS):
                return await http.read()
        except TimeoutError:
            raise NotTaken(408, "the body did not come in time") from None
        except (web.RequestPayloadError, ConnectionError) as error:
            raise NotTaken(400, f"the body did not come: {error}") from error
