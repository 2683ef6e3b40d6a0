"""One object is followed through its changes, through cuts, and until it is gone."""

import json

import pytest

from dynamo_graphs.watching import states
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.client.client import Answer, Client, Request
from kube_runtime.errors import DecodeError, Forbidden
from kube_runtime.types.meta import Key, Object
from scripted.transport import answer, chunks


def a_graph(version: int) -> Object:
    return {"metadata": {"namespace": "prod", "name": "chat", "resourceVersion": str(version)}}


def a_list(*items: Object) -> Object:
    return {"metadata": {"resourceVersion": "9"}, "items": items}


def a_line(type_: str, body: Object) -> Object:
    return {"type": type_, "object": body}


GONE = a_line("ERROR", {"kind": "Status", "code": 410, "message": "too old"})


class Script:
    """An API server with lists in pages; it answers them and streams in the order given here."""

    def __init__(self, lists: list[Object], streams: list[list[Object]]) -> None:
        self.lists, self.streams = lists, streams

    async def send(self, request: Request) -> Answer:
        assert "metadata.name=chat" == request.query["fieldSelector"]
        if "sendInitialEvents" in request.query:
            return answer(422, {"kind": "Status", "code": 422, "message": "no"})
        if "watch" in request.query:
            lines = (json.dumps(each).encode() + b"\n" for each in self.streams.pop(0))
            return Answer(200, {}, chunks(*lines))
        body = self.lists.pop(0)
        return answer(body.get("code", 200), body)


async def versions(script: Script) -> list[str]:
    found = states(Client(script), DynamoGraphDeployment, Key("prod", "chat"))
    return [each.metadata.resource_version async for each in found]


async def test_each_state_until_it_is_gone() -> None:
    stream = [a_line("MODIFIED", a_graph(2)), a_line("DELETED", a_graph(3))]
    assert ["1", "2"] == await versions(Script([a_list(a_graph(1))], [stream]))


async def test_an_object_that_is_not_there_has_no_states() -> None:
    assert [] == await versions(Script([a_list()], []))


async def test_a_history_that_is_lost_is_listed_again() -> None:
    end = [a_line("DELETED", a_graph(5))]
    script = Script([a_list(a_graph(1)), a_list(a_graph(4))], [[GONE], end])
    assert ["1", "4"] == await versions(script)


async def test_what_went_while_nobody_listened_is_gone() -> None:
    assert ["1"] == await versions(Script([a_list(a_graph(1)), a_list()], [[GONE]]))


async def test_what_cannot_be_read_is_an_error() -> None:
    broken = {**a_graph(1), "spec": "none"}
    with pytest.raises(DecodeError):
        await versions(Script([a_list(broken)], []))


async def test_what_may_not_be_watched_is_an_error() -> None:
    refused = {"kind": "Status", "code": 403, "message": "not for you"}
    with pytest.raises(Forbidden):
        await versions(Script([refused], []))
