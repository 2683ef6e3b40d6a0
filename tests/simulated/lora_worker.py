"""A simulated system server of a worker: its LoRA API over real HTTP, with faults on demand.

Like real workers, it responds with 200 to a failure of the engine, and to a load of a loaded name whatever
its URI.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from enum import StrEnum

from aiohttp import web


class Trouble(StrEnum):
    """A fault of a worker."""

    NONE = "none"
    ENGINE = "engine"
    NO_ROUTE = "no route"
    NOT_ALLOWED = "not allowed"
    NOT_IMPLEMENTED = "not implemented"
    BROKEN = "broken"
    HANGS = "hangs"
    DROPS = "drops"
    REDIRECTS = "redirects"
    TALKS = "talks"
    STUTTERS = "stutters"


_STATUS = {Trouble.NO_ROUTE: 404, Trouble.NOT_ALLOWED: 405, Trouble.NOT_IMPLEMENTED: 501, Trouble.BROKEN: 500}


@dataclass
class LoraWorker:
    """One worker: the loaded LoRAs with their URIs, and its requests in order."""

    loaded: dict[str, str] = field(default_factory=dict[str, str])
    asked: list[str] = field(default_factory=list[str])
    trouble: Trouble = Trouble.NONE
    base: str = ""
    at_once: int = 0
    most_at_once: int = 0
    takes_seconds: float = 0.0

    @asynccontextmanager
    async def serving(self, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator["LoraWorker"]:
        """Serve at an address of this machine, by default on a free port; `base` is the URL."""
        app = web.Application()
        app.router.add_route("*", "/{rest:.*}", self.answer)
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await runner.setup()
        site = web.TCPSite(runner, host, port)
        await site.start()
        self.base = f"http://{host}:{runner.addresses[0][1]}"
        try:
            yield self
        finally:
            await runner.cleanup()

    async def answer(self, request: web.Request) -> web.StreamResponse:
        """Handle a request, or fail as configured."""
        path = request.raw_path.removeprefix(f"/{request.match_info.get('host', '')}")
        self.asked.append(f"{request.method} /{path.removeprefix('/')}")
        self.at_once += 1
        self.most_at_once = max(self.at_once, self.most_at_once)
        try:
            await asyncio.sleep(self.takes_seconds)
            return await self._in_trouble(request) or await self._work(request)
        finally:
            self.at_once -= 1

    async def _in_trouble(self, request: web.Request) -> web.StreamResponse | None:
        if self.trouble in _STATUS:
            text = "Route not found" if self.trouble is Trouble.NO_ROUTE else "no"
            return web.json_response({"message": text}, status=_STATUS[self.trouble])
        match self.trouble:
            case Trouble.ENGINE:
                return web.json_response({"status": "error", "message": "download\nfailed"})
            case Trouble.HANGS:
                await asyncio.sleep(3600)
            case Trouble.DROPS if request.transport is not None:
                request.transport.abort()
            case Trouble.REDIRECTS:
                raise web.HTTPTemporaryRedirect("/elsewhere")
            case Trouble.TALKS:
                return web.Response(body=b"x" * (2 << 20))
            case Trouble.STUTTERS:
                return web.Response(text="[" * 50_000)
            case _:
                pass
        return None

    async def _work(self, request: web.Request) -> web.Response:
        if request.method == "GET":
            loras = {name: number for number, name in enumerate(self.loaded, 1)}
            return web.json_response({"status": "success", "loras": loras, "count": len(loras)})
        if request.method == "POST":
            body = await request.json()
            self.loaded.setdefault(body["lora_name"], body["source"]["uri"])
            return web.json_response({"status": "success", "lora_name": body["lora_name"]})
        name = request.match_info["rest"].removeprefix("v1/loras/")
        if self.loaded.pop(name, None) is None:
            return web.json_response({"status": "error", "message": f"LoRA {name} not found"})
        return web.json_response({"status": "success", "lora_name": name})
