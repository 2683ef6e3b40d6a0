"""A proxy between the operator and the API server that fails as networks and busy servers do.

Faults are drawn from a seeded source, so a failing run can be repeated. Each is one that a real API server
or the network before it produces: 429 with Retry-After, 500, 503, a connection that is cut before or after
the request took effect, a watch that is cut in the middle of a line, a watch that expires (410), a delay.
"""

import asyncio
import json
import random
import ssl
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from aiohttp import ClientSession, ClientTimeout, StreamReader, TCPConnector, web

_STREAM_FAULTS = ("cut", "torn", "expired", "none")


@dataclass
class FaultyProxy:
    """Forwards everything to `server`; about one request in `one_in` meets a fault while `is_faulty`."""

    server: str
    tls: ssl.SSLContext
    dice: random.Random
    one_in: int = 4
    is_faulty: bool = True
    faults: Counter[str] = field(default_factory=Counter)
    url: str = ""

    @contextmanager
    def running(self) -> Iterator["FaultyProxy"]:
        """Serve in a thread of its own."""
        started, loop = threading.Event(), asyncio.new_event_loop()
        stop = asyncio.Event()
        thread = threading.Thread(target=loop.run_until_complete, args=(self._run(started, stop),))
        thread.start()
        try:
            assert started.wait(10)
            yield self
        finally:
            loop.call_soon_threadsafe(stop.set)
            thread.join(20)
            loop.close()

    async def _run(self, started: threading.Event, stop: asyncio.Event) -> None:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._forward)
        runner = web.AppRunner(
            app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5
        )
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        connector = TCPConnector(ssl=self.tls, limit=0)
        async with ClientSession(connector=connector, timeout=ClientTimeout(total=None)) as session:
            self._session = session
            started.set()
            await stop.wait()
            await runner.cleanup()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        fault = self._drawn()
        match fault:
            case "429":
                return _status(429, "TooManyRequests", {"Retry-After": "1"})
            case "500" | "503":
                return _status(int(fault), "InternalError", {})
            case "cut before":
                return _cut(request)
            case "delay":
                await asyncio.sleep(self.dice.uniform(0.1, 1.0))
        body = await request.read()
        headers = {name: request.headers[name] for name in _KEPT if name in request.headers}
        async with self._session.request(
            request.method, self.server + request.path_qs, data=body, headers=headers
        ) as answer:
            if fault == "cut after":
                return _cut(request)
            response = web.StreamResponse(status=answer.status)
            response.content_type = "application/json"
            await response.prepare(request)
            if "watch" in request.query:
                await self._stream(request, answer.content, response)
            else:
                await response.write(await answer.read())
            return response

    async def _stream(
        self, request: web.Request, content: StreamReader, response: web.StreamResponse
    ) -> None:
        """Pass lines of a watch on until chance ends it."""
        async for line in _lines(content):
            fault = self.dice.choice(_STREAM_FAULTS) if self._is_due() else "none"
            if fault != "none":
                self.faults[f"watch {fault}"] += 1
            match fault:
                case "cut":
                    _cut(request)
                    return
                case "torn":
                    await response.write(line[: len(line) // 2])
                    _cut(request)
                    return
                case "expired":
                    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "gone"}
                    event = {"type": "ERROR", "object": gone}
                    await response.write(json.dumps(event).encode() + b"\n")
                    return
            await response.write(line)

    def _drawn(self) -> str:
        if not self._is_due():
            return "none"
        fault = self.dice.choice(("429", "500", "503", "cut before", "cut after", "delay"))
        self.faults[fault] += 1
        return fault

    def _is_due(self) -> bool:
        return self.is_faulty and self.dice.randrange(self.one_in) == 0


_KEPT = ("Content-Type", "Accept", "User-Agent")


async def _lines(content: StreamReader) -> AsyncIterator[bytes]:
    """Whole lines, however long."""
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"


def _cut(request: web.Request) -> web.Response:
    """End the connection as if a cable had been pulled."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def _status(code: int, reason: str, headers: dict[str, str]) -> web.Response:
    body = {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": reason,
    }
    return web.json_response(body, status=code, headers=headers)
