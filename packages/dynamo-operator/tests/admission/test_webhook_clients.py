"""Which clients the webhooks accept, and their limits."""

import asyncio
import ssl
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dynamo_operator.admission import server as webhook_server
from dynamo_operator.admission.decide import AT_ONCE, LARGE_REVIEW
from dynamo_operator.admission.server import Clients
from kube_runtime.controller.workers import WorkBusy, WorkEnded
from kube_runtime.errors import ConfigError
from reviews.asking import review
from reviews.rows import graph
from reviews.serving import Running, running
from scripted.server import Authority, Pair, an_authority

GRAPHS = "/validate-nvidia-com-v1alpha1-dynamographdeployment"
LARGE = graph({"w": {"annotations": {"a": "x" * LARGE_REVIEW}}})


async def status_with(there: Running, pair: Pair | None) -> int:
    """The status that a client with that certificate gets; 0 if the connection is refused."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if pair is not None:
        context.load_cert_chain(pair.certificate, pair.key)
    connector = aiohttp.TCPConnector(ssl=context)
    headers = {"Content-Type": "application/json"}
    async with aiohttp.ClientSession(connector=connector) as session:
        try:
            url = f"https://127.0.0.1:{there.server.port}{GRAPHS}"
            async with session.post(url, data=review(graph()), headers=headers) as answer:
                return answer.status
        except aiohttp.ClientError:
            return 0


def authorities(folder: Path) -> tuple[Authority, Authority]:
    """The client CA, and another one."""
    for name in ("ours", "other"):
        (folder / name).mkdir()
    return an_authority(folder / "ours"), an_authority(folder / "other")


async def test_with_a_client_ca_only_its_clients_get_past_the_handshake(tmp_path: Path) -> None:
    ours, other = authorities(tmp_path)
    async with running(clients=Clients(ours.file)) as there:
        assert 200 == await status_with(there, ours.issue("kube-apiserver"))
        assert 0 == await status_with(there, None)
        assert 0 == await status_with(there, other.issue("kube-apiserver"))


async def test_a_common_name_is_asked_for_on_top(tmp_path: Path) -> None:
    ours, _ = authorities(tmp_path)
    async with running(clients=Clients(ours.file, "kube-apiserver")) as there:
        assert 200 == await status_with(there, ours.issue("kube-apiserver"))
        assert 403 == await status_with(there, ours.issue("somebody"))


async def test_without_a_client_ca_a_certificate_changes_nothing(tmp_path: Path) -> None:
    ours, _ = authorities(tmp_path)
    async with running() as there:
        assert 200 == await status_with(there, None)
        assert 200 == await status_with(there, ours.issue("kube-apiserver"))


async def test_another_client_ca_counts_for_the_next_connection(tmp_path: Path) -> None:
    ours, other = authorities(tmp_path)
    async with running(clients=Clients(ours.file)) as there:
        pair = there.certificate.pair
        assert pair is not None
        await there.certificate.load(pair, other.pem)
        assert 0 == await status_with(there, ours.issue("kube-apiserver"))
        assert 200 == await status_with(there, other.issue("kube-apiserver"))
        with pytest.raises(ssl.SSLError):
            await there.certificate.load(pair, b"-----BEGIN CERTIFICATE-----\nno\n")
        assert 200 == await status_with(there, other.issue("kube-apiserver"))


async def test_a_server_that_has_no_client_ca_yet_lets_nobody_in(tmp_path: Path) -> None:
    ours, _ = authorities(tmp_path)
    async with running(clients=Clients(ours.file)) as there:
        pair = there.certificate.pair
        assert pair is not None
        await there.certificate.load(pair, None)
        assert 0 == await status_with(there, ours.issue("kube-apiserver"))


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
async def test_a_client_ca_that_cannot_be_read_names_its_file(
    tmp_path: Path, content: bytes | None
) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"ca\.crt"):
        await Clients(file).authorities()


async def test_a_review_that_takes_too_long_is_a_503_and_others_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(webhook_server, "REVIEW_SECONDS", 0.2)

    async def never(function: Any, args: Any, *, tenant: str, seconds: float) -> Any:
        await asyncio.Event().wait()

    async with running(submit=never) as there:
        large = [asyncio.create_task(there.post(GRAPHS, review(LARGE))) for _ in range(5)]
        assert 200 == (await there.post(GRAPHS, review(graph())))[0]
        assert {503} == {status for status, _ in await asyncio.gather(*large)}


async def test_an_object_that_is_too_expensive_is_refused_and_too_many_are_a_503() -> None:
    async def ended(function: Any, args: Any, *, tenant: str, seconds: float) -> Any:
        raise WorkEnded("time", "exceeded the limit of 2.5 s of CPU time")

    async def busy(function: Any, args: Any, *, tenant: str, seconds: float) -> Any:
        raise WorkBusy("too much waits")

    async with running(submit=ended) as there:
        status, body = await there.post(GRAPHS, review(LARGE))
        assert 200 == status
        assert b'"allowed":false' in body
        assert b"too expensive to validate" in body
    async with running(submit=busy) as there:
        assert 503 == (await there.post(GRAPHS, review(LARGE)))[0]


async def test_large_reviews_of_one_namespace_hold_up_another_one_by_one_review() -> None:
    order: list[str] = []
    begun, arrived = asyncio.Event(), asyncio.Event()

    def arrives(namespace: str) -> bool:
        """Called for each review right before it waits for its turn."""
        if namespace == "calm":
            arrived.set()
        return False

    async def held(function: Any, args: Any, *, tenant: str, seconds: float) -> Any:
        order.append(tenant.rpartition(" ")[2])
        if len(order) == AT_ONCE:
            begun.set()
        await arrived.wait()
        return await asyncio.to_thread(function, *args)

    async with running(submit=held, is_excluded=arrives) as there:
        loud = [there.post(GRAPHS, review(LARGE, namespace="loud")) for _ in range(12)]
        tasks = [asyncio.create_task(each) for each in loud]
        await begun.wait()
        calm = asyncio.create_task(there.post(GRAPHS, review(LARGE, namespace="calm")))
        assert {200} == {status for status, _ in await asyncio.gather(calm, *tasks)}
    assert order.index("calm") <= AT_ONCE + 1
