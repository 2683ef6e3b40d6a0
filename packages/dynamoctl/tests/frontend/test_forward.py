"""A local port that forwards to the frontend: requests of programs, and none of other web pages."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp
import msgspec
import pytest
from aiohttp import web
from yarl import URL

from dynamoctl.frontend.forward import application_of
from scripted.frontend import PROXY, Api


@asynccontextmanager
async def forwarding(api: Api) -> AsyncIterator[str]:
    runner = web.AppRunner(application_of(api.frontend, "devbox"))
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


async def test_a_local_port_hands_requests_on() -> None:
    api = Api(b'{"a":', b"1}", status=201)
    async with forwarding(api) as base, aiohttp.ClientSession() as session:
        async with session.post(f"{base}/v1/x?q=1&q=2&r", json={"b": 2}) as answer:
            assert (201, {"a": 1}) == (answer.status, await answer.json())
        outside = URL(f"{base}/v1/%2e%2e/secrets", encoded=True)
        async with session.get(outside) as answer:
            assert 400 == answer.status
    (request,) = api.asked
    assert ("POST", f"{PROXY}/v1/x?q=1&q=2&r") == (request.method, request.path)
    assert {"b": 2} == msgspec.json.decode(request.body or b"")


OTHERS = [
    {"Host": "rebound.example.com:8000"},
    {"Host": "127.0.0.1.example.com"},
    {"Host": "localhost@example.com"},
    {"Host": "[::1"},
    {"Host": ""},
    {"Origin": "https://example.com"},
    {"Origin": "http://127.0.0.1:1"},
    {"Origin": "null"},
    {"Host": "localhost:8000", "Origin": "https://localhost:8000"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Sec-Fetch-Site": "same-site"},
]
OWN = [
    {"Host": "localhost:8000"},
    {"Host": "LOCALHOST"},
    {"Host": "[::1]:8000"},
    {"Host": "192.0.2.7:8000"},
    {"Host": "devbox:8000"},
    {"Host": "localhost:8000", "Origin": "http://localhost:8000"},
    {"Sec-Fetch-Site": "none"},
]


@pytest.mark.parametrize("headers", [*OTHERS, *OWN])
async def test_programs_and_pages_of_the_port_itself_reach_the_frontend(headers: dict[str, str]) -> None:
    api = Api(b"{}")
    async with (
        forwarding(api) as base,
        aiohttp.ClientSession() as session,
        session.post(f"{base}/v1/x", data="{}", headers=headers) as answer,
    ):
        text = await answer.text()
    assert (200 if headers in OWN else 403, len(api.asked)) == (answer.status, headers in OWN)
    assert text == "{}" if headers in OWN else "refused" in text or "invalid Host" in text
