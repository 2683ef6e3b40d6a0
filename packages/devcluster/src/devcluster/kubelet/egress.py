"""The only way from the API server to nodes, pods and Services: a proxy that refuses everything else.

The API server dials whatever address the status of a pod or a node has, and resolves the names of nodes.
Those of simulated nodes are made up, and may belong to other machines. With an egress selector it asks this
proxy (HTTP CONNECT) for each such connection, so none leaves the machine.
"""

import asyncio
import json
import socket
from collections.abc import Awaitable, Callable
from contextlib import suppress
from ipaddress import AddressValueError, IPv4Address, IPv4Network
from pathlib import Path

SIMULATED = "simulated node: no container runs"
"""What a request to a simulated pod or node is answered with."""

_TLS_HANDSHAKE = b"\x16"
_CHUNK = 1 << 16
_REQUEST_SECONDS = 10.0

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Dial = Callable[[], Awaitable[Streams]]
Route = Callable[[str, int], Dial | None]
"""Host and port → how to connect, None where no container runs. Raises: Refused."""


class Refused(Exception):
    """No simulated pod or node has this address."""


def subnet(server_port: int) -> IPv4Network:
    """The addresses of pods that are local processes: 254, disjoint from those of other running instances.

    Made from the port of the API server, as no two of this machine have the same. Above those of simulated
    pods (10.128.0.0/14).
    """
    high, low = divmod(server_port, 1 << 8)
    return IPv4Network(f"10.{132 + (high - 78) % 124}.{low}.0/24")


def loopback(address: IPv4Address) -> str:
    """Where the process of a pod listens: the API server accepts no pod with a loopback address."""
    return str(IPv4Address((127 << 24) | (int(address) & 0xFFFFFF)))


def routed(
    host: str, port: int, *, local: IPv4Network, simulated: IPv4Network, kubelet: Dial, kubelet_port: int
) -> Dial | None:
    """The route to a pod or a node of this instance. Raises: Refused."""
    try:
        address = IPv4Address(host)
    except AddressValueError:
        if port == kubelet_port:  # the name of a node, which is not resolved
            return kubelet
    else:
        if address in local:
            return lambda: asyncio.open_connection(loopback(address), port)
        if address in simulated:
            return None
    raise Refused(f"{host}:{port} is not a pod of this playground")


def private_socket(path: Path) -> socket.socket:
    """A Unix socket at this path that only this user can open. Nothing answers there yet."""
    path.unlink(missing_ok=True)
    listening = socket.socket(socket.AF_UNIX)
    listening.bind(str(path))
    path.chmod(0o600)
    return listening


async def serve(listening: socket.socket, route: Route) -> asyncio.Server:
    """Answer on this socket."""

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError, TimeoutError, asyncio.LimitOverrunError):
            await _handle(reader, writer, route)
        writer.close()

    return await asyncio.start_unix_server(handle, sock=listening)


async def _handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, route: Route) -> None:
    async with asyncio.timeout(_REQUEST_SECONDS):
        head = await reader.readuntil(b"\r\n\r\n")
    verb, target, *_ = [*head.partition(b"\r\n")[0].decode("latin-1").split(" "), "", ""]
    host, _, port = target.rpartition(":")
    if verb != "CONNECT" or not port.isdecimal():
        writer.write(b"HTTP/1.1 405 only CONNECT HOST:PORT\r\n\r\n")
        return
    try:
        dial = route(host.strip("[]"), int(port))
        streams = await dial() if dial else None
    except Refused as error:
        writer.write(f"HTTP/1.1 403 {error}\r\n\r\n".encode("latin-1"))
        return
    except OSError as error:
        writer.write(f"HTTP/1.1 502 {error.strerror or 'no answer'}\r\n\r\n".encode("latin-1", "replace"))
        return
    writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
    await writer.drain()
    if streams is None:
        await _answer_for_a_simulated_pod(reader, writer)
    else:
        await join((reader, writer), streams)


async def join(one: Streams, other: Streams) -> None:
    """Copy in both directions until both are at their end, or one is broken."""
    async with asyncio.TaskGroup() as group:
        for (reader, _), (_, writer) in ((one, other), (other, one)):
            group.create_task(_copy(reader, writer))
    other[1].close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while chunk := await reader.read(_CHUNK):
            writer.write(chunk)
            await writer.drain()
        writer.write_eof()
    except (OSError, NotImplementedError):
        writer.close()


async def _answer_for_a_simulated_pod(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    async with asyncio.timeout(_REQUEST_SECONDS):
        first = await reader.read(1)
    if first in (b"", _TLS_HANDSHAKE):
        return
    status = {"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 503, "message": SIMULATED}
    body = json.dumps(status | {"reason": "ServiceUnavailable"}).encode()
    head = (
        f"HTTP/1.1 503 Service Unavailable\r\nContent-Type: application/json\r\nContent-Length: {len(body)}"
    )
    writer.write(f"{head}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()
    writer.write_eof()
    with suppress(TimeoutError):  # closing with unread data would reset the connection under the answer
        async with asyncio.timeout(_REQUEST_SECONDS):
            while await reader.read(_CHUNK):
                pass
