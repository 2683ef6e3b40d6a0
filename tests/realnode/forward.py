"""Forward a port of this machine's loopback address to the same port inside a network namespace.

A script that is run by its path and needs no packages. It listens first and then enters the namespace: a
socket stays in the namespace where it was opened, so it accepts clients outside and connects inside.

Arguments: the port, the file of the network namespace.
"""

import asyncio
import ctypes
import os
import socket
import sys
from contextlib import suppress

_LOOPBACK = "127.0.0.1"
_NETWORK = 0x40000000  # CLONE_NEWNET; Source: setns(2)
_CHUNK_BYTES = 65536


def enter(namespace: str) -> None:
    """Move this thread into a network namespace, as `os.setns` does from Python 3.12 on."""
    library = ctypes.CDLL(None, use_errno=True)
    descriptor = os.open(namespace, os.O_RDONLY)
    try:
        if library.setns(descriptor, _NETWORK):
            number = ctypes.get_errno()
            raise OSError(number, os.strerror(number), namespace)
    finally:
        os.close(descriptor)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(ConnectionError):
        while chunk := await reader.read(_CHUNK_BYTES):
            writer.write(chunk)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def _serve(listening: socket.socket, port: int) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            try:
                inner_reader, inner_writer = await asyncio.open_connection(_LOOPBACK, port)
            except OSError:  # nothing listens there yet; closing the connection informs the client
                return
            try:
                await asyncio.gather(_copy(reader, inner_writer), _copy(inner_reader, writer))
            finally:
                inner_writer.close()
        finally:
            writer.close()

    server = await asyncio.start_server(forward, sock=listening)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Forward until killed."""
    port, namespace = int(sys.argv[1]), sys.argv[2]
    with socket.create_server((_LOOPBACK, port)) as listening:
        enter(namespace)
        asyncio.run(_serve(listening, port))


if __name__ == "__main__":
    main()
