"""The probes and the metrics over HTTP, each on an address of its own.

A probe must prove progress, not that this server runs: what it answers comes from the manager.
"""

import asyncio
import ssl
from collections.abc import Awaitable, Callable, Mapping
from typing import NoReturn, TypeAlias

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from dynamo_operator.kube.manager import Health
from dynamo_operator.kube.serving import listen
from dynamo_operator.observability.address import Address, listen_address
from dynamo_operator.observability.certificate import self_signed_context

__all__ = ["Address", "HttpServer", "health_server", "listen_address", "metrics_server"]

Check: TypeAlias = Callable[[], Health]
_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
_SHUTDOWN_SECONDS = 1.0
"""How long a scrape that is under way at the end may take."""


class HttpServer:
    """Serves GET requests for some paths until it is cancelled."""

    def __init__(
        self,
        address: Address,
        routes: Mapping[str, _Handler],
        *,
        is_secure: bool = False,
    ) -> None:
        self._address = address
        self._routes = routes
        self._is_secure = is_secure
        self.listening = asyncio.Event()
        self.port = address.port

    async def run(self) -> NoReturn:
        """Serve until cancelled.

        Raises: ConfigError, where the address cannot be had.
        """
        app = web.Application()
        app.add_routes([web.get(path, handler) for path, handler in self._routes.items()])
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
        await runner.setup()
        try:
            await self._listen(runner)
            await asyncio.get_running_loop().create_future()  # until this task is cancelled
            raise AssertionError
        finally:
            await runner.cleanup()

    async def _listen(self, runner: web.AppRunner) -> None:
        context: ssl.SSLContext | None = None
        if self._is_secure:
            context = await asyncio.to_thread(self_signed_context)
        self.port = await listen(runner, self._address, context)
        self.listening.set()


def health_server(address: Address, *, alive: Check, ready: Check) -> HttpServer:
    """`/healthz` and `/readyz`, as the probes of Kubernetes components answer."""
    routes: dict[str, _Handler] = {}
    for name, check in (("healthz", alive), ("readyz", ready)):
        routes[f"/{name}"] = routes[f"/{name}/{name}"] = _probe(name, check)
    return HttpServer(address, routes)


def metrics_server(
    address: Address, registry: CollectorRegistry, *, is_secure: bool = False
) -> HttpServer:
    """`/metrics`, in the format that the scraper asks for."""

    async def metrics(request: web.Request) -> web.Response:
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        response = web.Response(body=encode(registry), headers={"Content-Type": content_type})
        response.enable_compression()
        return response

    return HttpServer(address, {"/metrics": metrics}, is_secure=is_secure)


def _probe(name: str, check: Check) -> _Handler:
    async def probe(request: web.Request) -> web.Response:
        health = check()
        if health and "verbose" not in request.query:
            return web.Response(text="ok")
        verdict = "passed" if health else "failed"
        lines = [*(f"[-]{problem}" for problem in health.problems), f"{name} check {verdict}"]
        return web.Response(text="\n".join(lines) + "\n", status=200 if health else 500)

    return probe
