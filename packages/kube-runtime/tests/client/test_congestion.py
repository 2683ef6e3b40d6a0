"""Fewer requests at a time when the API server has too many, and more again when it has not."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from unittest.mock import Mock

import pytest

from kube_runtime.client.client import MOST_AT_ONCE, Answer, Congestion, Request, ensure_allowed
from kube_runtime.errors import OperatorError
from kube_runtime.types.kinds import Lease
from kube_runtime.wire import path_of, url_path
from simulated.clock import on_simulated_clock

pytestmark = pytest.mark.looptime

GRAPHS = Request("GET", url_path("apis", "nvidia.com", "v1alpha1", "dynamographdeployments", "a"))
WATCH = Request("GET", url_path("api", "v1", "pods"), {"watch": "true"}, timeout_seconds=None)
LEASE = Request("PUT", path_of(Lease.KIND, "a", "b"))


async def nothing() -> AsyncIterator[bytes]:
    """An empty body."""
    for chunk in list[bytes]():
        yield chunk


@dataclass
class Overloaded:
    """A transport that refuses requests while `room` of them are in progress; each takes a second."""

    room: int
    under_way: int = 0
    most: int = 0
    refused: int = 0
    paths: list[str] = field(default_factory=list[str])

    async def send(self, request: Request) -> Answer:
        self.paths.append(request.path)
        self.under_way += 1
        self.most = max(self.most, self.under_way)
        is_refused = self.under_way > self.room
        self.refused += is_refused
        try:
            await asyncio.sleep(1)
        finally:
            self.under_way -= 1
        return Answer(429 if is_refused else 200, {}, nothing())


async def ask(congestion: Congestion, times: int) -> None:
    """Ask until so many requests went through, 40 at a time."""
    left = iter(range(times))

    async def some() -> None:
        for _ in left:
            status = 0
            while status != 200:
                status = (await congestion.send(GRAPHS)).status
                await asyncio.sleep(0 if status == 200 else 0.1)

    await asyncio.gather(*(some() for _ in range(40)))


async def test_requests_do_not_wait_without_congestion() -> None:
    server = Overloaded(room=1000)
    await ask(Congestion(server), 400)
    assert (40, 0) == (server.most, server.refused)


async def test_refusals_become_few_when_there_is_room_for_few() -> None:
    server = Overloaded(room=5)
    congestion = Congestion(server)
    await ask(congestion, 40)
    assert congestion.limit <= 10
    refused = server.refused
    await ask(congestion, 400)
    assert server.refused - refused < 400 / 5


async def test_one_wave_of_refusals_halves_once() -> None:
    congestion = Congestion(Overloaded(room=0))
    await asyncio.gather(*(congestion.send(GRAPHS) for _ in range(40)))
    assert 20 == congestion.limit


async def test_it_gets_back_to_all_when_there_is_room_again() -> None:
    server = Overloaded(room=1)
    congestion = Congestion(server)
    await ask(congestion, 100)
    server.room = 1000
    await ask(congestion, 5000)
    assert 40 <= congestion.limit <= MOST_AT_ONCE


@pytest.mark.parametrize("request_", [WATCH, LEASE])
def test_watches_and_leases_never_wait(request_: Request) -> None:
    @on_simulated_clock
    async def scenario() -> None:
        server = Overloaded(room=1000)
        congestion = Congestion(server, most_at_once=1)
        waiting = [asyncio.create_task(congestion.send(GRAPHS)) for _ in range(3)]
        await asyncio.sleep(0.5)
        await congestion.send(request_)
        token = ensure_allowed.set(Mock(side_effect=OperatorError))
        with pytest.raises(OperatorError):
            await congestion.send(GRAPHS)  # not allowed any more when its turn comes
        ensure_allowed.reset(token)
        await asyncio.gather(*waiting)
        assert [GRAPHS.path, request_.path, GRAPHS.path, GRAPHS.path] == server.paths

    scenario()
