"""The network between one process and a simulated API server, which a test can break."""

import asyncio
from dataclasses import dataclass

from kube_runtime.client.client import Answer, Request
from kube_runtime.errors import Unreachable
from simulated.server import Server

HANGING_SECONDS = 1000
"""Longer than any timeout of a client."""


@dataclass
class Line:
    """The connection of one process to the API server."""

    server: Server
    is_cut: bool = False
    """Requests fail at once."""
    hangs: bool = False
    """Requests are lost without an error."""
    is_mute: bool = False
    """Requests take effect, but their responses are lost."""

    async def send(self, request: Request) -> Answer:
        """Send a request, unless the connection is broken."""
        if self.hangs:
            await asyncio.sleep(HANGING_SECONDS)
        if self.is_cut:
            raise Unreachable("no route")
        answer = await self.server.send(request)
        if self.is_mute:
            await asyncio.sleep(HANGING_SECONDS)
        return answer
