"""The simulated workers of many pods behind one port, distinguished by the first part of the path.

Addresses of pods in a test cluster lead nowhere. The environment variable `REDIRECT` makes an operator of the
tests connect to a fleet instead; everything else is the product's code.
"""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from aiohttp import web

from scripted.threads import in_a_thread
from simulated.lora_worker import LoraWorker

REDIRECT = "TEST_WORKERS_AT"
"""Environment variable with the base URL of a fleet."""


@dataclass
class Fleet:
    """Workers by IP address, created on their first call."""

    workers: defaultdict[str, LoraWorker] = field(default_factory=lambda: defaultdict(LoraWorker))
    url: str = ""

    def asked(self) -> list[str]:
        return [line for worker in list(self.workers.values()) for line in list(worker.asked)]

    def loaded(self) -> list[dict[str, str]]:
        """The loaded LoRAs of each worker, in the order of addresses."""
        return [dict(self.workers[address].loaded) for address in sorted(self.workers)]

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Serve from a thread until the end of the block."""
        with in_a_thread(self._run):
            yield self

    async def _run(self, started: threading.Event, stop: asyncio.Event) -> None:
        app = web.Application()
        app.router.add_route("*", "/{host}/{rest:.*}", self._answer)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        started.set()
        await stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        return await self.workers[request.match_info["host"]].answer(request)


def dial(fleet: str, address: str) -> str:
    """The URL of the worker in the fleet whose pod has that base URL."""
    return f"{fleet}/{address.removeprefix('http://').rpartition(':')[0]}"
