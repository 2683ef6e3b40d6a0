"""Which connections a server keeps, when any client may open many and send nothing.

Neither asyncio nor the HTTP library counts connections: one that never finishes its handshake, or its first
header, costs memory without limit. So each connection has a place here from the moment that it is accepted.
When all places are taken, one is freed: of the client with the most connections, first one that still owes
a handshake, headers or a body, then the one that was silent for the longest time. So a client with few
connections keeps them, whatever another one opens. Only a complete request that is being answered keeps its
place, for a limited time: a client that does not read its answer occupies it as well.
"""

import asyncio
import errno
import logging
import os
import socket
import ssl
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, NoReturn, cast

import structlog
from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError

from kube_runtime.clock import loop_time
from kube_runtime.errors import ConfigError
from kube_runtime.serving.clients import client_of

_BACKLOG: Final = 128
_LOOKS: Final = 5
"""How often, within the time that headers may take, it is looked for those who exceed it."""

_AGAIN_SECONDS: Final = 0.1
"""How long no connection is accepted when the process has no more file descriptors."""
_NO_IPV6: Final = (errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT)
_log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Limits:
    """What one server grants. A request's line and headers must come within `head_seconds`.

    `idle_seconds` is for who says nothing at all: clients open connections that they need only later.
    `answer_seconds` is how long a request keeps its place when others want it.
    """

    connections: int = 256
    handshake_seconds: float = 5.0
    head_seconds: float = 5.0
    idle_seconds: float = 120.0
    answer_seconds: float = 30.0


LIMITS = Limits()


class Connection(asyncio.Protocol):
    """One connection: wraps aiohttp's protocol (`inner`) to enforce deadlines and limits."""

    def __init__(
        self, inner: asyncio.Protocol, clock: Callable[[], float], client: str = ""
    ) -> None:
        self.inner = inner
        self.client = client
        self.request: web.Request | None = None
        """The one that is running."""
        self.answered = 0
        self.opening: asyncio.Task[None] | None = None
        self.left = asyncio.Event()
        self.awaited_since: float | None = None
        """Since when the rest of a request's headers is to come. None means: it is not."""
        self.since = clock()
        """When it last began to wait, to ask, or to be idle."""
        self._clock = clock
        self._transport: asyncio.Transport | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; nothing has to come yet."""
        self._transport = cast("asyncio.Transport", transport)
        self.inner.connection_made(transport)

    def data_received(self, data: bytes) -> None:
        """Hand it on; if a request begins with it, the rest of its headers has to come soon."""
        if self.request is None and self.awaited_since is None:
            self.awaited_since = self._clock()
        self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        """Hand it on."""
        return self.inner.eof_received()

    def pause_writing(self) -> None:
        """Hand it on."""
        self.inner.pause_writing()

    def resume_writing(self) -> None:
        """Hand it on."""
        self.inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Leave the place."""
        self.left.set()
        self.inner.connection_lost(exc)

    def began(self, request: web.Request) -> None:
        """A request has come, at least its headers."""
        self.awaited_since = None
        self.request = request
        self.since = self._clock()

    def ended(self) -> None:
        """It is answered."""
        self.request = None
        self.answered += 1
        self.since = self._clock()

    @property
    def owes(self) -> bool:
        """Whether the client has to send more: its handshake, headers or body."""
        if self.request is None:
            return not self.answered or self.awaited_since is not None
        return not self.request.content.is_eof()

    def cut(self) -> None:
        """Make the place free at once."""
        if self._transport is not None:
            self._transport.abort()
        elif self.opening is not None:
            self.opening.cancel()


class ConnectionLimit:
    """Lets connections in to an application. Create it, `listen`, then wait for `closed` or `close` it."""

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
        self._places: dict[asyncio.Protocol, Connection] = {}
        self._listeners: list[socket.socket] = []
        self._working: list[asyncio.Task[NoReturn]] = []
        self.refused = 0
        """Connections that found no place, or lost theirs to another one."""

    def __len__(self) -> int:
        """How many places are taken."""
        return len(self._places)

    async def listen(
        self, address: tuple[str | None, int], context: ssl.SSLContext | None = None
    ) -> int:
        """The port on which it listens now. Host None means every interface.

        Raises:
            ConfigError: the address cannot be had.
        """
        await self._runner.setup()
        host, port = address
        try:
            listener = await _on_one(host, port) if host else _on_every_interface(port)
        except OSError as error:
            code = error.errno or 0  # below zero where a name has no address
            reason = os.strerror(code) if code > 0 else error.strerror
            raise ConfigError(f"{host or ''}:{port}", f"cannot listen: {reason}") from error
        listener.settimeout(0)
        self._listeners.append(listener)
        self._working += [
            asyncio.create_task(self._accept(listener, context), name="accept"),
            asyncio.create_task(self._cut_silent(), name="cut silent connections"),
        ]
        return int(listener.getsockname()[1])

    async def closed(self) -> NoReturn:
        """Raise the error that ended the accept loop; return only when cancelled."""
        # `wait` leaves them alone when this is cancelled: a server that ends accepts until `close`.
        ended, _ = await asyncio.wait(self._working, return_when=asyncio.FIRST_COMPLETED)
        for task in ended:
            task.result()
        raise RuntimeError("the accept loop ended")

    async def close(self) -> None:
        """Accept no more connections, and close open ones when their request has been answered."""
        for task in self._working:
            task.cancel()
        await asyncio.gather(*self._working, return_exceptions=True)
        for listener in self._listeners:
            listener.close()
        await self._runner.cleanup()
        for place in tuple(self._places.values()):
            place.cut()

    async def _accept(self, listener: socket.socket, context: ssl.SSLContext | None) -> NoReturn:
        while True:
            # Not `loop.sock_accept`: cancelled in the moment after it accepted, it loses the connection.
            await _readable(listener)
            try:
                connection, address = listener.accept()
            except BlockingIOError:
                continue  # the client has left
            except OSError as error:
                _log.warning("accept failed", error=str(error))
                await asyncio.sleep(_AGAIN_SECONDS)
                continue
            connection.settimeout(0)
            client = client_of(str(address[0]))
            if not self._has_place(client):
                connection.close()
                continue
            self._let_in(connection, client, context)

    def _let_in(
        self, connection: socket.socket, client: str, context: ssl.SSLContext | None
    ) -> None:
        """Register a connection until it has ended."""
        server = cast("web.Server", self._runner.server)
        place = Connection(server(), asyncio.get_running_loop().time, client)
        self._places[place.inner] = place

        def has_left(_: asyncio.Task[None]) -> None:
            connection.close()
            self._places.pop(place.inner, None)

        place.opening = asyncio.create_task(self._open(place, connection, context))
        place.opening.add_done_callback(has_left)

    async def _cut_silent(self) -> NoReturn:
        """End connections whose headers do not come; one look for all is cheaper than a timer for each."""
        loop, patience = asyncio.get_running_loop(), self._limits.head_seconds
        while True:
            await asyncio.sleep(patience / _LOOKS)
            due = loop.time() - patience
            for place in tuple(self._places.values()):
                if place.awaited_since is not None and place.awaited_since < due:
                    place.cut()

    def _has_place(self, client: str) -> bool:
        """Whether to accept another connection of that client; may close one to make room."""
        if len(self._places) < self._limits.connections:
            return True
        self.refused += 1
        due = loop_time() - self._limits.answer_seconds
        idle = [
            place
            for place in self._places.values()
            if place.request is None or place.owes or place.since < due
        ]
        clients = Counter([client, *(place.client for place in self._places.values())])
        victim = min(
            idle,
            key=lambda place: (-clients[place.client], not place.owes, place.since),
            default=None,
        )
        if victim is None:
            return False
        self._places.pop(victim.inner, None)
        victim.cut()
        return True

    async def _open(
        self, place: Connection, connection: socket.socket, context: ssl.SSLContext | None
    ) -> None:
        """Serve one connection."""
        loop = asyncio.get_running_loop()
        with suppress(OSError):  # of clients that send no TLS, or nothing
            async with asyncio.timeout(self._limits.handshake_seconds):
                await loop.connect_accepted_socket(lambda: place, connection, ssl=context)
            await place.left.wait()

    @web.middleware
    async def _counted(
        self, request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
    ) -> web.StreamResponse:
        place = self._places.get(request.protocol)
        if place is None:
            return await handler(request)
        place.began(request)
        try:
            response = await handler(request)
            await response.prepare(request)
            await response.write_eof()  # here, so that no client is cut before it has its answer
        finally:
            place.ended()
        return response


class _BugsOnly(logging.Filter):
    """Bad input from outsiders is not our error, and must not fill the log."""

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        return not isinstance(error, HttpProcessingError | ConnectionError)


def _bugs_logger() -> logging.Logger:
    logger = logging.getLogger("aiohttp.server.gate")
    if not logger.filters:
        logger.addFilter(_BugsOnly())
    return logger


async def _readable(listener: socket.socket) -> None:
    """Return when a connection waits there."""
    loop, waiting = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listener, waiting.set)
    try:
        await waiting.wait()
    finally:
        loop.remove_reader(listener)


def _on_every_interface(port: int) -> socket.socket:
    """A socket that listens there, for both families."""
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
