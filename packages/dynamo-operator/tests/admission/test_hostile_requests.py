"""Hostile requests to the port get a response, never a 500, and delay no other client."""

import asyncio
import io
import random
import time

import pytest

from reviews.asking import review
from reviews.mutation import mutated
from reviews.rows import graph
from reviews.serving import Running, running

GRAPHS = "/validate-nvidia-com-v1alpha1-dynamographdeployment"
MOST = 250


def odd_request(chance: random.Random) -> bytes:
    """A request that was a review before something happened to it."""
    body = bytearray(review(mutated(chance), mutated(chance) if chance.random() < 0.5 else None))
    for _ in range(chance.randrange(4)):
        place = chance.randrange(len(body))
        body[place : place + chance.randrange(3)] = chance.randbytes(chance.randrange(3))
    length = len(body) + chance.choice((0, 0, 0, -1, 5))
    lines = [
        f"POST {chance.choice((GRAPHS, GRAPHS, '/', '/%00', GRAPHS + '?a=%ff'))} HTTP/1.1",
        "Host: x",
        chance.choice(
            (
                "Content-Type: application/json",
                "Content-Type: application/json; charset=utf-16",
                "Content-Type: application/json; charset=no-such",
                "Content-Type: \xff",
                "X: y",
            )
        ),
        chance.choice((f"Content-Length: {length}", "Content-Length: x", "Transfer-Encoding: chunked")),
        chance.choice(("A: b", "Expect: 100-continue", "Expect: more", "Content-Encoding: br")),
        "Connection: close",
    ]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + bytes(body)


async def status_of(there: Running, sent: bytes) -> int:
    """The status of the answer; 0 if the connection was cut."""
    async with there.raw() as (reader, writer):
        writer.write(sent)
        if writer.can_write_eof():
            writer.write_eof()
        try:
            async with asyncio.timeout(8):
                line = await reader.readline()
        except (TimeoutError, ConnectionError):
            return 0
    return int(line.split()[1]) if line else 0


@pytest.mark.parametrize("batch", range(4))
async def test_nothing_that_is_sent_makes_a_500(batch: int, caplog: pytest.LogCaptureFixture) -> None:
    chance = random.Random(batch)  # noqa: S311  # the same in each run
    seen: set[int] = set()
    async with running() as there:
        for _ in range(MOST // 4):
            seen.add(await status_of(there, odd_request(chance)))
    assert 500 not in seen
    assert seen & {200, 400}
    assert "Traceback" not in caplog.text


async def sent(there: Running, body: bytes) -> int:
    headers = {"Content-Type": "application/json"}
    async with there.http.post(GRAPHS, data=io.BytesIO(body), headers=headers) as answer:
        return answer.status


async def test_a_large_review_holds_up_nobody() -> None:
    services = {
        f"w{number}": {
            "componentType": "worker",
            "envs": [{"name": f"V{index}", "value": "x" * 40} for index in range(900)],
            "extraPodSpec": {"mainContainer": {"image": "r/x:1"}},
        }
        for number in range(20)
    }
    large = review(graph(services), graph(services))
    assert len(large) > 2_000_000
    async with running() as there:
        asked = [asyncio.create_task(sent(there, large)) for _ in range(3)]
        longest, last = 0.0, time.monotonic()
        while not all(each.done() for each in asked):  # how late this is, is the point
            await asyncio.sleep(0.005)
            now = time.monotonic()
            longest, last = max(longest, now - last), now
        assert {200} == {each.result() for each in asked}
    # A whole review of this size takes seconds; the loop is never away for as long as that.
    assert longest < 1.0
