"""Query the API server for permissions of users, on behalf of reviews from any client.

An outsider may send a review with any user in it, and the answer reveals what that user may do. So a client
has few queries, only some run at a time, and answers are cached for a moment: outsiders can neither take
the capacity of reconciles nor read the permissions of a cluster in bulk.
"""

from typing import Final

import msgspec

from kube_runtime.apply.suppression import Recent
from kube_runtime.client.requests import Client
from kube_runtime.clock import loop_time
from kube_runtime.errors import OperatorError
from kube_runtime.kind import Object
from kube_runtime.rate_limits import TokenBucket
from kube_runtime.serving.clients import FairSemaphore
from kube_runtime.types.access import SubjectAccessReview, question

AT_ONCE: Final = 4
BURST: Final = 20
REFILL_SECONDS: Final = 3.0
"""A client may ask BURST questions, and one more each REFILL_SECONDS."""

KEPT_SECONDS: Final = 10.0
MOST_REMEMBERED: Final = 1024
"""Number of clients and of answers that are remembered."""


class TooManyAccessReviews(OperatorError):
    """The client exceeded its rate; no query was sent."""


class AccessReviews:
    """Asks `SubjectAccessReview`s.

    `are_clients_known`: all reviews come from the API server, so that no client has to be restrained.
    """

    def __init__(self, client: Client, *, are_clients_known: bool = False) -> None:
        self._client = client
        self._are_clients_known = are_clients_known
        self._turns = FairSemaphore(AT_ONCE)
        self._answers: Recent[tuple[bool, float]] = Recent(MOST_REMEMBERED)
        self._budgets: Recent[TokenBucket] = Recent(MOST_REMEMBERED)

    @property
    def remembered(self) -> tuple[int, int]:
        """Number of remembered answers and clients."""
        return len(self._answers), len(self._budgets)

    async def allowed(self, spec: Object, client: str) -> bool:
        """Whether the API server allows what the spec of a `SubjectAccessReview` describes.

        `client` is the source of the review.

        Raises:
            TooManyAccessReviews: the client exceeded its rate.
            OperatorError: no answer.
        """
        key = msgspec.json.encode(spec)
        cached = self._answers.get(key)
        if cached is not None and cached[1] > loop_time():
            return cached[0]
        if not self._are_clients_known:
            self._spend(client)
        async with self._turns.slot(client):
            body = question(SubjectAccessReview.KIND, spec)
            review = await self._client.create(SubjectAccessReview, body)
        self._answers.put(key, (review.status.allowed, loop_time() + KEPT_SECONDS))
        return review.status.allowed

    def _spend(self, client: str) -> None:
        budget = self._budgets.get(client) or TokenBucket(BURST, loop_time())
        self._budgets.put(client, budget)
        if not budget.take(BURST, REFILL_SECONDS, loop_time()):
            raise TooManyAccessReviews("too many questions about users from the same address")
