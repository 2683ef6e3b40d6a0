"""Asks an API server whether it is ready, without credentials: those paths are open to all clients."""

import http.client
import json
import ssl
from pathlib import Path

from devcluster.ports import LOOPBACK

_TIMEOUT_SECONDS = 5.0


def is_ready(port: int, authority: Path) -> bool:
    """Whether the API server on this port says that it is ready."""
    return _answer(port, authority, "/readyz") is not None


def version(port: int, authority: Path) -> str | None:
    """The version of the API server on this port. None means: no answer."""
    answer = _answer(port, authority, "/version")
    return None if answer is None else str(json.loads(answer)["gitVersion"])


def _answer(port: int, authority: Path, path: str) -> bytes | None:
    try:
        trust = ssl.create_default_context(cafile=authority)
        connection = http.client.HTTPSConnection(
            LOOPBACK, port, timeout=_TIMEOUT_SECONDS, context=trust
        )
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
        finally:
            connection.close()
    except (OSError, http.client.HTTPException):
        return None
    return body if answer.status == http.client.OK else None
