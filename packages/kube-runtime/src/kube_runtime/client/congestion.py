"""A transport that lowers its concurrency when the API server answers 429.

`retry` waits out a single 429. If many requests do so at once, they all return at once, and the API server
refuses them again. So the limit of concurrent requests halves with each wave of refusals and grows by one
with each wave of successes, as TCP's congestion window does.

Watches do not count, because they stay open; nor do Leases, because a leader that waits here would lose its
own.
"""

from kube_runtime.client.transport import Answer, Request, Transport
from kube_runtime.clock import loop_time
from kube_runtime.serving.clients import FairSemaphore
from kube_runtime.url_path import url_path

MOST_AT_ONCE = 64
"""More than all workers send at once."""
_TOO_MANY_REQUESTS = 429
_LEASES = url_path("apis", "coordination.k8s.io", "v1")


class Congestion:
    """Wraps a transport: at most `limit` requests at a time, the others wait in order."""

    def __init__(self, transport: Transport, most_at_once: int = MOST_AT_ONCE) -> None:
        self._transport = transport
        self._most = most_at_once
        self._limit = float(most_at_once)
        self._slots = FairSemaphore(most_at_once)
        self._halved_at = float("-inf")

    @property
    def limit(self) -> int:
        """Number of requests that may run now."""
        return int(self._limit)

    async def send(self, request: Request) -> Answer:
        """Send a request when there is room for it.

        Raises:
            Unreachable: no answer.
        """
        if request.timeout_seconds is None or request.path.startswith(_LEASES):
            return await self._transport.send(request)
        async with self._slots.slot(""):
            started = loop_time()
            answer = await self._transport.send(request)
            self._adjust_limit(answer.status, started)
            return answer

    def _adjust_limit(self, status: int, started: float) -> None:
        if status != _TOO_MANY_REQUESTS:
            self._limit = min(float(self._most), self._limit + 1 / self._limit)
        elif started >= self._halved_at:  # a request that was sent before belongs to the same wave
            self._limit = max(1.0, min(self._limit, self._slots.taken) / 2)
            self._halved_at = loop_time()
        self._slots.limit = self.limit
