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


LAST = [a_line("MODIFIED", a_graph(2)), a_line("DELETED", a_graph(3))]


@pytest.mark.parametrize(
    ("lists", "streams", "found"),
    [
        ([a_list(a_graph(1))], [LAST], ["1", "2"]),
        ([a_list()], [], []),
        ([a_list(a_graph(1)), a_list(a_graph(4))], [[GONE], LAST], ["1", "4", "2"]),
        ([a_list(a_graph(1)), a_list()], [[GONE]], ["1"]),
    ],
    ids=["until it is gone", "not there", "a lost history is listed again", "gone while nobody listened"],
)
async def test_a_watch_yields_the_object_after_each_change(
    lists: list[Object], streams: list[list[Object]], found: list[str]
) -> None:
    assert found == await versions(Script(lists, streams))


@pytest.mark.parametrize(
    ("listed", "error"),
    [
        (a_list({**a_graph(1), "spec": "none"}), DecodeError),
        ({"kind": "Status", "code": 403, "message": "not for you"}, Forbidden),
    ],
)
async def test_what_cannot_be_read_is_an_error(listed: Object, error: type[Exception]) -> None:
    with pytest.raises(error):
        await versions(Script([listed], []))
