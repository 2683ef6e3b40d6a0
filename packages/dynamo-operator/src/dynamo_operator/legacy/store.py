"""Read the configuration of a tag from the store of archives at `YATAI_ENDPOINT`.

The operator connects to that address only: it refuses redirects, and neither objects nor responses
influence the host. A thread reads the archive as a stream, without the event loop and the disk.
"""

import asyncio
import http.client
import ssl
import time
from collections.abc import Callable
from typing import Final
from urllib.parse import urlsplit

from dynamo_legacy.archive import ArchiveError, config_in
from dynamo_legacy.build.source import TOKEN_HEADER, store_url, store_user
from dynamo_legacy.settings import LegacySettings
from kube_runtime.controller.worker_slots import worker_slot_released

ANSWER_SECONDS: Final = 30.0
"""Seconds that the store may be silent."""
TOTAL_SECONDS: Final = 90.0
"""Seconds for an archive: less than the limit of a reconcile."""
_AT_ONCE = 2
_PORTS = {"http": http.client.HTTP_PORT, "https": http.client.HTTPS_PORT}


class StoreError(Exception):
    """The store has no such configuration, or the request failed; the message says which."""


class ArchiveStore:
    """Reads the configuration of tags from one store, two at a time."""

    def __init__(self, settings: LegacySettings) -> None:
        self._settings = settings
        self._places = asyncio.Semaphore(_AT_ONCE)

    async def graph_config(self, tag: str) -> str:
        """Read `bento.yaml` from the archive of a tag.

        Raises:
            StoreError: there is none, or the request failed.
        """
        with worker_slot_released():
            async with self._places:
                return await asyncio.to_thread(self._fetched, tag)

    def _fetched(self, tag: str) -> str:
        url = store_url(tag, self._settings)
        request = f"GET {url}"
        try:
            return self._downloaded(request, urlsplit(url).path)
        except (OSError, http.client.HTTPException, ArchiveError) as error:
            raise StoreError(f"{request}: {str(error) or type(error).__name__}") from error

    def _downloaded(self, request: str, path: str) -> str:
        token = self._settings.api_token.reveal()
        headers = {TOKEN_HEADER: f"{store_user(self._settings)}:{token}"}
        connection = self._connection()
        try:
            connection.request("GET", path, headers=headers)
            with connection.getresponse() as answer:
                if answer.status != http.client.OK:
                    raise StoreError(f"{request}: status {answer.status} {answer.reason}")
                return config_in(answer, _until(time.monotonic() + TOTAL_SECONDS))
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        parts = urlsplit(self._settings.endpoint)
        host, port = parts.hostname or "", parts.port or _PORTS[parts.scheme]
        if parts.scheme == "http":
            return http.client.HTTPConnection(host, port, timeout=ANSWER_SECONDS)
        context = ssl.create_default_context()
        return http.client.HTTPSConnection(host, port, timeout=ANSWER_SECONDS, context=context)


def _until(deadline: float) -> Callable[[], None]:
    """A check that raises after that time of the monotonic clock."""

    def check() -> None:
        if time.monotonic() > deadline:
            raise ArchiveError(f"the archive has not come within {TOTAL_SECONDS:g} s")

    return check
