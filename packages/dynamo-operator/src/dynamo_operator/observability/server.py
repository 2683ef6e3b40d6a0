"""Serve probes and metrics over HTTP, each on its own address.

A probe must prove progress, not that this server runs: the manager provides the checks.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple, NoReturn, TypeAlias

from aiohttp import web
from prometheus_client import CollectorRegistry
from prometheus_client.exposition import choose_encoder

from dynamo_operator.observability.access import OK, UNKNOWN, Access
from kube_runtime.controller.manager import Health
from kube_runtime.errors import ConfigError
from kube_runtime.serving.connection_limit import ConnectionLimit, Limits
from kube_runtime.serving.tls import Certificate

Check: TypeAlias = Callable[[], Health]
_Handler: TypeAlias = Callable[[web.Request], Awaitable[web.StreamResponse]]
METRICS = "/metrics"
_LIMITS = Limits(connections=64)
_OFF = "0"
_LARGEST_PORT = 65535
_CHALLENGE = {"WWW-Authenticate": "Bearer"}
_SHUTDOWN_SECONDS = 1.0
"""Seconds that a scrape in progress may take at shutdown."""


class Address(NamedTuple):
    """A listen address. Host None means every interface; port 0 means any free port."""

    host: str | None
    port: int


def listen_address(source: str, text: str) -> Address | None:
    """Parse an address such as `:8080`, `127.0.0.1:8080` or `[::1]:8080`; None if it is `0`, which means off.

    Raises: ConfigError, with `source` as the setting to blame.
    """
    if text in {_OFF, ""}:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _LARGEST_PORT:
        raise ConfigError(source, f"expected HOST:PORT, :PORT or 0, got {text!r}")
    return Address(host.removeprefix("[").removesuffix("]") or None, int(port))


class HttpServer:
    """Serves GET requests for some paths until it is cancelled; over TLS, with a `certificate`."""

    def __init__(
        self,
        address: Address,
        routes: Mapping[str, _Handler],
        *,
        certificate: Certificate | None = None,
    ) -> None:
        self._address = address
        self._routes = routes
        self._certificate = certificate
        self.listening = asyncio.Event()
        self.port = address.port

    async def run(self) -> NoReturn:
        """Serve until cancelled.

        Raises: ConfigError if the address cannot be bound.
        """
        app = web.Application()
        app.add_routes([web.get(path, handler) for path, handler in self._routes.items()])
        context = self._certificate.listener if self._certificate else None
        listener = ConnectionLimit(app, _LIMITS, shutdown_seconds=_SHUTDOWN_SECONDS)
        try:
            self.port = await listener.listen(self._address, context)
            self.listening.set()
            await listener.closed()
        finally:
            await listener.close()


def health_server(address: Address, *, alive: Check, ready: Check) -> HttpServer:
    """A server of `/healthz` and `/readyz`, with the responses of Kubernetes components."""
    routes: dict[str, _Handler] = {}
    for name, check in (("healthz", alive), ("readyz", ready)):
        routes[f"/{name}"] = routes[f"/{name}/{name}"] = _probe(name, check)
    return HttpServer(address, routes)


def metrics_server(
    address: Address,
    registry: CollectorRegistry,
    *,
    certificate: Certificate | None = None,
    access: Access | None = None,
) -> HttpServer:
    """A server of `/metrics`, in the format that the scraper requests; without `access` for any client."""

    async def metrics(request: web.Request) -> web.Response:
        if access is not None:
            status = await access.status(request.headers.get("Authorization", ""))
            if status != OK:
                return web.Response(status=status, headers=_CHALLENGE if status == UNKNOWN else {})
        encode, content_type = choose_encoder(request.headers.get("Accept", ""))
        response = web.Response(body=encode(registry), headers={"Content-Type": content_type})
        response.enable_compression()
        return response

    return HttpServer(address, {METRICS: metrics}, certificate=certificate)


def _probe(name: str, check: Check) -> _Handler:
    async def probe(request: web.Request) -> web.Response:
        health = check()
        if health and "verbose" not in request.query:
            return web.Response(text="ok")
        verdict = "passed" if health else "failed"
        lines = [*(f"[-]{problem}" for problem in health.problems), f"{name} check {verdict}"]
        return web.Response(text="\n".join(lines) + "\n", status=200 if health else 500)

    return probe
