"""Connections have places, and those who say nothing lose theirs."""

import asyncio
import gc
import socket
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import pytest
from aiohttp import web

from kube_runtime.errors import ConfigError
from kube_runtime.server import ConnectionLimit, Limits
from kube_runtime.tls import server_context
from reviews.serving import new_certificate

ASK = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"
SLOW = b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n"


class Served:
    """A gate before an application with one quick and one slow page."""

    def __init__(self, limits: Limits) -> None:
        app = web.Application()
        app.router.add_get("/", self._quick)
        app.router.add_get("/slow", self._slow)
        app.router.add_post("/body", self._reads)
        app.router.add_get("/large", self._large)
        self.gate = ConnectionLimit(app, limits)
        self.go_on = asyncio.Event()
        self.is_asked = asyncio.Event()
        self.port = 0
        self.writers: list[asyncio.StreamWriter] = []

    async def _quick(self, _: web.Request) -> web.Response:
        return web.Response(text="here")

    async def _slow(self, _: web.Request) -> web.Response:
        self.is_asked.set()
        await self.go_on.wait()
        return web.Response(text="late")

    async def _reads(self, request: web.Request) -> web.Response:
        self.is_asked.set()
        return web.Response(text=f"{len(await request.read())} bytes")

    async def _large(self, request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        self.is_asked.set()
        for _ in range(64):
            await response.write(bytes(1024 * 1024))
        return response

    async def open(
        self, local: tuple[str, int] | None = None
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, local_addr=local)
        self.writers.append(writer)
        return reader, writer

    async def places(self, count: int) -> None:
        async with asyncio.timeout(5):
            while len(self.gate) != count:  # noqa: ASYNC110  # it has no events
                await asyncio.sleep(0.01)


@asynccontextmanager
async def served(limits: Limits, *, is_secure: bool = False) -> AsyncIterator[Served]:
    found = Served(limits)
    context = server_context(new_certificate().serving) if is_secure else None
    found.port = await found.gate.listen(("127.0.0.1", 0), context)
    try:
        yield found
    finally:
        found.go_on.set()
        await found.gate.close()
        for writer in found.writers:
            writer.transport.abort()
        await asyncio.sleep(0)


async def said(reader: asyncio.StreamReader) -> bytes:
    async with asyncio.timeout(5):
        with suppress(ConnectionError):
            return await reader.read(4096)
        return b""


async def is_served(connection: tuple[asyncio.StreamReader, asyncio.StreamWriter]) -> None:
    reader, writer = connection
    writer.write(ASK)
    assert b"here" in await said(reader)


@pytest.mark.parametrize("limits", [Limits(idle_seconds=0.2), Limits(handshake_seconds=0.2)])
async def test_a_connection_that_says_nothing_is_cut_also_in_its_handshake(limits: Limits) -> None:
    async with served(limits, is_secure=limits.handshake_seconds == 0.2) as there:
        reader, _ = await there.open()
        await there.places(1)
        assert b"" == await said(reader)
        await there.places(0)


async def test_at_the_connection_limit_the_oldest_silent_connection_is_closed() -> None:
    async with served(Limits(connections=3)) as there:
        known = await there.open()
        await is_served(known)
        silent = [await there.open() for _ in range(2)]
        await there.places(3)
        later = await there.open()
        await is_served(later)
        assert b"" == await said(silent[0][0])
        await is_served(known)


async def test_headers_that_do_not_end_make_room() -> None:
    async with served(Limits(connections=2)) as there:
        known, drops = await there.open(), await there.open()
        await is_served(known)
        for byte in ASK[:10]:
            drops[1].write(bytes([byte]))
            await asyncio.sleep(0.01)
        later = await there.open()
        for each in (later, known):
            await is_served(each)
        assert b"" == await said(drops[0])


async def test_a_client_with_many_connections_takes_no_place_from_another_one() -> None:
    async with served(Limits(connections=4)) as there:
        known = await there.open(("127.0.0.2", 0))
        await is_served(known)
        half = await there.open(("127.0.0.2", 0))  # owes a request
        for _ in range(20):  # each of them is answered, so all are younger and none owes anything
            await is_served(await there.open())
        for each in (known, half):
            await is_served(each)


async def test_a_connection_that_was_opened_in_advance_serves_later() -> None:
    async with served(Limits()) as there:
        early = await there.open()
        await asyncio.sleep(0.4)
        await is_served(early)


async def test_bodies_that_never_arrive_block_no_other_client() -> None:
    begun = b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n"
    async with served(Limits(connections=3)) as there:
        slow = []
        for _ in range(3):
            reader, writer = await there.open()
            writer.write(begun)
            await there.is_asked.wait()
            there.is_asked.clear()
            slow.append(reader)
        await is_served(await there.open())
        assert b"" == await said(slow[0])


async def test_a_whole_body_that_came_in_pieces_is_answered() -> None:
    async with served(Limits(connections=1)) as there:
        reader, writer = await there.open()
        writer.write(b"POST /body HTTP/1.1\r\nHost: x\r\nContent-Length: 4\r\n\r\n")
        for _ in range(4):
            await asyncio.sleep(0.1)
            writer.write(b"x")
        assert b"4 bytes" in await said(reader)


async def test_a_client_that_does_not_read_the_response_is_disconnected_after_a_while() -> None:
    async with served(Limits(connections=1, answer_seconds=0.3)) as there:
        deaf = await there.open()
        deaf[1].write(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        await there.is_asked.wait()
        early = await there.open()
        assert b"" == await said(early[0])
        await asyncio.sleep(0.4)
        await is_served(await there.open())


async def test_of_idle_connections_the_one_that_was_used_last_stays() -> None:
    async with served(Limits(connections=2)) as there:
        first, second = await there.open(), await there.open()
        for each in (first, second, first):
            await is_served(each)
        await there.open()
        assert b"" == await said(second[0])
        await is_served(first)


async def test_a_request_under_way_keeps_its_place_and_who_comes_too_late_is_sent_away() -> None:
    async with served(Limits(connections=1)) as there:
        busy = await there.open()
        busy[1].write(SLOW)
        await there.is_asked.wait()
        late = await there.open()
        assert b"" == await said(late[0])
        await asyncio.sleep(0.3)
        there.go_on.set()
        assert b"late" in await said(busy[0])


async def test_a_handshake_can_lose_its_place_too() -> None:
    async with served(Limits(connections=2), is_secure=True) as there:
        first, *_ = [await there.open() for _ in range(5)]
        assert b"" == await said(first[0])
        await there.places(2)


async def test_every_interface_may_be_meant() -> None:
    gate = ConnectionLimit(web.Application())
    port = await gate.listen((None, 0))
    _, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.close()
    await gate.close()


@pytest.mark.parametrize("turns", range(8))
async def test_no_connection_is_lost_when_the_server_ends_in_the_moment_it_is_accepted(turns: int) -> None:
    gate = ConnectionLimit(web.Application())
    port = await gate.listen(("127.0.0.1", 0))
    await asyncio.sleep(0.01)
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        with socket.create_connection(("127.0.0.1", port)):
            for _ in range(turns):
                await asyncio.sleep(0)
            await gate.close()
        gc.collect()
    assert [] == [str(each.message) for each in seen]


@pytest.mark.parametrize("host", ["127.0.0.1", "no such host.invalid"])
async def test_an_address_that_cannot_be_had_is_named(host: str) -> None:
    async with served(Limits()) as there:
        gate = ConnectionLimit(web.Application())
        with pytest.raises(ConfigError, match="cannot listen"):
            await gate.listen((host, there.port))
        await gate.close()


async def test_what_is_open_ends_when_its_request_is_answered() -> None:
    async with served(Limits()) as there:
        busy, idle = await there.open(), await there.open()
        busy[1].write(SLOW)
        await there.is_asked.wait()
        closing = asyncio.create_task(there.gate.close())
        await asyncio.sleep(0.1)
        there.go_on.set()
        assert b"late" in await said(busy[0])
        await closing
        assert b"" == await said(idle[0])
        with pytest.raises(OSError, match=r"(?i)connect|refused"):
            await there.open()
