"""An API server that is behind: its watches send events late, and its lists are old."""

import asyncio
import random
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from aiohttp import StreamReader, web

from dynamo_operator.component.api import GROUP
from dynamo_operator.graph.api import DynamoGraphDeployment
from faults.proxy import Proxy, whole_lines


@dataclass(frozen=True)
class Lag:
    """How many seconds late the news are of graphs, of our other kinds, and of the rest: a range for each.

    The delay of a watch is drawn from it.
    """

    graphs: tuple[float, float]
    components: tuple[float, float]
    others: tuple[float, float]

    def bounds(self, path: str) -> tuple[float, float]:
        """The range for a watch at that path."""
        if not path.startswith(f"/apis/{GROUP}/"):
            return self.others
        is_of_graphs = path.endswith(f"/{DynamoGraphDeployment.KIND.plural}")
        return self.graphs if is_of_graphs else self.components


@dataclass
class Behind(Proxy):
    """While `is_late`, lines of watches come late.

    Lists are remembered while `is_remembering`. While `is_old` they are answered from memory; a watch that
    begins there sends everything that has happened since.
    """

    dice: random.Random
    lag: Lag
    is_late: bool = False
    is_remembering: bool = False
    is_old: bool = False
    _lists: dict[str, bytes] = field(default_factory=dict[str, bytes], init=False)

    async def met(self, request: web.Request) -> web.StreamResponse | None:
        if not self.is_old or request.path_qs not in self._lists:
            return None
        return web.Response(body=self._lists[request.path_qs], content_type="application/json")

    async def answered(self, request: web.Request, content: bytes) -> web.StreamResponse | None:
        is_list = request.method == "GET" and "limit" in request.query
        if self.is_remembering and is_list and "watch" not in request.query:
            self._lists[request.path_qs] = content
        return None

    async def lines(self, request: web.Request, content: StreamReader) -> AsyncGenerator[bytes, None]:
        loop = asyncio.get_running_loop()
        lag = self.dice.uniform(*self.lag.bounds(request.path)) if self.is_late else 0.0
        queue: asyncio.Queue[tuple[float, bytes | None]] = asyncio.Queue()

        async def read() -> None:
            async for line in whole_lines(content):
                queue.put_nowait((loop.time() + lag, line))
            queue.put_nowait((loop.time() + lag, None))

        reading = asyncio.create_task(read())
        try:
            while True:
                due, line = await queue.get()
                await asyncio.sleep(due - loop.time())
                if line is None:
                    return
                yield line
        finally:
            reading.cancel()
            await asyncio.gather(reading, return_exceptions=True)
