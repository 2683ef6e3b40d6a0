"""Limit the connections of a server, and share its capacity fairly among its clients."""

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from ipaddress import IPv6Address, ip_address, ip_network
from typing import Final, cast

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from kube_runtime.errors import ConfigError
from kube_runtime.times import loop_time

_SITE_BITS: Final = 64
"""A client with one IPv6 address usually has the whole prefix of this length."""


def client_of(address: str | None) -> str:
    """The client of an address: the address itself, or for IPv6 its prefix; "" if it is unknown."""
    try:
        ip = ip_address((address or "").partition("%")[0])
    except ValueError:
        return ""
    if not isinstance(ip, IPv6Address):
        return str(ip)
    if ip.ipv4_mapped is not None:
        return str(ip.ipv4_mapped)
    return str(ip_network((ip, _SITE_BITS), strict=False))


class ShareExhausted(Exception):
    """The client has used its share, or nothing is left."""


# A client is known by its address only, and the number of clients is not known in advance.
class ClientShares:
    """An amount, such as bytes, and how much of it each client holds.

    A client may take more while it holds less than what is left. So one greedy client gets half of the
    total, two of them a third each, and something is always left for the next client, without taking
    anything back.
    """

    def __init__(self, total: int) -> None:
        self.left = total
        self._held: Counter[str] = Counter()

    @contextmanager
    def taken(self, client: str, amount: int) -> Iterator[None]:
        """Hold an amount while the block runs.

        Raises:
            ShareExhausted: nothing was taken.
        """
        if amount and (amount > self.left or self._held[client] >= self.left):
            raise ShareExhausted
        self._add(client, amount)
        try:
            yield
        finally:
            self._add(client, -amount)

    def _add(self, client: str, amount: int) -> None:
        self.left -= amount
        self._held[client] += amount
        if not self._held[client]:
            del self._held[client]


_BACKLOG: Final = 128
_ACCEPT_PAUSE_SECONDS: Final = 0.1
"""Pause after a failed accept, as when the process has no more file descriptors."""
_SHUTDOWN_SECONDS: Final = 1.0
"""Seconds that a request in progress may take at shutdown."""
_NO_IPV6: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one server.

    A connection without a request may be idle for `idle_seconds`, because clients open connections in
    advance. A request is safe for `answer_seconds`; then its connection may be aborted to make room.
    """

    connections: int = 256
    handshake_seconds: float = 5.0
    idle_seconds: float = 120.0
    answer_seconds: float = 30.0


LIMITS = Limits()


class _Connection:
    """One connection: a protocol for asyncio that passes everything on to that of aiohttp, `inner`."""

    def __init__(self, inner: asyncio.Protocol, client: str) -> None:
        self.inner = inner
        self.client = client
        self.request: web.Request | None = None
        """The request that is being answered."""
        self.has_answered = False
        self.since = loop_time()
        """When it was opened, or its last request began or ended."""
        self.opening: asyncio.Task[None] | None = None
        self.lost = asyncio.Event()
        self._transport: asyncio.Transport | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass it on."""
        self._transport = cast("asyncio.Transport", transport)
        self.inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self.lost.set()
        self.inner.connection_lost(exc)

    def may_end(self, due: float) -> bool:
        """Whether no complete request is being answered, or one that began before `due`."""
        is_answered = self.request is None or not self.request.content.is_eof()
        return is_answered or self.since < due

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()


# Neither asyncio nor aiohttp counts connections, and each takes 65 to 90 KiB with TLS (decision 82). So each
# counts here from the moment that it is accepted. At the limit, one is aborted to make room: of the client
# with the most connections, first one without an answered request, then the one that was silent for the
# longest time. So a client with few connections keeps them. A complete request that is being answered is
# safe, but for a limited time: its client may not read the response.
class ConnectionLimit:
    """Accepts connections for an application: `listen`, and later `close`."""

    def __init__(self, app: web.Application, limits: Limits = LIMITS) -> None:
        app.middlewares.append(self._counted)
        logger = logging.getLogger("aiohttp.server.limited")
        if not logger.filters:
            logger.addFilter(_BugsOnly())
        self._runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=_SHUTDOWN_SECONDS,
            logger=logger,
            auto_decompress=False,  # a few bytes may become gigabytes
            keepalive_timeout=limits.idle_seconds,
            lingering_time=1.0,
        )
        self._limits = limits
        self._connections: dict[asyncio.Protocol, _Connection] = {}
        self._listener: socket.socket | None = None
        self._context: ssl.SSLContext | None = None

    def __len__(self) -> int:
        """Number of open connections."""
        return len(self._connections)

    async def listen(self, address: tuple[str | None, int], context: ssl.SSLContext | None = None) -> int:
        """Listen on a host, or on all interfaces if it is None, and return the port.

        Raises:
            ConfigError: the address cannot be used.
        """
        await self._runner.setup()
        host, port = address
        loop = asyncio.get_running_loop()
        try:
            if host:
                addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
                family, _, _, _, (where, *_) = addresses[0]
                listener = socket.create_server((str(where), port), family=family, backlog=_BACKLOG)
            else:
                listener = _on_every_interface(port)
        except OSError as error:
            code = error.errno or 0  # negative if the name has no address
            reason = os.strerror(code) if code > 0 else error.strerror
            raise ConfigError(f"{host or ''}:{port}", f"cannot listen: {reason}") from error
        listener.settimeout(0)
        self._listener, self._context = listener, context
        loop.add_reader(listener, self._accept, listener)
        return int(listener.getsockname()[1])

    async def close(self) -> None:
        """Accept no more connections, and close open ones once their request is answered."""
        listener, self._listener = self._listener, None
        if listener is not None:
            asyncio.get_running_loop().remove_reader(listener)
            listener.close()
        await self._runner.cleanup()
        opening = [connection.opening for connection in self._connections.values()]
        for connection in tuple(self._connections.values()):
            connection.abort()
        await asyncio.gather(*filter(None, opening), return_exceptions=True)

    # Not `loop.create_server`, which tells neither the client nor the end of a handshake.
    def _accept(self, listener: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        try:
            accepted, address = listener.accept()
        except BlockingIOError:
            return  # the client has gone
        except OSError as error:
            _log.warning("accept failed", error=str(error))
            loop.remove_reader(listener)
            loop.call_later(_ACCEPT_PAUSE_SECONDS, self._accept_again, listener)
            return
        accepted.settimeout(0)
        client = client_of(str(address[0]))
        if not self._has_room(client):
            accepted.close()
            return
        connection = _Connection(cast("web.Server", self._runner.server)(), client)
        self._connections[connection.inner] = connection

        def forget(_: asyncio.Task[None]) -> None:
            accepted.close()
            self._connections.pop(connection.inner, None)

        connection.opening = loop.create_task(self._open(connection, accepted))
        connection.opening.add_done_callback(forget)

    def _accept_again(self, listener: socket.socket) -> None:
        if listener is self._listener:
            asyncio.get_running_loop().add_reader(listener, self._accept, listener)

    def _has_room(self, client: str) -> bool:
        """Whether to accept another connection of that client; may abort one to make room."""
        if len(self._connections) < self._limits.connections:
            return True
        due = loop_time() - self._limits.answer_seconds
        clients = Counter([client, *(open_.client for open_ in self._connections.values())])
        victim = min(
            (open_ for open_ in self._connections.values() if open_.may_end(due)),
            key=lambda open_: (-clients[open_.client], open_.has_answered, open_.since),
            default=None,
        )
        if victim is None:
            return False
        del self._connections[victim.inner]
        victim.abort()
        return True

    async def _open(self, connection: _Connection, accepted: socket.socket) -> None:
        with suppress(OSError):  # the client sends no TLS, or nothing
            await asyncio.get_running_loop().connect_accepted_socket(
                lambda: cast("asyncio.Protocol", connection),
                accepted,
                ssl=self._context,
                ssl_handshake_timeout=self._limits.handshake_seconds if self._context else None,
            )
            await connection.lost.wait()

    @web.middleware
    async def _counted(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        connection = self._connections.get(request.protocol)
        if connection is None:
            return await handler(request)
        connection.request, connection.since = request, loop_time()
        try:
            response = await handler(request)
            await response.prepare(request)
            # Here, so that no connection is aborted before it has its response.
            await response.write_eof()
        finally:
            connection.request, connection.since = None, loop_time()
            connection.has_answered = True
        return response


class _BugsOnly(logging.Filter):
    """Drops errors about bad input of clients, which must not fill the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | ConnectionError)


def _on_every_interface(port: int) -> socket.socket:
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("::", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
            )
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
    return socket.create_server(("", port), backlog=_BACKLOG)
