"""Metrics are for clients that the API server authorizes, and others cost it little."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field

import aiohttp
import pytest
from prometheus_client import CollectorRegistry

from dynamo_operator.admission.certificates import MetricsCertificate, UnverifiedStore
from dynamo_operator.observability import (
    FORBIDDEN,
    OK,
    UNAVAILABLE,
    UNKNOWN,
    Access,
    Address,
    metrics_server,
)
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.errors import Unreachable
from simulated.clock import on_simulated_clock

PROMETHEUS = "system:serviceaccount:monitoring:prometheus"


@dataclass
class Reviews:
    """An API server that knows two tokens; one of their owners may read metrics."""

    asked: list[str] = field(default_factory=list)
    subjects: list[dict[str, object]] = field(default_factory=list)
    is_away: bool = False
    may_nobody: bool = False
    go_on: asyncio.Event | None = None

    async def send(self, request: Request) -> Answer:
        assert request.body is not None
        self.asked.append(request.path.rpartition("/")[2])
        if self.go_on is not None:
            await self.go_on.wait()
        if self.is_away:
            raise Unreachable("away")
        spec = json.loads(request.body)["spec"]
        if request.path.endswith("tokenreviews"):
            status = self._whose(spec["token"])
        else:
            self.subjects.append(spec)
            is_for_metrics = spec["nonResourceAttributes"] == {"path": "/metrics", "verb": "get"}
            may = not self.may_nobody and spec["user"] == PROMETHEUS
            status = {"allowed": is_for_metrics and may}
        body = json.dumps({"metadata": {}, "spec": spec, "status": status}).encode()

        async def chunks() -> AsyncIterator[bytes]:
            yield body

        return Answer(201, {"content-type": "application/json"}, chunks())

    @staticmethod
    def _whose(token: str) -> dict[str, object]:
        users = {"prometheus": PROMETHEUS, "tenant": "system:serviceaccount:team-a:default"}
        if token not in users:
            return {"authenticated": False, "error": "unknown"}
        user = {"username": users[token], "uid": "7", "groups": ["g"], "extra": {"a": ["b"]}}
        return {"authenticated": True, "user": user}


def access(reviews: Reviews) -> Access:
    return Access(Client(reviews), "/metrics")


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("Bearer prometheus", OK),
        ("bearer  prometheus ", OK),
        ("Bearer tenant", FORBIDDEN),
        ("Bearer forged", UNKNOWN),
        ("Bearer", UNKNOWN),
        ("Bearer p\u00e9", UNKNOWN),
        ("Bearer " + "x" * 20_000, UNKNOWN),
        ("Basic cHJvbWV0aGV1cw==", UNKNOWN),
        ("", UNKNOWN),
    ],
)
async def test_only_who_may_read_them_is_let_in(header: str, expected: int) -> None:
    assert expected == await access(Reviews()).status(header)


async def test_all_that_is_known_of_a_user_is_asked_about() -> None:
    reviews = Reviews()
    await access(reviews).status("Bearer prometheus")
    found = {name: reviews.subjects[0][name] for name in ("user", "uid", "groups", "extra")}
    assert {"user": PROMETHEUS, "uid": "7", "groups": ["g"], "extra": {"a": ["b"]}} == found


async def test_answers_are_remembered_refusals_too() -> None:
    reviews = Reviews()
    asked = access(reviews)
    for _ in range(5):
        for token in ("prometheus", "tenant", "forged"):
            await asked.status(f"Bearer {token}")
    assert 5 == len(reviews.asked)


async def test_what_is_remembered_has_a_limit() -> None:
    reviews = Reviews()
    asked = access(reviews)
    for number in range(3000):
        await asked.status(f"Bearer {number}")
        await asyncio.sleep(0)
    assert 1024 == len(asked._refused)  # memory is what it is about


async def test_strangers_push_no_scraper_out_of_memory() -> None:
    reviews = Reviews()
    asked = access(reviews)
    assert OK == await asked.status("Bearer prometheus")
    for number in range(3000):
        await asked.status(f"Bearer {number}")
        await asyncio.sleep(0)
    del reviews.asked[:]
    assert OK == await asked.status("Bearer prometheus")
    assert [] == reviews.asked


@on_simulated_clock
async def test_a_scraper_whose_answer_ran_out_does_not_wait_among_strangers() -> None:
    reviews = Reviews()
    asked = access(reviews)
    assert OK == await asked.status("Bearer prometheus")
    await asyncio.sleep(90)
    reviews.go_on = asyncio.Event()
    tasks = [asyncio.create_task(asked.status(f"Bearer {number}")) for number in range(200)]
    await asyncio.sleep(1)
    scraper = asyncio.create_task(asked.status("Bearer prometheus"))
    await asyncio.sleep(1)
    assert 5 == len([each for each in reviews.asked if each == "tokenreviews"][1:])
    reviews.go_on.set()
    assert OK == await scraper
    await asyncio.gather(*tasks)


@on_simulated_clock
async def test_who_lost_the_right_is_refused_when_his_answer_has_run_out() -> None:
    reviews = Reviews()
    asked = access(reviews)
    assert OK == await asked.status("Bearer prometheus")
    reviews.may_nobody = True
    await asyncio.sleep(59)
    assert OK == await asked.status("Bearer prometheus")
    await asyncio.sleep(2)
    assert FORBIDDEN == await asked.status("Bearer prometheus")


async def test_many_strangers_at_once_do_not_become_many_requests() -> None:
    reviews = Reviews(go_on=asyncio.Event())
    asked = access(reviews)
    tasks = [asyncio.create_task(asked.status(f"Bearer {number}")) for number in range(200)]
    await asyncio.sleep(0.1)
    assert 4 == len(reviews.asked)
    assert reviews.go_on is not None
    reviews.go_on.set()
    found = await asyncio.gather(*tasks)
    assert {UNKNOWN: 32, UNAVAILABLE: 168} == {each: found.count(each) for each in set(found)}


async def test_nobody_is_let_in_while_the_api_server_is_away_and_that_is_not_remembered() -> None:
    reviews = Reviews(is_away=True)
    asked = access(reviews)
    assert UNAVAILABLE == await asked.status("Bearer prometheus")
    reviews.is_away = False
    assert OK == await asked.status("Bearer prometheus")


@asynccontextmanager
async def scraped(reviews: Reviews) -> AsyncIterator[aiohttp.ClientSession]:
    kept = MetricsCertificate(UnverifiedStore())
    server = metrics_server(
        Address("127.0.0.1", 0),
        CollectorRegistry(),
        certificate=kept.certificate,
        access=access(reviews),
    )
    tasks = [asyncio.create_task(each.run()) for each in (kept, server)]
    await kept.certificate.loaded.wait()
    await server.listening.wait()
    try:
        connector = aiohttp.TCPConnector(ssl=False)
        base = f"https://127.0.0.1:{server.port}"
        async with aiohttp.ClientSession(base, connector=connector) as session:
            yield session
    finally:
        for task in tasks:
            task.cancel()
            with suppress(asyncio.CancelledError):
                await task


@pytest.mark.parametrize(("token", "expected"), [("prometheus", 200), ("tenant", 403), ("", 401)])
async def test_metrics_over_tls_refuse_strangers(token: str, expected: int) -> None:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with scraped(Reviews()) as session, session.get("/metrics", headers=headers) as answer:
        assert expected == answer.status
        assert ("Bearer" if expected == 401 else None) == answer.headers.get("WWW-Authenticate")
        assert expected == 200 or not await answer.read()
