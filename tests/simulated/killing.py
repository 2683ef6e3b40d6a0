"""A process that is killed at one of its requests."""

from dataclasses import dataclass

from kube_runtime.client.client import Answer, Request, Transport


class Killed(BaseException):
    """The process is gone."""


@dataclass
class Killing:
    """Kills the process at a write, after it has survived others. The last one takes effect or not.

    With `counts_reads`, at a request of any kind.
    """

    server: Transport
    survived: int
    has_effect: bool
    counts_reads: bool = False

    async def send(self, request: Request) -> Answer:
        """Send a request that the process survives. Raises: Killed."""
        is_counted = self.counts_reads or request.method != "GET"
        if is_counted and self.survived <= 0:
            if self.survived == 0 and self.has_effect:
                self.survived = -1
                await self.server.send(request)
            raise Killed
        self.survived -= is_counted
        return await self.server.send(request)
