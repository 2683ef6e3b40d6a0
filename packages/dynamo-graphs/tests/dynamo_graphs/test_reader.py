"""Objects of a cluster that do not fit their types are named once; no answer ends in a traceback."""

import asyncio
import sys
from collections.abc import Iterator

import pytest

from dynamo_graphs.reader import Missing, Reading
from dynamo_operator.crds import RESOURCES
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.labels import FINALIZER
from dynamo_operator.models.api import DynamoModel
from dynamoctl.change.uninstall import uninstall
from dynamoctl.inspect.top import print_top
from dynamoctl.inspect.tree import print_reasons
from dynamoctl.options import Where
from kube_runtime.client.client import Answer, Request
from kube_runtime.errors import DecodeError
from kube_runtime.types.meta import Key, Object, Resource
from kube_runtime.wire import path_of
from scripted.connections import connect_to
from scripted.transport import answer
from simulated.server import Server

HERE = Where(namespace="prod")
GRAPH = DynamoGraphDeployment.KIND
ODD = "warning: left out: dynamographdeployments.nvidia.com prod/odd: "


def create(server: Server, type_: type[Resource], name: str, **body: object) -> None:
    metadata: Object = {"namespace": "prod", "name": name, "finalizers": [FINALIZER]}
    server.storage.create(path_of(type_.KIND), type_.KIND.manifest(metadata, **body))


class Api(Server):
    """An API server that says which object is not there, as a real one does."""

    async def send(self, request: Request) -> Answer:
        sent = await super().send(request)
        if sent.status != 404:
            return sent
        name = request.path.rpartition("/")[2]
        details = {"name": name}
        body = {"kind": "Status", "message": "no", "code": 404, "reason": "NotFound", "details": details}
        return answer(404, body)


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """An API server with two graphs and a model; one graph and the model do not fit their types."""
    server = Api()
    connect_to(server, monkeypatch)
    for type_ in RESOURCES:
        server.storage.objects[path_of(type_.KIND)] = {}
    create(server, DynamoGraphDeployment, "chat", spec={"services": {}})
    create(server, DynamoGraphDeployment, "odd", spec={"services": 5})
    endpoints = [{"loadedName": "x"}, {"loadedName": ""}, 7]
    create(server, DynamoModel, "lora", spec=[], status={"endpoints": endpoints})
    return server


@pytest.mark.usefixtures("server")
def test_top_and_why_name_it_once(capsys: pytest.CaptureFixture[str]) -> None:
    options = {"everywhere": False, "watch": False}
    asyncio.run(print_top("", HERE, "text", **options, interval_seconds=0))
    printed = capsys.readouterr()
    assert "prod/chat" in printed.out
    assert 1 == printed.err.count(ODD)
    assert 1 == asyncio.run(print_reasons("", HERE, "text", every=True))
    printed = capsys.readouterr()
    assert 1 == printed.err.count(ODD)
    assert "1 not ready, 2 unreadable\n" in printed.err


@pytest.mark.usefixtures("server")
def test_a_name_like_its_own_is_suggested(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Missing, match='did you mean "odd"'):
        asyncio.run(print_reasons("od", HERE, "text"))
    assert "" == capsys.readouterr().err


def test_uninstall_removes_its_finalizer(server: Server, capsys: pytest.CaptureFixture[str]) -> None:
    assert 0 == asyncio.run(uninstall(HERE, is_dry=False))
    printed = capsys.readouterr()
    assert "removed the finalizer of DynamoGraphDeployment prod/odd\n" in printed.out
    assert "  1 worker keeps its LoRA until it restarts\n" in printed.out
    assert "remaining: 2 DynamoGraphDeployment, 1 DynamoModel\n" in printed.out
    assert "" == printed.err
    left = server.storage.read(path_of(GRAPH), Key("prod", "odd"))
    assert [] == left["metadata"]["finalizers"]


@pytest.fixture
def shallow() -> Iterator[None]:
    """A nesting limit that a short text exceeds; programs have a higher one."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(1000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("shallow")
@pytest.mark.parametrize("body", [b"", b"\xff", b"[]", b'{"a":' * 2000, b"<html>"])
async def test_an_answer_that_is_no_object_is_an_error_of_it(body: bytes) -> None:
    class Odd:
        async def send(self, request: Request) -> Answer:  # noqa: ARG002 - of the protocol
            return answer(200, body)

    with pytest.raises(DecodeError, match=r"dynamographdeployments.nvidia.com prod/chat: "):
        await Reading(Odd()).raw(GRAPH, Key("prod", "chat"))
    with pytest.raises(DecodeError, match=r"dynamographdeployments.nvidia.com: "):
        await Reading(Odd()).all_raw(GRAPH, "prod")
