"""Authenticate and authorize readers of metrics, with TokenReviews and SubjectAccessReviews.

Outsiders send requests as well. Each new token costs requests to the API server, so results are cached,
refusals too, and only a few reviews run concurrently. Outsiders may evict each other from that cache, but
never a scraper: permitted readers have a cache and a semaphore of their own. The caches hold digests, never
tokens.
"""

import asyncio
import hashlib
from typing import Final

import structlog

from kube_runtime.apply.suppression import Recent
from kube_runtime.client.requests import Client
from kube_runtime.clock import loop_time
from kube_runtime.errors import OperatorError
from kube_runtime.types.access import SubjectAccessReview, TokenReview, question, subject

OK: Final = 200
UNKNOWN: Final = 401
FORBIDDEN: Final = 403
UNAVAILABLE: Final = 503
_KEPT_SECONDS: Final = {OK: 60.0, UNKNOWN: 10.0, FORBIDDEN: 10.0}
_MOST: Final = 1024
_AT_ONCE: Final = 4
_WAITING: Final = 32
_LONGEST_TOKEN: Final = 16 * 1024
_SCHEME: Final = "bearer"
_log = structlog.get_logger()


class Access:
    """Authorizes a bearer token to `get` a path."""

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        self._path = path
        self._readers: Recent[float] = Recent(_MOST)
        """The time at which each permitted reader was last accepted, by digest."""
        self._refused: Recent[tuple[int, float]] = Recent(_MOST)
        self._reviews = asyncio.Semaphore(_AT_ONCE)
        self._reader_reviews = asyncio.Semaphore(_AT_ONCE)
        self._waiting = 0

    async def status(self, authorization: str) -> int:
        """The HTTP status for a client with that header: 200, 401, 403, or 503 if no review is possible."""
        scheme, _, token = authorization.strip().partition(" ")
        token = token.strip()
        is_token = bool(token) and token.isascii() and len(token) <= _LONGEST_TOKEN
        if scheme.lower() != _SCHEME or not is_token:
            return UNKNOWN
        digest = hashlib.sha256(token.encode()).digest()
        if cached := self._cached(digest):
            return cached
        try:
            if self._readers.get(digest) is not None:
                async with self._reader_reviews:
                    status = await self._review(token)
            else:
                status = await self._review_in_turn(token)
        except OperatorError as error:
            _log.warning("failed to authorize a reader of metrics", error=str(error))
            return UNAVAILABLE
        if status != UNAVAILABLE:
            self._remember(digest, status)
        return status

    async def _review_in_turn(self, token: str) -> int:
        if self._waiting >= _WAITING:
            return UNAVAILABLE
        self._waiting += 1
        try:
            async with self._reviews:
                return await self._review(token)
        finally:
            self._waiting -= 1

    def _cached(self, digest: bytes) -> int:
        """The cached status of that token; 0 if there is none."""
        accepted_at = self._readers.get(digest)
        if accepted_at is not None:
            return OK if accepted_at + _KEPT_SECONDS[OK] > loop_time() else 0
        status, until = self._refused.get(digest) or (0, 0.0)
        return status if until > loop_time() else 0

    def _remember(self, digest: bytes, status: int) -> None:
        if status == OK:
            self._refused.forget(digest)
            self._readers.put(digest, loop_time())
        else:
            self._readers.forget(digest)
            self._refused.put(digest, (status, loop_time() + _KEPT_SECONDS[status]))

    async def _review(self, token: str) -> int:
        body = question(TokenReview.KIND, {"token": token})
        token_review = await self._client.create(TokenReview, body)
        if not token_review.status.authenticated:
            return UNKNOWN
        attributes = {"path": self._path, "verb": "get"}
        spec = {**subject(token_review.status.user), "nonResourceAttributes": attributes}
        body = question(SubjectAccessReview.KIND, spec)
        access_review = await self._client.create(SubjectAccessReview, body)
        return OK if access_review.status.allowed else FORBIDDEN
