"""A transport that lowers its concurrency when the API server answers 429.

`retry` waits out a single 429. When many requests do so at once, all of them come back, and the API server
refuses them again. So the limit of concurrent requests halves with each wave of refusals and grows by one
with each wave that succeeds, as in TCP.

Watches are not counted, because they stay open; nor are Leases, because a leader that waits here loses them.
"""

from kube_runtime.client.transport import Answer, Request, Transport
from kube_runtime.clock import loop_time
from kube_runtime.serving.clients import FairSemaphore

MOST_AT_ONCE = 64
"""More than all workers together send at once."""
_TOO_MANY_REQUESTS = 429
_LEASES = "/apis/coordination.k8s.io/"


class Congestion:
    """Another transport, with at most `limit` concurrent requests; the others wait in their order."""

    def __init__(self, transport: Transport, most_at_once: int = MOST_AT_ONCE) -> None:
        self._transport = transport
        self._most = most_at_once
        self._limit = float(most_at_once)
        self._places = FairSemaphore(most_at_once)
        self._halved_at = float("-inf")

    @property
    def limit(self) -> int:
        """How many requests may run now."""
        return int(self._limit)

    async def send(self, request: Request) -> Answer:
        """The answer of the other transport.

        Raises:
            Unreachable: no answer.
        """
        if request.timeout_seconds is None or request.path.startswith(_LEASES):
            return await self._transport.send(request)
        async with self._places.place(""):
            started = loop_time()
            answer = await self._transport.send(request)
            self._learn(answer.status, started)
            return answer

    def _learn(self, status: int, started: float) -> None:
        if status != _TOO_MANY_REQUESTS:
            self._limit = min(float(self._most), self._limit + 1 / self._limit)
        elif started >= self._halved_at:  # what was sent before that belongs to the same wave
            self._limit = max(1.0, min(self._limit, self._places.taken) / 2)
            self._halved_at = loop_time()
        self._places.limit = self.limit
