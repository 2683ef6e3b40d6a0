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
from typing import Final, NoReturn, cast

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from kube_runtime.errors import ConfigError
from kube_runtime.times import loop_time

_SITE_BITS: Final = 64
"""A client with one IPv6 address usually has the whole prefix of this length."""


# A client is known by its address only, and the number of clients is not known in advance.
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
_CHECKS: Final = 5
"""Checks for late headers, within the time that headers may take."""

_ACCEPT_PAUSE_SECONDS: Final = 0.1
"""Pause after a failed accept, as when the process has no more file descriptors."""
_NO_IPV6: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_log = structlog.get_logger()


# Neither asyncio nor aiohttp counts connections: those that never finish their handshake or their
# first header cost memory without limit. So each connection counts here from the moment that it is
# accepted. At the limit, one connection is aborted to make room: of the client with the most
# connections, first one that the server waits for (handshake, headers or body), then the one that
# was silent for the longest time. So a client with few connections keeps them. A complete request
# that is being answered is safe, but for a limited time: its client may not read the response.
@dataclass(frozen=True, slots=True)
class Limits:
    """Limits of one server. The head of a request must come within `head_seconds`.

    A connection without a request may be idle for `idle_seconds`, because clients open connections in
    advance. A request is safe for `answer_seconds`; then its connection may be aborted to make room.
    """

    connections: int = 256
    handshake_seconds: float = 5.0
    head_seconds: float = 5.0
    idle_seconds: float = 120.0
    answer_seconds: float = 30.0


LIMITS = Limits()


class Connection(asyncio.Protocol):
    """One connection: wraps aiohttp's protocol (`inner`) to track what the client owes."""

    def __init__(
        self, inner: asyncio.Protocol, clock: Callable[[], float], client: str = ""
    ) -> None:
        self.inner = inner
        self.client = client
        self.request: web.Request | None = None
        """The request that is being answered."""
        self.answered = 0
        self.opening: asyncio.Task[None] | None = None
        self.left = asyncio.Event()
        self.head_began_at: float | None = None
        """When the head of a request began to arrive, until it is complete."""
        self.since = clock()
        """When it was opened, or its last request began or ended."""
        self._clock = clock
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Pass it on."""
        self._transport = cast("asyncio.Transport", transport)
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Pass data on; if a request begins with it, its head must be complete soon."""
        if self.request is None and self.head_began_at is None:
            self.head_began_at = self._clock()
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Pass it on."""
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        """Pass it on."""
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """Pass it on."""
        self.inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Make room."""
        self.left.set()
        self.inner.connection_lost(exc)

    def request_began(self, request: web.Request) -> None:
        """The head of a request is complete."""
        self.head_began_at = None
        self.request = request
        self.since = self._clock()

    def request_ended(self) -> None:
        """The request is answered."""
        self.request = None
        self.answered += 1
        self.since = self._clock()

    @property
    def awaits_client(self) -> bool:
        """Whether the server waits for the client: its handshake, headers or body."""
        if self.request is None:
            return not self.answered or self.head_began_at is not None
        return not self.request.content.is_eof()

    def abort(self) -> None:
        """Close the connection at once."""
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()


class ConnectionLimit:
    """Accepts connections for an application. Create it, `listen`, then wait for `closed` or `close` it."""

    def __init__(
        self, app: web.Application, limits: Limits = LIMITS, *, shutdown_seconds: float = 1.0
    ) -> None:
        app.middlewares.append(self._counted)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            shutdown_timeout=shutdown_seconds,
            logger=_bugs_logger(),
            auto_decompress=False,  # a few bytes may become gigabytes
            keepalive_timeout=limits.idle_seconds,
            lingering_time=1.0,
        )
        self._limits = limits
        self._connections: dict[asyncio.Protocol, Connection] = {}
        self._listeners: list[socket.socket] = []
        self._working: list[asyncio.Task[NoReturn]] = []
        self.refused = 0
        """Number of connections that were refused, or aborted to make room."""

    def __len__(self) -> int:
        """Number of open connections."""
        return len(self._connections)

    async def listen(
        self, address: tuple[str | None, int], context: ssl.SSLContext | None = None
    ) -> int:
        """Listen on a host, or on all interfaces if it is None, and return the port.

        Raises:
            ConfigError: the address cannot be used.
        """
        await self._runner.setup()
        host, port = address
        try:
            listener = await _on_one(host, port) if host else _on_every_interface(port)
        except OSError as error:
            code = error.errno or 0  # negative if the name has no address
            reason = os.strerror(code) if code > 0 else error.strerror
            raise ConfigError(f"{host or ''}:{port}", f"cannot listen: {reason}") from error
        listener.settimeout(0)
        self._listeners.append(listener)
        self._working += [
            asyncio.create_task(self._accept(listener, context), name="accept"),
            asyncio.create_task(self._abort_silent(), name="abort silent connections"),
        ]
        return int(listener.getsockname()[1])

    async def closed(self) -> NoReturn:
        """Raise the error that ended the accept loop; return only when cancelled."""
        # `wait` does not cancel the tasks when this is cancelled: the server accepts until `close`.
        ended, _ = await asyncio.wait(self._working, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
        raise RuntimeError("the accept loop ended")

    async def close(self) -> None:
        """Accept no more connections, and close open ones once their request is answered."""
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        await self._runner.cleanup()
        for connection in tuple(self._connections.values()):
            connection.abort()

    async def _accept(self, listener: socket.socket, context: ssl.SSLContext | None) -> NoReturn:
        while True:
            # Not `loop.sock_accept`, which loses a connection if it is cancelled right after it accepted.
            await _readable(listener)
            try:
                accepted, address = listener.accept()
            except BlockingIOError:
                continue  # the client has gone
            except OSError as error:
                _log.warning("accept failed", error=str(error))
                await asyncio.sleep(_ACCEPT_PAUSE_SECONDS)
                continue
            accepted.settimeout(0)
            client = client_of(str(address[0]))
            if not self._has_room(client):
                accepted.close()
                continue
            self._serve_connection(accepted, client, context)

    def _serve_connection(
        self, accepted: socket.socket, client: str, context: ssl.SSLContext | None
    ) -> None:
        """Serve a connection in a task of its own, and count it until it has ended."""
        server = cast("web.Server", self._runner.server)
        connection = Connection(server(), asyncio.get_running_loop().time, client)
        self._connections[connection.inner] = connection

        def forget(_: asyncio.Task[None]) -> None:
            accepted.close()
            self._connections.pop(connection.inner, None)

        connection.opening = asyncio.create_task(self._open(connection, accepted, context))
        connection.opening.add_done_callback(forget)

    async def _abort_silent(self) -> NoReturn:
        """Abort connections whose head is late; one check of all is cheaper than a timer for each."""
        loop, limit = asyncio.get_running_loop(), self._limits.head_seconds
        while True:
            await asyncio.sleep(limit / _CHECKS)
            due = loop.time() - limit
            for connection in tuple(self._connections.values()):
                if connection.head_began_at is not None and connection.head_began_at < due:
                    connection.abort()

    def _has_room(self, client: str) -> bool:
        """Whether to accept another connection of that client; may abort one to make room."""
        if len(self._connections) < self._limits.connections:
            return True
        self.refused += 1
        due = loop_time() - self._limits.answer_seconds
        idle = [
            connection
            for connection in self._connections.values()
            if connection.request is None or connection.awaits_client or connection.since < due
        ]
        clients = Counter(
            [client, *(connection.client for connection in self._connections.values())]
        )
        victim = min(
            idle,
            key=lambda connection: (
                -clients[connection.client],
                not connection.awaits_client,
                connection.since,
            ),
            default=None,
        )
        if victim is None:
            return False
        self._connections.pop(victim.inner, None)
        victim.abort()
        return True

    async def _open(
        self, connection: Connection, accepted: socket.socket, context: ssl.SSLContext | None
    ) -> None:
        """Do the handshake, then wait for the end of the connection."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # the client sends no TLS, or nothing
            async with asyncio.timeout(self._limits.handshake_seconds):
                await loop.connect_accepted_socket(lambda: connection, accepted, ssl=context)
            await connection.left.wait()

    @web.middleware
    async def _counted(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        connection = self._connections.get(request.protocol)
        if connection is None:
            return await handler(request)
        connection.request_began(request)
        try:
            response = await handler(request)
            await response.prepare(request)
            # Here, so that no connection is aborted before it has its response.
            await response.write_eof()
        finally:
            connection.request_ended()
        return response


class _BugsOnly(logging.Filter):
    """Drops errors about bad input of clients, which must not fill the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | ConnectionError)


def _bugs_logger() -> logging.Logger:
    logger = logging.getLogger("aiohttp.server.gate")
    if not logger.filters:
        logger.addFilter(_BugsOnly())
    return logger


async def _readable(listener: socket.socket) -> None:
    """Wait for a connection."""
    loop, waiting = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listener, waiting.set)
    try:
        await waiting.wait()
    finally:
        loop.remove_reader(listener)


def _on_every_interface(port: int) -> socket.socket:
    """A listening socket for IPv6 and IPv4, or IPv4 only where there is no IPv6."""
    if socket.has_dualstack_ipv6():
        try:
            return socket.create_server(
                ("::", port), family=socket.AF_INET6, backlog=_BACKLOG, dualstack_ipv6=True
            )
        except OSError as error:
            if error.errno not in _NO_IPV6:
                raise
    return socket.create_server(("", port), backlog=_BACKLOG)


async def _on_one(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    family, _, _, _, address = addresses[0]
    return socket.create_server((str(address[0]), port), family=family, backlog=_BACKLOG)
