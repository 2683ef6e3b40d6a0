"""The workers of many pods behind one port of this machine, told apart by the first part of a path.

Pods of a test cluster have addresses that lead nowhere. `REDIRECT` names the variable by which an operator of
the tests learns where to connect instead; everything else of it is the product's.
"""

import asyncio
import threading
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Self

from aiohttp import web

from simulated.lora_worker import LoraWorker

REDIRECT = "TEST_WORKERS_AT"
"""Environment variable with the base URL of a fleet."""


@dataclass
class Fleet:
    """Workers by IP address; an unknown one is created when it is first called."""

    workers: defaultdict[str, LoraWorker] = field(default_factory=lambda: defaultdict(LoraWorker))
    url: str = ""
    killed: threading.Event = field(default_factory=threading.Event)
    _kill: Callable[[], object] | None = None
    _is_answered: bool = False

    def kills(self, kill: Callable[[], object], *, is_answered: bool) -> None:
        """Have the next call kill who makes it, before or after the worker has done its work."""
        self.killed.clear()
        self._is_answered, self._kill = is_answered, kill

    def asked(self) -> list[str]:
        """Everything that any of them was asked."""
        return [line for each in list(self.workers.values()) for line in list(each.asked)]

    def loaded(self) -> list[dict[str, str]]:
        """What each of them has, by address."""
        return [dict(self.workers[each].loaded) for each in sorted(self.workers)]

    @contextmanager
    def running(self) -> Iterator[Self]:
        """Serve meanwhile, from a thread of its own."""
        started, loop = threading.Event(), asyncio.new_event_loop()
        stop = asyncio.Event()
        work = self._run(started, stop)
        thread = threading.Thread(target=loop.run_until_complete, args=(work,))
        thread.start()
        try:
            assert started.wait(10)
            yield self
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(20)
            loop.close()

    async def _run(self, started: threading.Event, stop: asyncio.Event) -> None:
        app = web.Application()
        app.router.add_route("*", "/{host}/{rest:.*}", self._answer)
        runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.1
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        started.set()
        await stop.wait()
        await runner.cleanup()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        kill, self._kill = self._kill, None
        worker = self.workers[request.match_info["host"]]
        if kill is None:
            return await worker.answer(request)
        answer = await worker.answer(request) if self._is_answered else web.Response(status=503)
        threading.Thread(target=self._carry_out, args=(kill,)).start()
        await asyncio.sleep(10)  # the dead read no answers
        return answer

    def _carry_out(self, kill: Callable[[], object]) -> None:
        kill()
        self.killed.set()


def dial(fleet: str, address: str) -> str:
    """Where a worker of the fleet is, whose pod has that base URL."""
    return f"{fleet}/{address.removeprefix('http://').rpartition(':')[0]}"
