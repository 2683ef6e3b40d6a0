"""The webhooks over HTTPS: reviews are answered, and everything else gets a 4xx."""

import asyncio
import json
import socket
import ssl
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dynamo_operator.admission.server import ALL_BODIES, LARGEST_BODY, Clients
from kube_runtime.errors import ConfigError
from reviews.asking import review, verdict
from reviews.rows import adapted, graph, model, with_service
from reviews.serving import Running, new_certificate, running
from scripted.server import Authority, Pair, an_authority

GRAPHS = "/validate-nvidia-com-v1alpha1-dynamographdeployment"
MODELS = "/validate-nvidia-com-v1alpha1-dynamomodel"
JSON = {"Content-Type": "application/json"}
BAD = with_service(ingress={"enabled": True}, sharedMemory={})


async def reviewed(there: Running, path: str, *args: Any, **request: Any) -> Any:
    status, body = await there.post(path, review(*args, **request))
    assert 200 == status, body
    return json.loads(body)["response"]


def sample(there: Running, name: str, **labels: str) -> float | None:
    return there.registry.get_sample_value(f"dynamo_operator_webhook_{name}", labels)


async def test_a_good_object_is_allowed() -> None:
    async with running() as there:
        response = await reviewed(there, GRAPHS, graph())
        assert {"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "allowed": True} == response


async def test_a_refusal_has_all_problems_line_by_line() -> None:
    async with running() as there:
        response = await reviewed(there, GRAPHS, BAD)
        assert not response["allowed"]
        assert {
            "code": 403,
            "reason": "Forbidden",
            "message": "spec.services[w].ingress.host is required when ingress is enabled\n"
            "spec.services[w].sharedMemory.size is required when disabled is false",
        } == response["status"]


async def test_warnings_come_with_the_answer() -> None:
    async with running() as there:
        response = await reviewed(there, GRAPHS, with_service(dynamoNamespace="team"))
        assert response["allowed"]
        assert 1 == len(response["warnings"])


async def test_a_deletion_is_allowed_whatever_there_was() -> None:
    async with running() as there:
        assert (await reviewed(there, GRAPHS, None, BAD, operation="DELETE"))["allowed"]


async def test_subresources_are_not_judged() -> None:
    async with running() as there:
        assert (await reviewed(there, GRAPHS, BAD, subResource="status"))["allowed"]


async def test_a_namespace_that_another_operator_looks_after_is_left_to_it() -> None:
    async with running(is_excluded=lambda namespace: namespace == "lab") as there:
        assert (await reviewed(there, GRAPHS, BAD))["allowed"]
        assert not (await reviewed(there, GRAPHS, BAD, namespace="other"))["allowed"]
        counted = sample(
            there,
            "requests_total",
            resource_type="DynamoGraphDeployment",
            operation="CREATE",
            result="allowed",
        )
        assert 1 == counted


async def test_decisions_are_counted_with_their_reason() -> None:
    async with running() as there:
        await reviewed(there, GRAPHS, BAD)
        await reviewed(there, GRAPHS, adapted(3), adapted(1))
        await reviewed(there, MODELS, model(baseModelName="c"), model())
        await reviewed(there, GRAPHS, "text", operation="TRICK")
        for kind, operation, reason in (
            ("DynamoGraphDeployment", "CREATE", "required"),
            ("DynamoGraphDeployment", "UPDATE", "replicas_managed_by_adapter"),
            ("DynamoModel", "UPDATE", "immutable_field_changed"),
            ("DynamoGraphDeployment", "other", "decode_failed"),
        ):
            labels = {"resource_type": kind, "operation": operation}
            assert 1 == sample(there, "denials_total", **labels, reason=reason)
            assert sample(there, "duration_seconds_count", **labels)


@pytest.mark.parametrize(
    ("body", "content_type"),
    [
        (b"{}", "application/json"),
        (b"", "application/json"),
        (b"{", "application/json"),
        (b"\xff\xfe", "application/json"),
        (review(graph()), "text/plain"),
        (review(graph(), uid=""), "application/json"),
        (review(graph()).replace(b"admission.k8s.io/v1", b"admission.k8s.io/v2"), "application/json"),
        (review(graph(), userInfo=5), "application/json"),
        (b'{"request":' * 20_000, "application/json"),
    ],
    ids=["object", "empty", "cut", "bytes", "type", "uid", "version", "user", "deep"],
)
async def test_what_is_no_review_is_a_400(body: bytes, content_type: str) -> None:
    async with running() as there:
        assert 400 == (await there.post(GRAPHS, body, content_type))[0]


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        (413, {"Content-Length": str(LARGEST_BODY + 1)}),
        (411, {"Transfer-Encoding": "chunked"}),
        (415, {"Content-Length": "9", "Content-Encoding": "gzip"}),
        (400, {"Content-Length": "9", "Content-Type": "text/plain"}),
    ],
    ids=["large", "unknown length", "packed", "type"],
)
async def test_what_no_api_server_sends_is_refused_before_its_body_is_read(
    status: int, headers: dict[str, str]
) -> None:
    async with running() as there, there.raw() as (reader, writer):
        lines = {"Host": "x", "Content-Type": "application/json", **headers}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"POST {GRAPHS} HTTP/1.1\r\n{head}\r\n".encode())
        answer = await reader.readline()
        assert f"HTTP/1.1 {status}" == answer.decode()[:12]


async def test_bodies_that_are_too_much_together_are_sent_back() -> None:
    head = f"POST {GRAPHS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    head += f"Content-Length: {LARGEST_BODY}\r\n\r\n"
    async with running() as there, AsyncExitStack() as stack:
        for _ in range(ALL_BODIES // LARGEST_BODY):
            _, writer = await stack.enter_async_context(there.raw())
            writer.write(head.encode())
        await asyncio.sleep(0.3)
        reader, writer = await stack.enter_async_context(there.raw())
        writer.write(head.encode())
        assert b"HTTP/1.1 503" == (await reader.readline())[:12]
        # Usual reviews are still answered.
        assert (await reviewed(there, GRAPHS, graph()))["allowed"]


async def test_other_paths_and_methods_are_4xx() -> None:
    async with running() as there:
        assert 404 == (await there.post("/", review(graph())))[0]
        async with there.http.get(GRAPHS) as answer:
            assert 405 == answer.status


@pytest.mark.parametrize("depth", [500, 5_000, 100_000])
async def test_an_object_that_is_nested_too_deeply_is_no_500(depth: int) -> None:
    deep = b'{"a":' * depth + b"1" + b"}" * depth
    body = review({"spec": {"services": {"w": {"extraPodSpec": 7}}}}).replace(b"7", deep, 1)
    async with running() as there:
        status, answer = await there.post(GRAPHS, body)
        assert status in (200, 400)
        assert 400 == status or b'"allowed":false' in answer


async def test_tls_older_than_1_2_is_refused() -> None:
    async with running() as there:
        old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
        old.set_ciphers("DEFAULT:@SECLEVEL=0")
        with pytest.warns(DeprecationWarning, match="TLSv1_1"):
            old.maximum_version = ssl.TLSVersion.TLSv1_1
        with pytest.raises(OSError, match=r"(?i)protocol|version|alert|eof"):
            await asyncio.open_connection("127.0.0.1", there.server.port, ssl=old)


async def test_a_new_certificate_serves_new_connections_and_the_old_ones_go_on() -> None:
    async with running() as there:
        assert (await reviewed(there, GRAPHS, graph()))["allowed"]
        newer = new_certificate()
        await there.certificate.load(newer.serving)
        assert (await reviewed(there, GRAPHS, graph()))["allowed"]  # the connection that was open
        trust = ssl.create_default_context(cadata=newer.authorities.decode())
        connector = aiohttp.TCPConnector(ssl=trust)
        base = f"https://127.0.0.1:{there.server.port}"
        async with (
            aiohttp.ClientSession(base, connector=connector) as session,
            session.post(
                GRAPHS, data=review(graph()), headers={"Content-Type": "application/json"}
            ) as answer,
        ):
            assert 200 == answer.status


async def test_a_certificate_without_its_key_leaves_the_one_before() -> None:
    async with running() as there:
        before, other = there.certificate.pair, new_certificate()
        assert before is not None
        mixed = type(before)(other.serving.certificate, before.key)
        with pytest.raises(ssl.SSLError):
            await there.certificate.load(mixed)
        assert before == there.certificate.pair
        assert (await reviewed(there, GRAPHS, graph()))["allowed"]


async def test_a_server_that_ends_still_answers_and_then_lets_go() -> None:
    async with running(drain_seconds=0.5) as there:
        there.task.cancel()
        await asyncio.sleep(0)
        async with there.http.post(GRAPHS, data=review(graph()), headers=JSON) as answer:
            assert 200 == answer.status
            assert "close" == answer.headers["Connection"]


async def test_a_stranger_who_speaks_no_tls_disturbs_nobody() -> None:
    async with running() as there:
        with socket.create_connection(("127.0.0.1", there.server.port)) as stranger:
            stranger.sendall(b"GET / HTTP/1.1\r\n\r\n")
            assert (await reviewed(there, GRAPHS, graph()))["allowed"]


async def test_thousands_of_problems_make_no_answer_of_megabytes() -> None:
    many = graph({"w": {"labels": {f"a{number}": "b c" for number in range(3000)}}})
    long = model(modelType="lora", source={"uri": "x" * 100_000})
    async with running() as there:
        message = (await reviewed(there, GRAPHS, many))["status"]["message"]
        more = "spec: more than 100 problems; the others are not listed"
        assert (100, more) == (len(message.splitlines()), message.splitlines()[-1])
        assert len((await reviewed(there, MODELS, long))["status"]["message"]) < 1100


def test_a_large_object_that_does_not_fit_its_type_is_judged_quickly() -> None:
    odd = graph({"w": {**{f"field{number}": 1 for number in range(3_000)}, "replicas": "x"}})
    found = verdict(odd)
    assert "decode_failed" == found.reason
    assert ["spec.services[...].replicas"] == [each.path for each in found.problems]


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
async def test_a_client_ca_that_cannot_be_read_names_its_file(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"ca\.crt"):
        await Clients(file).authorities()
