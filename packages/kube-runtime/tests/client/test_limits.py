"""No response fills the memory: bodies, errors, lists and lines have a limit, whatever the server sends."""

import asyncio
from collections.abc import AsyncIterator

import msgspec
import pytest

from kube_runtime.client.client import MOST_ANSWER_BYTES, MOST_ERROR_BYTES, Answer, Client, Request, lines
from kube_runtime.errors import ServerFailure, TooLarge, Unreachable
from kube_runtime.types.kinds import ConfigMap
from kube_runtime.types.meta import Key

MEBIBYTE = 1024 * 1024


class Endless:
    """Answers with a body without an end, and counts what was taken of it."""

    def __init__(self, status: int = 200) -> None:
        self.status, self.taken = status, 0

    async def send(self, request: Request) -> Answer:  # noqa: ARG002 - as in the protocol
        return Answer(self.status, {}, self._body())

    async def _body(self) -> AsyncIterator[bytes]:
        while True:
            self.taken += MEBIBYTE
            yield b"x" * MEBIBYTE


async def test_an_object_has_a_limit_of_bytes() -> None:
    server = Endless()
    with pytest.raises(TooLarge, match=r"configmaps lab/a: .* more than 10485760 bytes"):
        await Client(server).get(ConfigMap, Key("lab", "a"))
    assert len(r"\u003c") * MEBIBYTE * 3 // 2 < server.taken <= MOST_ANSWER_BYTES + MEBIBYTE
    with pytest.raises(TooLarge, match="more than 1000 bytes"):
        await Client(server).get(ConfigMap, Key("lab", "a"), most_bytes=1000)


async def test_an_error_has_a_limit_of_bytes() -> None:
    server = Endless(status=501)
    with pytest.raises(ServerFailure):
        await Client(server).get(ConfigMap, Key("lab", "a"))
    assert server.taken <= MOST_ERROR_BYTES + MEBIBYTE


async def test_a_line_of_a_watch_has_a_limit_of_bytes() -> None:
    server = Endless()
    with pytest.raises(Unreachable, match="line of more than"):
        await anext(lines(server._body()))
    assert server.taken <= MOST_ANSWER_BYTES + MEBIBYTE


_DATA = b'"data":{"a":"' + b"x" * 1_000_000 + b'"}}'


class Fat:
    """Lists ConfigMaps of 1 MB in pages, as the API server does, and notes the largest response."""

    def __init__(self, count: int) -> None:
        self.count, self.limits, self.largest = count, list[int](), 0

    async def send(self, request: Request) -> Answer:
        limit, first = int(request.query["limit"]), int(request.query.get("continue", "0"))
        self.limits.append(limit)
        return Answer(200, {}, self._page(first, min(first + limit, self.count)))

    async def _page(self, first: int, end: int) -> AsyncIterator[bytes]:
        following = str(end) if end < self.count else ""
        yield msgspec.json.encode({"metadata": {"continue": following}})[:-1] + b',"items":['
        size = 0
        for number in range(first, end):
            await asyncio.sleep(0)
            start = f'{"," if number > first else ""}{{"metadata":{{"name":"c{number}"}},'
            text = start.encode() + _DATA
            size += len(text)
            self.largest = max(self.largest, size)
            yield text
        yield b"]}"


async def test_a_page_of_large_objects_has_fewer_of_them() -> None:
    server = Fat(40)
    names = [
        config_map.metadata.name
        async for page in Client(server).pages(ConfigMap)
        for config_map in page.items
    ]
    assert [f"c{number}" for number in range(40)] == names
    assert server.largest <= MOST_ANSWER_BYTES + 2 * MEBIBYTE
    assert [500, 62, 7, 7, 7, 7, 7, 7] == server.limits


async def test_one_object_that_exceeds_a_page_is_an_error() -> None:
    with pytest.raises(TooLarge, match="configmaps"):
        await anext(Client(Endless()).pages(ConfigMap))
