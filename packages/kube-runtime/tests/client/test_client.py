"""The client: what is sent, what comes back, and whose object is never touched."""

from collections.abc import AsyncIterator, Awaitable, Callable
from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.cache.watch import Broken, Changed, Listed, Removed, Watch, Watching
from kube_runtime.client.client import ABSENT, TOTAL_SECONDS, TRIES, Answer, Client, Request, lines
from kube_runtime.errors import (
    ApiError,
    Conflict,
    Expired,
    Invalid,
    NotFound,
    ServerFailure,
    Throttled,
    Unreachable,
)
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Key, Object, Selector
from kube_runtime.wire import url_path
from scripted.transport import Script
from simulated.clock import on_simulated_clock

UID = "uid-1"
KEY = Key("n", "a")
PATH = "/apis/apps/v1/namespaces/n/deployments/a"
COLLECTION = "/apis/apps/v1/namespaces/n/deployments"
WANTED: Object = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "a", "namespace": "n", "labels": {"l": "1"}},
    "spec": {},
}
STORED: Object = {"metadata": {"name": "a", "namespace": "n", "uid": UID}}
UID_IS_IMMUTABLE: Object = {
    "kind": "Status",
    "code": 422,
    "reason": "Invalid",
    "message": 'Deployment.apps "a" is invalid: metadata.uid: Invalid value: field is immutable',
    "details": {"causes": [{"reason": "FieldValueInvalid", "field": "metadata.uid"}]},
}


QUERY = {"fieldManager": "me", "fieldValidation": "Ignore"}
DELETION: Object = {"preconditions": {"uid": UID}, "propagationPolicy": "Background"}
Call = Callable[[Client], Awaitable[object]]
Expected = tuple[str, str, str, dict[str, str], Object]


def with_metadata(**more: str) -> Object:
    """What is wanted, with more metadata."""
    return {**WANTED, "metadata": {**WANTED["metadata"], **more}}


def a_status(code: int, reason: str, message: str = "said the server") -> Object:
    return {"kind": "Status", "code": code, "reason": reason, "message": message}


async def test_get_of_nothing_is_not_found_and_names_the_object() -> None:
    script = Script().then(404, a_status(404, "NotFound"))
    with pytest.raises(NotFound, match=r"^deployments\.apps n/a: said the server$"):
        await Client(script).get(Deployment, KEY)


async def test_json_that_is_not_an_object() -> None:
    script = Script().then(200, {"gitVersion": "v1.36.0"}).then(200, b"<html>")
    client = Client(script)
    assert {"gitVersion": "v1.36.0"} == await client.get_json("version")
    with pytest.raises(ServerFailure, match="/version is not JSON"):
        await client.get_json("version")


async def test_a_list_comes_page_by_page() -> None:
    one = {"metadata": {"resourceVersion": "7", "continue": "more"}, "items": [STORED]}
    two = {"metadata": {"resourceVersion": "7"}, "items": None}
    script = Script().then(200, one).then(200, two)
    pages = Client(script).pages(Deployment, namespace="n", labels="l=1", fields="f=2")
    assert [(1, "7"), (0, "7")] == [(len(p.items), p.resource_version) async for p in pages]
    query = {"limit": "500", "labelSelector": "l=1", "fieldSelector": "f=2"}
    assert [query, query | {"continue": "more"}] == [request.query for request in script.requests]


async def _stream(*chunks: bytes) -> AsyncIterator[bytes]:
    for chunk in chunks:
        yield chunk


async def test_a_watch_gives_lines_with_their_objects_untouched() -> None:
    closed: list[bool] = []
    body = _stream(
        b'{"type":"ADDED","object":{"a":',
        b'1}}\n{"type":"BOOKMARK","object":{}}\n{"type":"ERROR","object":{"code":410}}\n',
    )
    script = Script([Answer(200, {}, body, lambda: closed.append(True))])
    watch = Client(script).watch(
        Deployment, resource_version="7", namespace="n", labels="l=1", timeout_seconds=290.4
    )
    lines = [(line.type, msgspec.json.decode(line.object)) async for line in watch]
    assert [("ADDED", {"a": 1}), ("BOOKMARK", {}), ("ERROR", {"code": 410})] == lines
    request = script.requests[0]
    assert COLLECTION == request.path
    assert None is request.timeout_seconds
    assert {
        "watch": "true",
        "allowWatchBookmarks": "true",
        "resourceVersion": "7",
        "timeoutSeconds": "290",
        "labelSelector": "l=1",
    } == dict(request.query)
    assert [True] == closed


async def test_a_watch_that_is_closed_early_releases_its_connection() -> None:
    closed: list[bool] = []
    body = _stream(b'{"type":"BOOKMARK","object":{}}\n', b'{"type":"BOOKMARK","object":{}}\n')
    script = Script([Answer(200, {}, body, lambda: closed.append(True))])
    watch = Client(script).watch(Deployment, resource_version="7", timeout_seconds=1)
    await anext(watch)
    assert [] == closed
    await watch.aclose()
    assert [True] == closed
    with pytest.raises(StopAsyncIteration):
        await anext(body)


async def test_a_watch_may_be_refused_and_is_asked_for_once() -> None:
    script = Script().then(410, a_status(410, "Expired"))
    with pytest.raises(Expired):
        await anext(Client(script).watch(Deployment, resource_version="7", timeout_seconds=1))
    script.then(503, a_status(503, "ServiceUnavailable"), {"retry-after": "3"})
    with pytest.raises(ServerFailure) as caught:
        await anext(Client(script).watch(Deployment, resource_version="7", timeout_seconds=1))
    assert 3.0 == caught.value.retry_after_seconds
    assert 2 == len(script.requests)


@pytest.mark.parametrize("line", [b"<html>\n", b'{"type":"WHAT","object":{}}\n', b'{"type":"ADDED"}\n'])
async def test_an_unreadable_watch_line_ends_the_watch(line: bytes) -> None:
    script = Script().then(200, line)
    with pytest.raises(Unreachable, match="unreadable line"):
        await anext(Client(script).watch(Deployment, resource_version="7", timeout_seconds=1))


async def test_an_apply_that_must_create_finds_the_name_taken() -> None:
    script = Script().then(409, a_status(409, "Conflict", "the object has been modified"))
    with pytest.raises(Conflict, match="exists already") as caught:
        await Client(script, field_manager="me").apply(Deployment, WANTED, force=False, uid=ABSENT)
    assert "AlreadyExists" == caught.value.reason


CALLS: dict[str, tuple[Call, Expected]] = {
    "apply": (
        lambda client: client.apply(Deployment, WANTED, force=True, uid=UID),
        ("PATCH", PATH, "application/apply-patch+yaml", QUERY | {"force": "true"}, with_metadata(uid=UID)),
    ),
    "apply to any": (
        lambda client: client.apply(Deployment, WANTED, force=False),
        ("PATCH", PATH, "application/apply-patch+yaml", QUERY | {"force": "false"}, WANTED),
    ),
    "apply to none": (  # a version that no object has
        lambda client: client.apply(Deployment, WANTED, force=False, uid=ABSENT),
        (
            *("PATCH", PATH, "application/apply-patch+yaml", QUERY | {"force": "false"}),
            with_metadata(resourceVersion="1"),
        ),
    ),
    "merge patch": (
        lambda client: client.merge_patch(
            Deployment, KEY, {"metadata": {"resourceVersion": "7"}}, subresource="status", uid=UID
        ),
        (
            *("PATCH", f"{PATH}/status", "application/merge-patch+json", QUERY),
            {"metadata": {"resourceVersion": "7", "uid": UID}},
        ),
    ),
    "create": (
        lambda client: client.create(Deployment, WANTED),
        ("POST", COLLECTION, "application/json", QUERY, WANTED),
    ),
    "delete": (
        lambda client: client.delete(Deployment, KEY, uid=UID),
        ("DELETE", PATH, "application/json", {}, DELETION),
    ),
    "delete a version": (
        lambda client: client.delete(Deployment, KEY, uid=UID, resource_version="7"),
        (
            *("DELETE", PATH, "application/json", {}),
            DELETION | {"preconditions": {"uid": UID, "resourceVersion": "7"}},
        ),
    ),
}


@pytest.mark.parametrize("name", CALLS)
async def test_a_write_is_one_request_that_names_what_it_is_meant_for(name: str) -> None:
    call, expected = CALLS[name]
    script, before = Script().then(200, STORED), repr(WANTED)
    await call(Client(script, field_manager="me"))
    [request] = script.requests
    found = request.method, request.path, request.content_type, request.query, script.body
    assert (expected, before) == (found, repr(WANTED))


@pytest.mark.parametrize(("code", "error"), [(0, Unreachable), (500, ServerFailure), (503, ServerFailure)])
async def test_a_create_that_may_have_happened_is_not_repeated(code: int, error: type[Exception]) -> None:
    script = Script()
    for _ in range(2):
        _ = script.then(code) if code else script.then_raise(Unreachable("cut"))
    client = Client(script, field_manager="me")
    with pytest.raises(error):
        await client.create(Deployment, WANTED)
    with pytest.raises(error):
        await client.apply(Deployment, WANTED, force=False, uid=ABSENT)


@pytest.mark.parametrize("uid_of_answer", [None, "uid-2"])
async def test_a_write_onto_another_object_of_that_name_is_a_conflict(uid_of_answer: str | None) -> None:
    if uid_of_answer is None:  # the API server has noticed
        script = Script().then(422, UID_IS_IMMUTABLE).then(422, UID_IS_IMMUTABLE)
    else:  # it has not, as for the status of a custom resource
        other = {"metadata": {"name": "a", "namespace": "n", "uid": uid_of_answer}}
        script = Script().then(200, other).then(200, other)
    client = Client(script)
    with pytest.raises(Conflict, match="another object now"):
        await client.apply(Deployment, WANTED, force=True, uid=UID)
    with pytest.raises(Conflict, match="another object now"):
        await client.merge_patch(Deployment, KEY, {"spec": {}}, uid=UID)


async def test_what_is_invalid_for_another_reason_stays_invalid() -> None:
    script = Script().then(422, a_status(422, "Invalid"))
    with pytest.raises(Invalid):
        await Client(script, field_manager="me").apply(Deployment, WANTED, force=True, uid=UID)


def a_watch(script: Script, resource_version: str) -> Watch[Deployment]:
    """A watch that has listed everything up to that version."""
    watch = Watch(Client(script), Deployment, Selector())
    watch.state = Listed(resource_version)
    return watch


async def test_a_watch_continues_after_an_object_that_is_nested_too_deeply() -> None:
    deep = b"[" * 20_000 + b"]" * 20_000
    metadata = b'{"uid":"%s","name":"a","namespace":"n","resourceVersion":"%s"}'
    line = b'{"type":"%s","object":{"metadata":%s,"x":%s}}\n'
    changes = [
        (b"ADDED", metadata % (b"u", b"8"), deep),
        (b"DELETED", metadata % (b"u", b"9"), deep),
        (b"ADDED", metadata % (b"v", b"10"), b"1"),
    ]
    watch = a_watch(Script().then(200, b"".join(line % change for change in changes)), "7")
    await watch.step()
    (broken,) = await watch.step()
    assert isinstance(broken, Broken)
    assert Key("n", "a") == broken.error.key
    assert (Removed(Key("n", "a"), "u"),) == await watch.step()
    (changed,) = await watch.step()
    assert isinstance(changed, Changed)
    assert isinstance(watch.state, Watching)
    assert "10" == watch.state.resource_version


LINES = st.lists(st.binary(min_size=1).filter(lambda line: b"\n" not in line and line.strip()))


async def chunked(stream: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    edges = [0, *sorted(cut % (len(stream) + 1) for cut in cuts), len(stream)]
    for start, end in pairwise(edges):
        yield stream[start:end]


@given(LINES, st.lists(st.integers(min_value=0)))
async def test_chunks_do_not_matter(expected: list[bytes], cuts: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in expected)
    assert expected == [line async for line in lines(chunked(stream, cuts))]


async def test_empty_lines_are_left_out_and_a_stream_that_ends_within_a_line_was_cut() -> None:
    found = lines(chunked(b"\na\n\n\nb\nc", []))
    assert (b"a", b"b") == (await anext(found), await anext(found))
    with pytest.raises(Unreachable, match="middle of a line"):
        await anext(found)


REQUEST = Request("GET", url_path("x"))


async def asked(script: Script, *, repeatable: bool) -> bytes:
    return await Client(script).ask(REQUEST, None, None, repeatable=repeatable)


@pytest.mark.parametrize("code", [500, 502, 503, 504])
@on_simulated_clock
async def test_a_failure_of_the_server_passes(code: int) -> None:
    script = Script().then(code).then(code).then(code).then(200, b"yes")
    assert b"yes" == await asked(script, repeatable=True)
    pauses = [b - a for a, b in pairwise(script.at_seconds)]
    assert all(0.5 * base <= pause <= 1.5 * base for base, pause in zip((0.5, 1.0, 2.0), pauses, strict=True))


@on_simulated_clock
async def test_a_server_that_is_away_is_asked_a_few_times() -> None:
    script = Script()
    for _ in range(TRIES):
        script.then_raise(Unreachable("refused"))
    with pytest.raises(Unreachable, match="refused"):
        await asked(script, repeatable=True)
    assert TRIES == len(script.requests)
    assert script.at_seconds[-1] - script.at_seconds[0] <= TOTAL_SECONDS


@on_simulated_clock
async def test_an_answer_that_breaks_off_is_asked_for_again() -> None:
    class Cut:
        def __aiter__(self) -> "Cut":
            return self

        async def __anext__(self) -> bytes:
            raise Unreachable("cut")

    script = Script().then(200).then(200, b"whole")
    first = script.answers[0]
    assert not isinstance(first, Exception)
    first.body = Cut()
    assert b"whole" == await asked(script, repeatable=True)
    assert 2 == script.closed


@pytest.mark.parametrize("repeatable", [True, False])
@on_simulated_clock
async def test_throttling_is_obeyed_for_every_request(repeatable: bool) -> None:
    script = Script().then(429, headers={"retry-after": "3"}).then(200, b"yes")
    assert b"yes" == await asked(script, repeatable=repeatable)
    assert 3 <= script.at_seconds[1] - script.at_seconds[0] <= 4


@on_simulated_clock
async def test_throttling_for_too_long_goes_to_the_caller() -> None:
    script = Script().then(429, headers={"retry-after": "3600"}).then(429)
    script.then(429, headers={"retry-after": "3600"})
    with pytest.raises(Throttled) as caught:
        await asked(script, repeatable=True)
    assert 3 == len(script.requests)
    assert script.at_seconds[-1] - script.at_seconds[0] <= TOTAL_SECONDS
    assert 60 == caught.value.retry_after_seconds


@pytest.mark.parametrize(("code", "type_"), [(409, Conflict), (405, ApiError), (501, ServerFailure)])
@on_simulated_clock
async def test_a_refusal_is_final(code: int, type_: type[ApiError]) -> None:
    script = Script().then(code)
    with pytest.raises(type_):
        await asked(script, repeatable=True)
    assert 1 == len(script.requests)
