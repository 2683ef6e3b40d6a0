"""A start without an API server waits in the process, and who the operator is has to be known."""

import asyncio
from typing import Any

import aiohttp
import pytest

from devcluster.layout import free_ports
from dynamo_operator.process.startup import PATIENCE_SECONDS, prepared, retried_until_reachable, until_stopped
from dynamo_operator.settings import HealthSettings, RenderSettings, Settings
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.errors import ConfigError, Forbidden, OperatorError, Unreachable, Untrusted
from reviews.asking import token
from scripted.transport import answer
from simulated.clock import on_simulated_clock

SUBJECT = "system:serviceaccount:dyn:operator"
NO_PROBES = Settings(health=HealthSettings(bind_address="0"))


class Server:
    """An API server that is away until a moment, and may keep to itself who asks."""

    def __init__(self, *, away_seconds: float = 0.0, review: int = 201) -> None:
        self.away_seconds = away_seconds
        self.review = review
        self.requests = 0

    async def send(self, request: Request) -> Answer:
        self.requests += 1
        if asyncio.get_running_loop().time() < self.away_seconds:
            raise Unreachable("connection refused")
        body: Any = {}
        status = 200
        if request.path.endswith("selfsubjectreviews"):
            status = self.review
            body = {"metadata": {}, "status": {"userInfo": {"username": SUBJECT}}}
        return answer(status, body if status < 300 else {"message": "no", "code": status})


@on_simulated_clock
async def test_a_start_survives_fifteen_minutes_without_an_api_server_and_no_more() -> None:
    server = Server(away_seconds=14 * 60)
    settings, _, user = await prepared(Client(server), Settings(), "")
    assert (SUBJECT, "dyn/operator") == (user, settings.render.operator_account)
    assert server.requests < 14 * 60, "it does not ask all the time"
    began = asyncio.get_running_loop().time()
    with pytest.raises(Unreachable, match="refused"):
        await prepared(Client(Server(away_seconds=10**6)), Settings(), "")
    assert asyncio.get_running_loop().time() - began <= PATIENCE_SECONDS + 30


@pytest.mark.parametrize("error", [Forbidden(403, "Forbidden", "no"), Untrusted("verify failed")], ids=repr)
@on_simulated_clock
async def test_what_a_retry_does_not_mend_is_not_waited_out(error: OperatorError) -> None:
    async def refused() -> None:
        raise error

    with pytest.raises(type(error)):
        await retried_until_reachable(refused)
    assert 0 == asyncio.get_running_loop().time()


@pytest.mark.parametrize("code", [403, 404])
@on_simulated_clock
async def test_where_the_api_server_does_not_say_the_own_token_does(code: int) -> None:
    client = Client(Server(review=code))
    settings, _, user = await prepared(client, Settings(), token(sub=SUBJECT))
    assert (SUBJECT, "dyn/operator") == (user, settings.render.operator_account)


@on_simulated_clock
async def test_an_operator_with_an_unknown_service_account_does_not_start() -> None:
    client = Client(Server(review=404))
    for header in ("", "Basic YTpi", token(sub="alice"), "Bearer a.b.c", "Bearer opaque"):
        with pytest.raises(ConfigError, match="--operator-account"):
            await prepared(client, Settings(), header)
    given = Settings(render=RenderSettings(operator_account="dyn/other"))
    settings, _, user = await prepared(client, given, "")
    assert ("", "dyn/other") == (user, settings.render.operator_account)


async def test_probes_are_answered_while_the_api_server_is_away() -> None:
    (port,) = free_ports(1)
    settings = Settings(health=HealthSettings(bind_address=f"127.0.0.1:{port}"))
    done = asyncio.Event()
    waiting = asyncio.create_task(until_stopped(done.wait(), asyncio.Event(), settings))
    async with aiohttp.ClientSession(f"http://127.0.0.1:{port}") as session:
        for path, status in (("/healthz", 200), ("/readyz", 500)):
            async with asyncio.timeout(10):
                while True:
                    try:
                        async with session.get(path) as response:
                            assert status == response.status
                            break
                    except aiohttp.ClientConnectorError:
                        await asyncio.sleep(0.01)
    done.set()
    assert await waiting


async def test_a_stop_ends_the_waiting() -> None:
    stop = asyncio.Event()
    waiting = asyncio.create_task(until_stopped(asyncio.Event().wait(), stop, NO_PROBES))
    await asyncio.sleep(0)
    stop.set()
    assert await waiting is None


async def test_a_used_port_of_the_probes_is_reported_at_once() -> None:
    (port,) = free_ports(1)
    settings = Settings(health=HealthSettings(bind_address=f"127.0.0.1:{port}"))
    taken = await asyncio.start_server(lambda _reader, _writer: None, "127.0.0.1", port)
    async with taken:
        with pytest.raises(ConfigError, match="cannot listen: Address already in use"):
            await until_stopped(asyncio.Event().wait(), asyncio.Event(), settings)
