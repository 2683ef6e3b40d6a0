"""Probes and metrics over HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import pytest
from prometheus_client import CollectorRegistry, Counter

from dynamo_operator.observability import (
    Address,
    HttpServer,
    health_server,
    listen_address,
    metrics_server,
)
from kube_runtime.controller.manager import Health
from kube_runtime.errors import ConfigError

ANY = Address("127.0.0.1", 0)
WELL = Health(())
ILL = Health(("pods: not listed yet", "starting"))


@asynccontextmanager
async def running(server: HttpServer, scheme: str = "http") -> AsyncIterator[aiohttp.ClientSession]:
    task = asyncio.create_task(server.run())
    listening = asyncio.create_task(server.listening.wait())
    await asyncio.wait({task, listening}, return_when=asyncio.FIRST_COMPLETED)
    if task.done():
        listening.cancel()
        await task
    try:
        base = f"{scheme}://127.0.0.1:{server.port}"
        connector = aiohttp.TCPConnector(ssl=False)
        async with aiohttp.ClientSession(base, connector=connector) as session:
            yield session
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def health(alive: Health = WELL, ready: Health = WELL) -> HttpServer:
    return health_server(ANY, alive=lambda: alive, ready=lambda: ready)


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/healthz/healthz", "/readyz/readyz"])
async def test_a_probe_that_is_well_says_ok(path: str) -> None:
    async with running(health()) as session, session.get(path) as answer:
        assert (200, "ok") == (answer.status, await answer.text())


async def test_a_probe_that_is_not_well_says_why() -> None:
    async with running(health(ready=ILL)) as session:
        async with session.get("/readyz") as answer:
            assert 500 == answer.status
            text = "[-]pods: not listed yet\n[-]starting\nreadyz check failed\n"
            assert text == await answer.text()
        async with session.get("/healthz") as answer:
            assert 200 == answer.status


async def test_a_probe_can_be_asked_for_more() -> None:
    async with running(health()) as session, session.get("/healthz?verbose") as answer:
        assert "healthz check passed\n" == await answer.text()


async def test_metrics_are_served_in_the_format_asked_for() -> None:
    registry = CollectorRegistry()
    Counter("things", "Things.", registry=registry).inc()
    async with running(metrics_server(ANY, registry)) as session:
        async with session.get("/metrics") as answer:
            assert "text/plain" == answer.content_type
            assert "things_total 1.0\n" in await answer.text()
        wanted = {"Accept": "application/openmetrics-text; version=1.0.0"}
        async with session.get("/metrics", headers=wanted) as answer:
            assert "application/openmetrics-text" == answer.content_type
            assert (await answer.text()).endswith("# EOF\n")


async def test_an_address_in_use_is_named() -> None:
    server = health()
    async with running(server):
        again = health_server(
            Address("127.0.0.1", server.port), alive=lambda: WELL, ready=lambda: WELL
        )
        expected = f"127.0.0.1:{server.port}: cannot listen: Address already in use"
        with pytest.raises(ConfigError, match=expected):
            await again.run()


async def test_a_host_that_does_not_exist_is_named() -> None:
    server = health_server(Address("203.0.113.1", 1), alive=lambda: WELL, ready=lambda: WELL)
    with pytest.raises(ConfigError, match=r"203\.0\.113\.1:1: cannot listen"):
        await server.run()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":8080", Address(None, 8080)),
        ("127.0.0.1:8080", Address("127.0.0.1", 8080)),
        ("[::1]:8080", Address("::1", 8080)),
        ("0.0.0.0:0", Address("0.0.0.0", 0)),  # noqa: S104  not listened on
        ("0", None),
        ("", None),
    ],
)
def test_addresses_are_written_as_in_go(text: str, expected: Address | None) -> None:
    assert expected == listen_address("--metrics-bind-address", text)


@pytest.mark.parametrize("text", ["8080", "localhost", ":http", ":99999", "a:-1"])
def test_a_wrong_address_blames_its_setting(text: str) -> None:
    with pytest.raises(ConfigError, match="--metrics-bind-address: expected HOST:PORT"):
        listen_address("--metrics-bind-address", text)
