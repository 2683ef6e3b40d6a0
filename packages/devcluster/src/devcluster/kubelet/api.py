"""The kubelet's API, which the API server asks for `kubectl logs`, `exec` and `port-forward`."""

import asyncio
import socket
import ssl
from pathlib import Path

from aiohttp import web

from devcluster.kubelet.egress import SIMULATED


def application() -> web.Application:
    """The API of all nodes of an instance."""

    async def nothing_runs(_: web.Request) -> web.Response:
        return web.Response(status=400, text=SIMULATED)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", nothing_runs)
    return app


async def serve(
    app: web.Application, listening: socket.socket, certificate: tuple[Path, Path]
) -> web.AppRunner:
    """Serve it with TLS, as the API server expects."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(*certificate)
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    await asyncio.shield(web.SockSite(runner, listening, ssl_context=tls).start())
    return runner
