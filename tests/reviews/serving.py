"""A webhook server on a free port, for tests in the process."""

import asyncio
import io
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import aiohttp
from prometheus_client import CollectorRegistry

from dynamo_operator.admission.certificates import Stored, Terms, decide, hosts_of
from dynamo_operator.admission.decide import ReviewContext
from dynamo_operator.admission.review import Decisions
from dynamo_operator.admission.server import ANY_CLIENT, AccessReviews, Clients, WebhookMetrics, WebhookServer
from dynamo_operator.admission.webhooks import webhooks
from dynamo_operator.settings import Settings
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.tls import Certificate
from reviews.asking import OPERATOR, SETTINGS
from simulated.server import Server

HOSTS = hosts_of("dyn", "hooks")


def new_certificate() -> Stored:
    """A certificate of its own authority."""
    terms = Terms.of_life(timedelta(days=1))
    now = datetime.now(UTC)
    stored = decide(None, HOSTS, terms=terms, now=now, trusted_for=timedelta()).stored
    assert stored is not None
    return stored


def of_settings(settings: Settings) -> WebhookServer:
    """The server that an operator with these settings would run."""
    address, registry = ("127.0.0.1", 0), CollectorRegistry()
    reads = Client(Server()), "us", Cache()
    return webhooks(*reads, registry, address, "dyn", settings, is_excluded=lambda _: False).server


@dataclass(slots=True)
class Running:
    server: WebhookServer
    certificate: Certificate
    registry: CollectorRegistry
    http: aiohttp.ClientSession
    task: asyncio.Task[None]
    authorities: bytes

    async def post(self, path: str, body: bytes, content_type: str = "application/json") -> tuple[int, bytes]:
        """Status and body of the answer."""
        headers = {"Content-Type": content_type}
        async with self.http.post(path, data=io.BytesIO(body), headers=headers) as answer:
            return answer.status, await answer.read()

    @asynccontextmanager
    async def raw(self) -> AsyncIterator[tuple[asyncio.StreamReader, asyncio.StreamWriter]]:
        """A connection on which anything may be said."""
        anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)  # reads no CA: that takes up to 100 ms
        anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
        reader, writer = await asyncio.open_connection("127.0.0.1", self.server.port, ssl=anybody)
        try:
            yield reader, writer
        finally:
            writer.transport.abort()


@asynccontextmanager
async def running(
    is_excluded: Callable[[str], bool] = lambda _: False,
    drain_seconds: float = 0,
    elsewhere: AccessReviews | None = None,
    clients: Clients = ANY_CLIENT,
) -> AsyncIterator[Running]:
    stored, registry = await asyncio.to_thread(new_certificate), CollectorRegistry()
    certificate = Certificate(asks_clients=clients.file is not None)
    server = WebhookServer(
        ("127.0.0.1", 0),
        certificate,
        Decisions(lambda request: ReviewContext(SETTINGS, request.user_info.username, OPERATOR), is_excluded),
        WebhookMetrics(registry),
        drain_seconds=drain_seconds,
        access_reviews=elsewhere,
        clients=clients,
    )
    task: asyncio.Task[None] = asyncio.create_task(server.run())
    await certificate.load(stored.serving, await clients.authorities())
    await server.listening.wait()
    authorities = stored.authorities.decode()
    trust = await asyncio.to_thread(ssl.create_default_context, cadata=authorities)
    base = f"https://127.0.0.1:{server.port}"
    connector = aiohttp.TCPConnector(ssl=trust)
    try:
        async with aiohttp.ClientSession(base, connector=connector) as http:
            yield Running(server, certificate, registry, http, task, stored.authorities)
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task
