"""Each call to a worker ends in a reply, whatever the worker does."""

import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import pytest

from dynamo_operator.models import calls
from dynamo_operator.models.calls import LoraApi, understood, worker_api
from dynamo_operator.models.plan import Call, Ending, LoraVerb, Reply
from simulated.lora_worker import LoraWorker, Trouble

ADDRESS = "http://10.0.0.1:9090"
LOAD = Call(LoraVerb.LOAD, "org/support", "s3://weights/support")
UNLOAD = Call(LoraVerb.UNLOAD, "org/support")
LIST = Call(LoraVerb.LIST)


@asynccontextmanager
async def reaching(worker: LoraWorker, *, timeout_seconds: float = 5) -> AsyncIterator[LoraApi]:
    async with worker.serving(), worker_api(timeout_seconds, lambda _: worker.base) as api:
        yield api


async def test_an_adapter_is_loaded_listed_and_unloaded() -> None:
    worker = LoraWorker()
    async with reaching(worker) as api:
        assert Reply(Ending.DONE) == await api(ADDRESS, LOAD)
        assert {"org/support": "s3://weights/support"} == worker.loaded
        listed = await api(ADDRESS, LIST)
        assert Reply(Ending.DONE, loaded=frozenset({"org/support"})) == listed
        assert Reply(Ending.DONE) == await api(ADDRESS, UNLOAD)
        assert {} == worker.loaded
    assert ["POST /v1/loras", "GET /v1/loras", "DELETE /v1/loras/org/support"] == worker.asked


@pytest.mark.parametrize("trouble", [Trouble.NONE, Trouble.NO_ROUTE])
async def test_a_missing_lora_counts_as_unloaded(trouble: Trouble) -> None:
    async with reaching(LoraWorker(trouble=trouble)) as api:
        assert Reply(Ending.DONE) == await api(ADDRESS, UNLOAD)


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("a b", "/v1/loras/a%20b"),
        ("v1.2", "/v1/loras/v1.2"),
        ("a%2Fb", "/v1/loras/a%252Fb"),
        ("a?b#c", "/v1/loras/a%3Fb%23c"),
    ],
)
async def test_what_a_url_would_misread_is_encoded(name: str, path: str) -> None:
    worker = LoraWorker()
    async with reaching(worker) as api:
        await api(ADDRESS, Call(LoraVerb.UNLOAD, name))
    assert [f"DELETE {path}"] == worker.asked


@pytest.mark.parametrize("name", ["../../admin", "a/./b", ".."])
async def test_a_name_that_would_lead_elsewhere_is_not_sent(name: str) -> None:
    worker = LoraWorker()
    async with reaching(worker) as api:
        for verb in (LoraVerb.LOAD, LoraVerb.UNLOAD):
            assert Ending.FAILED is (await api(ADDRESS, Call(verb, name))).ending
    assert [] == worker.asked


@pytest.mark.parametrize(
    ("trouble", "ending", "message"),
    [
        (Trouble.ENGINE, Ending.FAILED, "download failed"),
        (Trouble.BROKEN, Ending.FAILED, "status 500: no"),
        (Trouble.NOT_ALLOWED, Ending.UNABLE, "cannot manage LoRAs: status 405"),
        (Trouble.NOT_IMPLEMENTED, Ending.UNABLE, "cannot manage LoRAs: status 501"),
        (Trouble.NO_ROUTE, Ending.UNABLE, "DYN_LORA_ENABLED"),
        (Trouble.HANGS, Ending.FAILED, "no answer within 2 seconds"),
        (Trouble.DROPS, Ending.FAILED, "no answer"),
        (Trouble.REDIRECTS, Ending.FAILED, "status 307"),
        (Trouble.TALKS, Ending.FAILED, "longer than"),
    ],
)
async def test_each_failure_of_a_worker_has_its_reply(trouble: Trouble, ending: Ending, message: str) -> None:
    worker = LoraWorker(trouble=trouble)
    limit = 2 if trouble is Trouble.HANGS else 60  # on a busy machine an answer takes a while
    async with reaching(worker, timeout_seconds=limit) as api:
        reply = await api(ADDRESS, LOAD)
    assert ending is reply.ending
    assert message in reply.message
    assert ["POST /v1/loras"] == worker.asked, "nothing is sent twice, and no redirect is followed"


async def test_a_success_without_json_is_a_success() -> None:
    async with reaching(LoraWorker(trouble=Trouble.STUTTERS)) as api:
        assert Ending.DONE is (await api(ADDRESS, LOAD)).ending
        assert None is (await api(ADDRESS, LIST)).loaded


async def test_an_unreachable_worker_is_a_failed_call() -> None:
    worker = LoraWorker()
    async with worker.serving():
        pass
    async with worker_api(60, lambda _: worker.base) as api:
        reply = await api(ADDRESS, LOAD)
    assert Ending.FAILED is reply.ending
    assert reply.message.startswith("no answer: ")


async def test_a_host_that_takes_no_connection_is_told_from_one_that_does_not_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(calls, "_CONNECT_SECONDS", 0.2)
    # A socket whose queue is full takes no connection, as a host that is gone does.
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen(0)
        host, port = listening.getsockname()
        with ExitStack() as waiting:
            for _ in range(4):
                each = waiting.enter_context(socket.socket())
                each.settimeout(0)
                each.connect_ex((host, port))
            async with worker_api(120, lambda _: f"http://{host}:{port}") as api:
                reply = await api(ADDRESS, LOAD)
    assert Ending.FAILED is reply.ending
    assert "connection refused or unreachable" in reply.message
    assert "120" not in reply.message


def test_what_a_worker_says_of_a_404_of_its_own_is_told() -> None:
    said = b'{"status": "error", "message": "no such weights"}'
    assert "cannot manage LoRAs: status 404: no such weights" == (
        understood(LoraVerb.LOAD, 404, said).message
    )


@pytest.mark.parametrize(
    "said",
    [
        "cannot read s3://AKIA123:to/p+secret@bucket/x",
        "403 for https://host/x?X-Amz-Signature=topsecret&y=1 today",
        "401 for https://topsecret@host/x",
        "Authorization: Bearer topsecret was refused",
        "the token hf_topsecretABCDEFGHIJKL is not valid",
    ],
)
def test_what_a_worker_says_is_told_without_credentials(said: str) -> None:
    body = json.dumps({"status": "error", "message": said}).encode()
    for status in (200, 500, 404):
        message = understood(LoraVerb.LOAD, status, body).message
        assert "secret" not in message
        assert message


def test_an_endless_text_of_a_worker_is_read_in_no_time() -> None:
    started = time.process_time()
    for text in ("a://b:", "http://", "x", "?", "s3://:@"):
        understood(LoraVerb.LOAD, 500, (text * 200_000).encode())
    assert time.process_time() - started < 5
