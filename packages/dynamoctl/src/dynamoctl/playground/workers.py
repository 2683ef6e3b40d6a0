"""The LoRA API of simulated workers: every load and unload succeeds. Calls do not leave this machine.

The addresses of simulated pods lead nowhere, or to other machines. So the operator connects to a
server on the loopback address, which gets the worker's address as the first part of the path.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

from aiohttp import web


@asynccontextmanager
async def simulated_workers() -> AsyncIterator[Callable[[str], str]]:
    """Serve meanwhile. Yields what turns the base URL of a worker into the one to connect to."""
    loaded = defaultdict[str, dict[str, str]](dict)

    async def listed(request: web.Request) -> web.Response:
        return web.json_response({"loras": list(loaded[request.match_info["worker"]])})

    async def load(request: web.Request) -> web.Response:
        body = await request.json()
        loaded[request.match_info["worker"]][body["lora_name"]] = body["source"]["uri"]
        return web.json_response({"status": "success"})

    async def unload(request: web.Request) -> web.Response:
        loaded[request.match_info["worker"]].pop(request.match_info["name"], None)
        return web.json_response({"status": "success"})

    app = web.Application()
    app.router.add_get("/{worker}/v1/loras", listed)
    app.router.add_post("/{worker}/v1/loras", load)
    app.router.add_delete("/{worker}/v1/loras/{name:.+}", unload)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await asyncio.shield(web.TCPSite(runner, "127.0.0.1", 0).start())
        port = runner.addresses[0][1]
        yield lambda base: f"http://127.0.0.1:{port}/{urlsplit(base).hostname or 'unknown'}"
    finally:
        await runner.cleanup()
