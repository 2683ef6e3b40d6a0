"""Retry requests when that may help and does no harm.

After a 429 nothing has happened, so every request is retried. After a 5xx or without a response a write may
have taken effect, so only an idempotent request is retried.
"""

import asyncio
import random
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from kube_runtime.client.api_errors import causes, error_of_answer
from kube_runtime.client.transport import Request, Transport
from kube_runtime.clock import loop_time
from kube_runtime.errors import ApiError, ServerFailure, Throttled, TooLarge, Unreachable
from kube_runtime.kind import Key, Kind

TRIES = 4
TOTAL_SECONDS = 15.0
RETRY_AFTER_LIMIT_SECONDS = 10.0
_FIRST_SECONDS = 0.5
_OK = range(200, 300)
_NOT_IMPLEMENTED = 501


@dataclass(slots=True)
class RequestCount:
    """The number of requests of a reconcile, for its log line and for `WriteActivity`."""

    requests: int = 0


_count: ContextVar[RequestCount | None] = ContextVar("_count", default=None)


@contextmanager
def counting_requests() -> Iterator[RequestCount]:
    """Count the requests that the block and its tasks send.

    A ContextVar, because one client serves all reconciles: without it, each call on the way from the
    controller to the client would pass the count along.
    """
    count = RequestCount()
    token = _count.set(count)
    try:
        yield count
    finally:
        _count.reset(token)


async def ask(
    transport: Transport,
    request: Request,
    kind: Kind | None,
    key: Key | None,
    *,
    repeatable: bool,
    waits: bool = True,
) -> bytes:
    """Send a request with retries, and return the body of the response.

    `repeatable`: the request is idempotent. `kind` and `key` are for error messages. `waits`: retry also
    without a response; a command line does not, so that its user learns at once that a cluster is down.

    Raises:
        ApiError: the API server answered with an error.
        TooLarge: the response has more than `request.most_bytes`.
        Unreachable: no response.
    """
    deadline = loop_time() + TOTAL_SECONDS
    tries = 0
    while True:
        tries += 1
        failure: ApiError | Unreachable
        try:
            return await once(transport, request, kind, key)
        except Throttled as error:
            failure, harmless = error, True
        except (ServerFailure, Unreachable) as error:
            failure, harmless = error, repeatable and _may_pass(error, waits=waits)
        pause = _pause(failure, tries)
        if not harmless or tries == TRIES or loop_time() + pause > deadline:
            raise failure
        await asyncio.sleep(pause)


async def once(transport: Transport, request: Request, kind: Kind | None, key: Key | None) -> bytes:
    """Send a request once, and return the body of the response.

    Raises:
        ApiError: the API server answered with an error.
        TooLarge: the response has more than `request.most_bytes`.
        Unreachable: no response.
    """
    if count := _count.get():
        count.requests += 1
    answer = await transport.send(request)
    if answer.status not in _OK:
        text = await answer.read_error()
        error = error_of_answer(answer.status, answer.headers, text, kind, key)
        error.method = request.method
        raise error
    body = await answer.read(request.most_bytes)
    if len(body) > request.most_bytes:
        raise TooLarge(kind, key, f"the answer has more than {request.most_bytes} bytes")
    return body


def _may_pass(error: ServerFailure | Unreachable, *, waits: bool) -> bool:
    if isinstance(error, Unreachable):
        return waits
    if any(cause.get("reason") == "ResourceVersionTooLarge" for cause in causes(error.details)):
        return False  # the server has waited already; after a restored backup it never has that version
    return error.code != _NOT_IMPLEMENTED


def _pause(failure: ApiError | Unreachable, tries: int) -> float:
    """The jittered exponential backoff; at least what the server asked for, up to a limit."""
    pause = _FIRST_SECONDS * 2.0 ** (tries - 1) * random.uniform(0.5, 1.5)  # noqa: S311 - no secret
    asked = failure.retry_after_seconds if isinstance(failure, ApiError) else None
    if asked is None:
        return pause
    # With jitter, so that clients with the same response do not all return at once.
    return min(asked, RETRY_AFTER_LIMIT_SECONDS) + min(pause, 1.0)
