"""A server on 127.0.0.1 whose handler a test provides, and certificates for it and its clients."""

import datetime
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from aiohttp import web
from blockbuster import blockbuster_ctx

from kube_runtime import tls

_LIFE = datetime.timedelta(hours=1)


@dataclass(frozen=True)
class Pair:
    """A certificate and its key, as PEM files."""

    certificate: Path
    key: Path


@dataclass(frozen=True)
class Authority:
    """A certificate authority for servers and clients, which writes its files into a folder."""

    folder: Path
    authority: tls.Authority

    @property
    def pem(self) -> bytes:
        return self.authority.pem

    @property
    def file(self) -> Path:
        path = self.folder / "ca.crt"
        path.write_bytes(self.pem)
        return path

    def issue(self, name: str) -> Pair:
        """Issue a certificate for a client of that name, or for a server on 127.0.0.1 if it is `server`."""
        hosts = ("127.0.0.1", "localhost") if name == "server" else (name,)
        issued = self.authority.issue(name, hosts, now=_now(), life=_LIFE, is_client=True)
        pair = Pair(self.folder / f"{name}.crt", self.folder / f"{name}.key")
        pair.certificate.write_bytes(issued.certificate)
        pair.key.write_bytes(issued.key)
        return pair


async def who_calls(request: web.Request) -> web.Response:
    """The subject of the client's certificate."""
    assert request.transport is not None
    peer = request.transport.get_extra_info("peercert")
    return web.json_response(dict(part[0] for part in peer["subject"]))


def an_authority(folder: Path, name: str = "the cluster's authority") -> Authority:
    folder.mkdir(parents=True, exist_ok=True)
    return Authority(folder, tls.new_authority(name, now=_now(), life=_LIFE))


def _now() -> datetime.datetime:
    return datetime.datetime.now(datetime.UTC)


def server_tls(authority: Authority) -> ssl.SSLContext:
    """TLS of a server that verifies client certificates, but does not require one."""
    pair = authority.issue("server")
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cadata=authority.pem.decode())
    context.load_cert_chain(pair.certificate, pair.key)
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def serving(handler: Handler, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Run a server with one handler for every path, and yield its URL.

    Meanwhile, a blocking call of our code on the event loop is an error.
    """
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handler)
    runner = web.AppRunner(app, handle_signals=False, shutdown_timeout=0.1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        with blockbuster_ctx(["kube_runtime", "dynamo_operator"]):
            yield f"{'https' if tls else 'http'}://127.0.0.1:{port}"
    finally:
        await runner.cleanup()
