"""A proxy between the operator and the API server: the place where requests are counted and faults happen.

`Proxy` forwards everything and fails nothing. Its subclasses say what goes wrong by overriding `met` (before
a request is forwarded), `answered` (after it took effect) and `passed` (each line of a watch).
"""

import asyncio
import json
import math
import random
import ssl
import threading
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import aclosing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple, Self

import yaml
from aiohttp import ClientSession, ClientTimeout, StreamReader, TCPConnector, web

from scripted.threads import in_a_thread

OPERATOR = "dynamo-operator"
_WRITES = ("POST", "PUT", "PATCH", "DELETE")
_UNCOUNTED = frozenset(("events", "leases"))
"""What is written beside the work: it is neither counted nor a place to crash at."""

FAILURE = "InternalError"
"""The reason and the message of a 500 or 503."""

_STREAM_FAULTS = ("cut", "torn", "expired")


class Write(NamedTuple):
    """A write of the operator that reached the API server, and when, on the clock that only goes forward."""

    namespace: str
    method: str
    path: str
    seconds: float


@dataclass
class Proxy:
    """Forwards everything to `server`, from a thread of its own."""

    server: str
    tls: ssl.SSLContext
    url: str = field(default="", init=False)
    writes: list[Write] = field(default_factory=list[Write], init=False)
    streams: list[web.Request] = field(default_factory=list[web.Request], init=False)

    async def met(self, _: web.Request, /) -> web.StreamResponse | None:
        """What is answered instead of forwarding the request. None means: it is forwarded."""
        return None

    async def answered(self, _: web.Request, __: bytes, /) -> web.StreamResponse | None:
        """What is answered instead of the API server's answer. None means: that answer."""
        return None

    async def passed(self, _: web.Request, response: web.StreamResponse, line: bytes, /) -> bool:
        """Pass a line of a watch on; whether the stream continues."""
        await response.write(line)
        return True

    def lines(self, _: web.Request, content: StreamReader, /) -> AsyncGenerator[bytes, None]:
        """The lines of a watch, when it is time for each."""
        return whole_lines(content)

    async def beside(self) -> None:
        """The proxy's main loop."""

    def writes_in(self, namespace: str) -> list[Write]:
        return [each for each in tuple(self.writes) if each.namespace == namespace]

    def quiet_seconds(self, namespace: str) -> float:
        written = self.writes_in(namespace)
        return time.monotonic() - written[-1].seconds if written else math.inf

    @contextmanager
    def running(self) -> Iterator[Self]:
        with in_a_thread(self._run):
            yield self

    async def _run(self, started: threading.Event, stop: asyncio.Event) -> None:
        app = web.Application(client_max_size=2**24)
        app.router.add_route("*", "/{path:.*}", self._forward)
        runner = web.AppRunner(app, access_log=None, handler_cancellation=True, shutdown_timeout=0.5)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        connector = TCPConnector(ssl=self.tls, limit=0)
        async with ClientSession(connector=connector, timeout=ClientTimeout(total=None)) as session:
            self._session = session
            beside = asyncio.create_task(self.beside())
            started.set()
            await stop.wait()
            beside.cancel()
            await asyncio.gather(beside, return_exceptions=True)
            await runner.cleanup()

    async def _forward(self, request: web.Request) -> web.StreamResponse:
        if instead := await self.met(request):
            return instead
        body = await request.read()
        headers = {name: request.headers[name] for name in _KEPT if name in request.headers}
        write = write_of(request)
        if write is not None:
            self.writes.append(write)
        async with self._session.request(
            request.method, self.server + request.path_qs, data=body, headers=headers
        ) as answer:
            is_watch = "watch" in request.query
            content = b"" if is_watch else await answer.read()
            if instead := await self.answered(request, content):
                return instead
            if not is_watch:
                return web.Response(status=answer.status, body=content, content_type="application/json")
            response = web.StreamResponse(status=answer.status)
            response.content_type = "application/json"
            await response.prepare(request)
            self.streams.append(request)
            try:
                async with aclosing(self.lines(request, answer.content)) as lines:
                    async for line in lines:
                        if not await self.passed(request, response, line):
                            break
            except ConnectionResetError:
                pass  # no client is left to read
            finally:
                self.streams.remove(request)
                if answer.connection is not None and answer.connection.transport is not None:
                    answer.connection.transport.abort()  # a TLS farewell may outlast the event loop
            return response


def write_of(request: web.Request) -> Write | None:
    """The write of the operator that a request is. None means: it is something else."""
    is_ours = request.headers.get("User-Agent", "").startswith(OPERATOR)
    if not is_ours or request.method not in _WRITES:
        return None
    now, parts = time.monotonic(), request.path.strip("/").split("/")
    if "namespaces" not in parts:
        return Write("", request.method, request.path, now)
    at = parts.index("namespaces")
    if len(parts) > at + 2 and parts[at + 2] in _UNCOUNTED:
        return None
    return Write(parts[at + 1], request.method, request.path, now)


@dataclass
class FaultyProxy(Proxy):
    """About one request in `one_in` meets a fault while `is_faulty`.

    Faults are drawn from a seeded source, so a failing run can be repeated. Each is one that a real API
    server or the network before it produces: 409 for a write, 429 with Retry-After, 500, 503, a line that
    is cut before or after the request took effect, a watch that is cut in the middle of a line, a watch that
    expires (410), a delay.
    """

    dice: random.Random
    one_in: int = 4
    is_faulty: bool = True
    faults: Counter[str] = field(default_factory=Counter[str])

    async def met(self, request: web.Request) -> web.StreamResponse | None:
        conflicts = ("409", "409", "409") if write_of(request) else ()
        match self._drawn((*conflicts, "429", "500", "503", "cut before", "cut after", "delay")):
            case "409":
                return refusal(409, "Conflict")
            case "429":
                return refusal(429, "TooManyRequests", {"Retry-After": "1"})
            case "500" | "503" as code:
                return refusal(int(code), FAILURE)
            case "cut before":
                return cut(request)
            case "cut after":
                request["cut after"] = True
            case "delay":
                await asyncio.sleep(self.dice.uniform(0.1, 1.0))
        return None

    async def answered(self, request: web.Request, _: bytes) -> web.StreamResponse | None:
        return cut(request) if "cut after" in request else None

    async def passed(self, request: web.Request, response: web.StreamResponse, line: bytes) -> bool:
        match self._drawn(_STREAM_FAULTS, prefix="watch "):
            case "watch cut":
                cut(request)
                return False
            case "watch torn":
                await response.write(line[: len(line) // 2])
                cut(request)
                return False
            case "watch expired":
                gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "gone"}
                event = {"type": "ERROR", "object": gone}
                await response.write(json.dumps(event).encode() + b"\n")
                return False
        return await super().passed(request, response, line)

    def _drawn(self, choices: tuple[str, ...], prefix: str = "") -> str:
        if not self.is_faulty or self.dice.randrange(self.one_in):
            return ""
        fault = prefix + self.dice.choice(choices)
        self.faults[fault] += 1
        return fault


_KEPT = ("Content-Type", "Accept", "User-Agent")


async def whole_lines(content: StreamReader) -> AsyncGenerator[bytes, None]:
    rest = b""
    async for chunk in content.iter_any():
        *lines, rest = (rest + chunk).split(b"\n")
        for line in lines:
            yield line + b"\n"


def cut(request: web.Request) -> web.Response:
    """End the connection as if a cable had been pulled."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response()


def kubeconfig(proxy: Proxy, target: Path) -> Path:
    """A kubeconfig that leads to the proxy."""
    body = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "c", "cluster": {"server": proxy.url}}],
        "users": [{"name": "u", "user": {}}],
        "contexts": [{"name": "x", "context": {"cluster": "c", "user": "u"}}],
        "current-context": "x",
    }
    target.write_text(yaml.safe_dump(body), encoding="utf-8")
    return target


def refusal(code: int, reason: str, headers: dict[str, str] | None = None) -> web.Response:
    """An answer of the API server that says no."""
    body = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": reason}
    return web.json_response(body, status=code, headers=headers)
