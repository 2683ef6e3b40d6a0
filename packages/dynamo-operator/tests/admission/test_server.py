"""The webhooks over HTTPS: reviews are answered, and everything else gets a 4xx."""

import asyncio
import io
import json
import random
import ssl
import time
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from dynamo_operator import labels
from dynamo_operator.admission.configuration import path_of
from dynamo_operator.admission.review import request_in
from dynamo_operator.admission.server import (
    ALL_BODIES,
    BURST,
    KEPT_SECONDS,
    LARGEST_BODY,
    MOST_REMEMBERED,
    PATH,
    REFILL_SECONDS,
    AccessReviews,
    Clients,
    TooManyAccessReviews,
)
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest
from dynamo_operator.versions.conversion import convert
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.crd import CONVERSION_PATH
from kube_runtime.errors import ConfigError, Unreachable
from reviews.asking import review, verdict
from reviews.mutation import mutated
from reviews.rows import adapted, graph, model, with_service
from reviews.rows import request as asked_for
from reviews.serving import Running, new_certificate, running
from scripted.server import Authority, Pair, an_authority
from scripted.transport import answer as answered
from simulated.clock import on_simulated_clock

GRAPHS = "/validate-nvidia-com-v1alpha1-dynamographdeployment"
MODELS = "/validate-nvidia-com-v1alpha1-dynamomodel"
REQUESTS = path_of(DynamoGraphDeploymentRequest.KIND)
JSON = {"Content-Type": "application/json"}
BAD = with_service(ingress={"enabled": True}, sharedMemory={})


async def reviewed(there: Running, path: str, *args: Any, **request: Any) -> Any:
    status, body = await there.post(path, review(*args, **request))
    assert 200 == status, body
    return json.loads(body)["response"]


def sample(there: Running, name: str, **labels: str) -> float | None:
    return there.registry.get_sample_value(f"dynamo_operator_webhook_{name}", labels)


async def test_an_answer_has_the_decision_all_problems_and_warnings() -> None:
    async with running() as there:
        response = await reviewed(there, GRAPHS, graph())
        assert {"uid": "705ab4f5-6393-11e8-b7cc-42010a800002", "allowed": True} == response
        response = await reviewed(there, GRAPHS, BAD)
        assert not response["allowed"]
        text = (
            "spec.services[w].ingress.host is required when ingress is enabled\n"
            "spec.services[w].sharedMemory.size is required when disabled is false"
        )
        assert {"code": 403, "reason": "Forbidden", "message": text} == response["status"]
        response = await reviewed(there, GRAPHS, with_service(dynamoNamespace="team"))
        assert (True, 1) == (response["allowed"], len(response["warnings"]))
        # Deletions and subresources store no spec.
        assert (await reviewed(there, GRAPHS, None, BAD, operation="DELETE"))["allowed"]
        assert (await reviewed(there, GRAPHS, BAD, subResource="status"))["allowed"]


async def test_a_namespace_that_another_operator_looks_after_is_left_to_it() -> None:
    async with running(is_excluded=lambda namespace: namespace == "lab") as there:
        assert (await reviewed(there, GRAPHS, BAD))["allowed"]
        assert not (await reviewed(there, GRAPHS, BAD, namespace="other"))["allowed"]
        labels = {"resource_type": "DynamoGraphDeployment", "operation": "CREATE", "result": "allowed"}
        assert 1 == sample(there, "requests_total", **labels)


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
async def test_a_body_that_is_not_a_review_is_a_400(body: bytes, content_type: str) -> None:
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


async def test_a_new_certificate_serves_new_connections_and_old_ones_continue() -> None:
    async with running() as there:
        assert (await reviewed(there, GRAPHS, graph()))["allowed"]
        before, newer = there.certificate.pair, new_certificate()
        assert before is not None
        with pytest.raises(ssl.SSLError):  # without its key
            await there.certificate.load(type(before)(newer.serving.certificate, before.key))
        assert before == there.certificate.pair
        await there.certificate.load(newer.serving)
        assert (await reviewed(there, GRAPHS, graph()))["allowed"]  # the connection that was open
        trust = ssl.create_default_context(cadata=newer.authorities.decode())
        url = f"https://127.0.0.1:{there.server.port}{GRAPHS}"
        async with (
            aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=trust)) as session,
            session.post(url, data=review(graph()), headers=JSON) as answer,
        ):
            assert 200 == answer.status


async def test_a_stopping_server_answers_and_then_closes_its_connections() -> None:
    async with running(drain_seconds=0.5) as there:
        there.task.cancel()
        await asyncio.sleep(0)
        async with there.http.post(GRAPHS, data=review(graph()), headers=JSON) as answer:
            assert 200 == answer.status
            assert "close" == answer.headers["Connection"]


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
    async with aiohttp.ClientSession(connector=aiohttp.TCPConnector(ssl=context)) as session:
        try:
            url = f"https://127.0.0.1:{there.server.port}{GRAPHS}"
            async with session.post(url, data=review(graph()), headers=JSON) as answer:
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
        await there.certificate.load(pair, "# Főtanúsítvány\n".encode() + other.pem)
        assert 0 == await status_with(there, ours.issue("kube-apiserver"))
        assert 200 == await status_with(there, other.issue("kube-apiserver"))
        with pytest.raises(ssl.SSLError):
            await there.certificate.load(pair, b"-----BEGIN CERTIFICATE-----\nno\n")
        assert 200 == await status_with(there, other.issue("kube-apiserver"))
        await there.certificate.load(pair, None)
        assert 0 == await status_with(there, other.issue("kube-apiserver")), "without a client CA nobody"


@pytest.mark.parametrize("content", [None, b"", b"no certificate"])
async def test_a_client_ca_that_cannot_be_read_names_its_file(tmp_path: Path, content: bytes | None) -> None:
    file = tmp_path / "ca.crt"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigError, match=r"ca\.crt"):
        await Clients(file).authorities()


MOST = 250
TYPES = ("application/json", "application/json; charset=utf-16", "application/json; charset=no-such", "\xff")


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
        f"{chance.choice(('Content-Type', 'X'))}: {chance.choice(TYPES)}",
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
    async with there.http.post(GRAPHS, data=io.BytesIO(body), headers=JSON) as answer:
        return answer.status


async def test_a_large_review_delays_no_other() -> None:
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
    # To validate objects of this size would take seconds; the loop is never away for as long as that.
    assert longest < 1.0


@dataclass
class Reviews:
    """An API server where alice may create graphs in `open` only."""

    asked: list[dict[str, Any]] = field(default_factory=list)
    is_away: bool = False

    async def send(self, request: Request) -> Answer:
        if self.is_away:
            raise Unreachable("away")
        spec = json.loads(request.body or b"")["spec"]
        self.asked.append(spec)
        where = spec["resourceAttributes"]
        allowed = spec["user"] == "alice" and where["namespace"] == "open"
        return answered(201, {"metadata": {}, "status": {"allowed": allowed}})


async def told(reviews: Reviews, namespace: str | None, before: str | None = None) -> list[str]:
    new = asked_for(deploymentOverrides={"namespace": namespace})
    old = asked_for(deploymentOverrides={"namespace": before}) if before else None
    found = request_in(review(new, old))
    return [str(each) for each in await AccessReviews(Client(reviews)).problems(found)]


async def test_another_namespace_needs_the_permission_to_create_graphs_there() -> None:
    reviews = Reviews()
    expected = f"{PATH} is team-b, where you may not create DynamoGraphDeployments"
    assert [expected] == await told(reviews, "team-b")
    assert [] == await told(reviews, "open")
    where = {"group": "nvidia.com", "resource": "dynamographdeployments", "verb": "create"}
    assert {**where, "namespace": "team-b"} == reviews.asked[0]["resourceAttributes"]
    assert ["system:authenticated"] == reviews.asked[0]["groups"]
    reviews.is_away = True
    (text,) = await told(reviews, "open")
    assert "could not check" in text


async def test_a_namespace_that_v1beta1_has_in_an_annotation_needs_it_too() -> None:
    wanted = convert(asked_for(deploymentOverrides={"namespace": "team-b"}), "nvidia.com/v1beta1")
    assert "deploymentOverrides" not in wanted["spec"]
    found = request_in(review(wanted, kind={"version": "v1beta1"}))
    (problem,) = await AccessReviews(Client(Reviews())).problems(found)
    assert f"{PATH} is team-b, where you may not create DynamoGraphDeployments" == str(problem)


async def test_an_object_in_v1beta1_is_validated_in_its_words() -> None:
    async with running() as there:
        later = convert(graph(), "nvidia.com/v1beta1")
        assert (await reviewed(there, GRAPHS, later, kind={"version": "v1beta1"}))["allowed"]
        main = later["spec"]["components"][0]["podTemplate"]["spec"]["containers"][0]
        del main["image"]
        response = await reviewed(there, GRAPHS, later, kind={"version": "v1beta1"})
        field = "spec.components[0].podTemplate.spec.containers[0].image"
        assert response["status"]["message"].startswith(f"{field}: ")


@pytest.mark.parametrize(
    ("namespace", "before"), [("lab", None), ("", None), (None, None), ("team-b", "team-b")]
)
async def test_the_own_namespace_and_an_unchanged_one_need_no_access_review(
    namespace: str | None, before: str | None
) -> None:
    reviews = Reviews()
    assert [] == await told(reviews, namespace, before)
    assert [] == reviews.asked
    assert [] != await told(reviews, "team-b", "open")


async def test_who_changes_what_will_run_over_there_is_asked_about_like_its_author() -> None:
    old = asked_for(deploymentOverrides={"namespace": "team-b"})
    labelled = {**old, "metadata": {**old["metadata"], "labels": {"a": "b"}}}
    elsewhere = AccessReviews(Client(Reviews()))
    assert () == await elsewhere.problems(request_in(review(labelled, old)))
    new = asked_for(deploymentOverrides={"namespace": "team-b", "workersImage": "evil:1"})
    (problem,) = await elsewhere.problems(request_in(review(new, old)))
    assert "where you may not create DynamoGraphDeployments" in str(problem)


async def test_who_changes_the_record_of_what_was_done_is_asked_about_too() -> None:
    """The operator acts on that annotation, so it decides what is created over there."""
    old = asked_for(deploymentOverrides={"namespace": "team-b"})
    for annotations in ({labels.REQUEST_RECORD: "{}"}, {labels.REQUEST_RECORD: 1}):
        new = {**old, "metadata": {**old["metadata"], "annotations": annotations}}
        for before, after in ((old, new), (new, old)):
            elsewhere = AccessReviews(Client(Reviews()))
            (problem,) = await elsewhere.problems(request_in(review(after, before)))
            assert "where you may not create DynamoGraphDeployments" in str(problem)


async def test_a_namespace_lease_of_a_tenant_does_not_skip_the_access_review() -> None:
    wanted = review(asked_for(deploymentOverrides={"namespace": "team-b"}))
    elsewhere = AccessReviews(Client(Reviews()))
    async with running(is_excluded=lambda namespace: namespace == "lab", elsewhere=elsewhere) as there:
        _, body = await there.post(REQUESTS, wanted)
    assert not json.loads(body)["response"]["allowed"]


def spec(user: str, namespace: str = "team-b") -> dict[str, Any]:
    return {"user": user, "resourceAttributes": {"namespace": namespace}}


@on_simulated_clock
async def test_access_reviews_are_limited_per_client_address() -> None:
    reviews = Reviews()
    questions = AccessReviews(Client(reviews))
    for number in range(BURST):
        assert not await questions.allowed(spec(f"u{number}"), "10.0.0.9")
    with pytest.raises(TooManyAccessReviews):
        await questions.allowed(spec("next"), "10.0.0.9")
    assert await questions.allowed(spec("alice", "open"), "10.0.0.1"), "another address"
    await asyncio.sleep(REFILL_SECONDS)
    assert not await questions.allowed(spec("next"), "10.0.0.9")
    assert BURST + 2 == len(reviews.asked)
    known = AccessReviews(Client(reviews), are_clients_known=True)
    for number in range(3 * BURST):
        assert not await known.allowed(spec(f"u{number}"), "10.0.0.9")


@on_simulated_clock
async def test_an_answer_counts_for_a_moment_and_is_of_one_user() -> None:
    reviews = Reviews()
    questions = AccessReviews(Client(reviews))
    for _ in range(50):
        assert await questions.allowed(spec("alice", "open"), "10.0.0.1")
    assert not await questions.allowed(spec("bob", "open"), "10.0.0.1")
    assert 2 == len(reviews.asked)
    await asyncio.sleep(KEPT_SECONDS)
    assert await questions.allowed(spec("alice", "open"), "10.0.0.1")
    assert 3 == len(reviews.asked)


async def test_320_reviews_of_one_client_cause_at_most_20_access_reviews() -> None:
    reviews = Reviews()
    wanted = asked_for(deploymentOverrides={"namespace": "open"})
    started = asyncio.get_running_loop().time()
    async with running(elsewhere=AccessReviews(Client(reviews))) as there:
        bodies = [review(wanted, user=f"u{number}") for number in range(320)]
        answers = await asyncio.gather(*(there.post(REQUESTS, each) for each in bodies))
    refused = [body for status, body in answers if status == 200 and b'"allowed":true' in body]
    assert [] == refused
    seconds = asyncio.get_running_loop().time() - started
    assert len(reviews.asked) <= BURST + 1 + seconds / REFILL_SECONDS


async def test_nothing_is_asked_about_a_request_that_is_refused_anyway() -> None:
    reviews = Reviews()
    wanted = asked_for(backend="none", deploymentOverrides={"namespace": "open"})
    async with running(elsewhere=AccessReviews(Client(reviews))) as there:
        _, body = await there.post(REQUESTS, review(wanted, user="alice"))
    assert not json.loads(body)["response"]["allowed"]
    assert [] == reviews.asked


@on_simulated_clock
async def test_answers_and_clients_are_remembered_within_bounds() -> None:
    reviews = Reviews()
    questions = AccessReviews(Client(reviews))
    for number in range(MOST_REMEMBERED + 10):
        await asyncio.sleep(0)  # no answer of this server is waited for
        assert not await questions.allowed(spec(f"u{number}"), f"10.0.{number // 250}.{number % 250}")
    assert (MOST_REMEMBERED, MOST_REMEMBERED) == questions.remembered
    await questions.allowed(spec(f"u{MOST_REMEMBERED}"), "10.9.9.9")
    assert MOST_REMEMBERED + 10 == len(reviews.asked)
    await questions.allowed(spec("u0"), "10.9.9.9")
    assert MOST_REMEMBERED + 11 == len(reviews.asked)


def conversion(*objects: Any) -> bytes:
    request = {"uid": "u1", "desiredAPIVersion": "nvidia.com/v1beta1", "objects": objects}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
    return json.dumps({**head, "request": request}).encode()


def many_services(number: int) -> Any:
    document = graph()
    services = {f"w{index}": document["spec"]["services"]["w"] for index in range(20)}
    return {
        **document,
        "apiVersion": "nvidia.com/v1alpha1",
        "kind": "DynamoGraphDeployment",
        "metadata": {"namespace": "lab", "name": f"g{number}"},
        "spec": {"services": services},
    }


async def test_objects_are_converted_in_any_number_while_others_are_answered() -> None:
    async with running() as there:
        body = conversion(*map(many_services, range(500)))
        converting = asyncio.create_task(there.post(CONVERSION_PATH, body))
        longest, before = 0.0, time.monotonic()
        while not converting.done():
            await asyncio.sleep(0.001)
            longest, before = max(longest, time.monotonic() - before), time.monotonic()
        status, answer = await converting
        response = json.loads(answer)["response"]
        assert (200, "u1", "Success") == (status, response["uid"], response["result"]["status"])
        assert [f"g{number}" for number in range(500)] == [
            each["metadata"]["name"] for each in response["convertedObjects"]
        ]
        assert len(response["convertedObjects"][0]["spec"]["components"]) == 20
        assert longest < 0.5, "in one piece it takes more than a second"


async def test_an_object_that_cannot_be_converted_is_named() -> None:
    async with running() as there:
        bad = {**many_services(1), "spec": {"services": {"w": {"replicas": "x"}}}}
        status, answer = await there.post(CONVERSION_PATH, conversion(many_services(0), bad))
        result = json.loads(answer)["response"]["result"]
        assert (200, "Failure") == (status, result["status"])
        assert result["message"].startswith("DynamoGraphDeployment lab/g1: spec.services.w.replicas: ")


@pytest.mark.parametrize(
    ("body", "content_type"),
    [(b"{}", "application/json"), (b"", "application/json"), (conversion(), "text/plain")],
)
async def test_a_body_that_is_not_a_conversion_is_a_400(body: bytes, content_type: str) -> None:
    async with running() as there:
        assert 400 == (await there.post(CONVERSION_PATH, body, content_type))[0]
        assert 400 == (await there.post(GRAPHS, conversion()))[0]
