"""The frontend behind the API server's proxy: responses as they stream in, and no way out of the Service."""

import json
from itertools import count

import pytest

from dynamo_graphs.frontend import Completion, Conversation, completion, frontend_of, served_model
from dynamo_graphs.reader import Missing, Reading, Target
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.commandline import NESTING_LIMIT
from kube_runtime.errors import Invalid, NotFound, ServerFailure
from kube_runtime.types.kinds import Service
from kube_runtime.types.meta import Key, Object
from kube_runtime.wire import path_of
from scripted.frontend import PROXY, Api
from simulated.server import Server


def event(**fields: object) -> bytes:
    return b"data: " + json.dumps(fields).encode() + b"\n\n"


def token(text: str) -> bytes:
    return event(choices=[{"delta": {"content": text}}])


async def asked(api: Api) -> tuple[Completion, list[str]]:
    written: list[str] = []
    ticks = count()
    messages: list[Object] = [{"role": "user", "content": "hi"}]
    found = await completion(
        *(api.frontend, "m", messages), max_tokens=8, write=written.append, clock=lambda: float(next(ticks))
    )
    return found, written


async def test_tokens_that_decode_to_no_text_are_counted_and_timed() -> None:
    end = event(choices=[{"delta": {}, "finish_reason": "length"}])
    usage = event(choices=[], usage={"completion_tokens": 2})
    found, written = await asked(Api(token(""), token(""), end, usage, b"data: [DONE]\n"))
    assert [] == written
    assert Completion("", 2, 1.0, 2.0) == found
    assert found.summary().startswith("2 tokens in 2.00 s: first after 1000 ms")


async def test_an_answer_streams_in_and_is_timed() -> None:
    usage = event(choices=[], usage={"completion_tokens": 5})
    api = Api(token("Hel"), token("lo")[:9], token("lo")[9:], usage, b"data: [DONE]\n")
    found, written = await asked(api)
    assert ["Hel", "lo"] == written
    assert Completion("Hello", 5, 1.0, 2.0) == found
    assert "5 tokens in 2.00 s: first after 1000 ms, 4.0 tokens/s" == found.summary()
    body = json.loads(api.asked[0].body or b"")
    assert (True, 8) == (body["stream"], body["max_tokens"])
    assert f"{PROXY}/v1/chat/completions" == api.asked[0].path


async def test_an_answer_without_tokens() -> None:
    found, _ = await asked(Api(b": comment\n", b"data: [DONE]\n"))
    assert "no tokens in 0.00 s" == found.summary()


@pytest.mark.parametrize(
    ("chunks", "requests"),
    [((b"data: [DONE]\n",), 2), ((token("Hello"), b"data: [DONE]\n"), 1), ((token(""), token("")), 1)],
    ids=["empty", "text", "tokens without text"],
)
async def test_an_answer_that_its_first_token_ends_is_asked_for_once_more(
    chunks: tuple[bytes, ...], requests: int
) -> None:
    usage = event(choices=[], usage={"completion_tokens": len(chunks)})
    api = Api(usage, *chunks)
    talk = Conversation(api.frontend, "m")
    await talk.ask("hi", max_tokens=8, write=lambda _: None)
    assert requests == len(api.asked)
    assert ["user", "assistant"] == [message["role"] for message in talk.messages]


DEEP = b'{"a":' * 2 * NESTING_LIMIT
NOBODY = b'{"kind":"Status","code":503,"message":"no endpoints available for service"}'


@pytest.mark.parametrize(
    ("api", "text"),
    [
        (Api(NOBODY, status=503), "no endpoints available"),
        (Api(event(error="out of memory")), "out of memory"),
        *((Api(b"data: " + it + b"\n"), "unreadable data") for it in (b"{", b"\xff", DEEP)),
    ],
    ids=["no workers", "error", "half", "no UTF-8", "deep"],
)
async def test_a_failure_of_the_frontend(api: Api, text: str) -> None:
    with pytest.raises(ServerFailure, match=text):
        await asked(api)


@pytest.mark.parametrize(
    "chunk",
    [{"choices": ["x"]}, {"choices": 5}, {"choices": [{"delta": 5}]}, {"usage": {"completion_tokens": "x"}}],
)
async def test_a_chunk_of_another_form_has_no_text(chunk: Object) -> None:
    completion, written = await asked(Api(event(**chunk)))
    assert ([], "") == (written, completion.text)


async def test_the_default_model_is_the_first_that_is_served() -> None:
    api = Api(b'{"data":[{"id":"base"},{"id":"lora"}]}')
    assert "base" == await served_model(api.frontend, "")
    assert "lora" == await served_model(api.frontend, "lora")
    with pytest.raises(Missing, match='does not serve "other"'):
        await served_model(api.frontend, "other")
    with pytest.raises(Missing, match="serves no model yet"):
        await served_model(Api(b'{"data":[]}').frontend, "")


@pytest.mark.parametrize(
    "path", ["/../secrets", "/v1/%2e%2e/x", "/v1/..%2f..%2fsecrets", "..", "/a/./b", "/v1/%2E%2e%2F.."]
)
async def test_no_path_leads_out_of_the_service(path: str) -> None:
    api = Api(b"")
    with pytest.raises(Invalid, match="invalid path"):
        await api.frontend.send("GET", path)
    assert [] == api.asked


async def test_a_query_is_handed_on_as_it_is_written() -> None:
    api = Api(b"")
    await api.frontend.send("GET", "v1/x?a=1&a=2&b=/../c&d")
    (request,) = api.asked
    assert f"{PROXY}/v1/x?a=1&a=2&b=/../c&d" == request.path


def a_graph(service: str, server: Server) -> Target[DynamoGraphDeployment]:
    kind, spec = DynamoGraphDeployment.KIND, {"services": {"Front": {"componentType": service}}}
    graph = kind.manifest({"namespace": "prod", "name": "chat"}, spec=spec)
    server.storage.create(path_of(kind), graph)
    return Target(Reading(server), DynamoGraphDeployment, Key("prod", "chat"))


async def test_the_service_of_the_frontend_is_found_by_its_labels() -> None:
    server = Server()
    at = a_graph("frontend", server)
    marks = {"nvidia.com/dynamo-graph-deployment-name": "chat", "nvidia.com/dynamo-component": "Front"}
    metadata = {"namespace": "prod", "name": "chat-front", "labels": marks}
    ports = [{"name": "system", "port": 9090}, {"name": "http", "port": 8000}]
    service = Service.KIND.manifest(metadata, spec={"ports": ports})
    server.storage.create(path_of(Service.KIND), service)
    found = await frontend_of(at)
    assert ("chat-front", 8000) == (found.service, found.port)


@pytest.mark.parametrize(
    ("service", "text"), [("frontend", "has no Service yet"), ("worker", "has no frontend")]
)
async def test_a_graph_without_a_frontend_is_an_error(service: str, text: str) -> None:
    with pytest.raises(Missing, match=text):
        await frontend_of(a_graph(service, Server()))


async def test_an_http_error_of_the_frontend() -> None:
    with pytest.raises(NotFound):
        await Api(b"nothing here", status=404).frontend.json("/v2/models")
