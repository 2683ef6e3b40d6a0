"""Decoding: one broken object is its own error, and nothing keeps the response alive."""

import gc
import json
import tracemalloc

import msgspec
import pytest

from kube_runtime.errors import DecodeError
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Key, Kind, Resource, Struct
from kube_runtime.wire import MOST_SCANNED_BYTES, decode, decode_items, decode_list, identity


class Part(Struct, frozen=True):
    text: msgspec.Raw = msgspec.Raw(b"1")
    again: "Part | None" = None


class Nested(Resource, frozen=True):
    KIND = Kind("t.io", "v1", "Nested", "nesteds")

    one: Part = Part()
    maybe: Part | None = None
    by_name: dict[str, Part] = {}
    many: tuple[Part, ...] = ()
    array: list[msgspec.Raw] = []
    plain: msgspec.Raw = msgspec.Raw(b"0")


def test_an_object_has_its_fields() -> None:
    raw = b'{"metadata":{"name":"a","namespace":"n"},"spec":{"replicas":3},"status":{"replicas":2}}'
    deployment = decode(Deployment, raw)
    assert Key("n", "a") == deployment.key
    assert msgspec.Raw(b'{"replicas":3}') == deployment.spec
    assert 2 == deployment.status.replicas


def test_json_text_is_kept_at_any_depth() -> None:
    raw = {"a": [1, {"b": None}]}
    text = json.dumps(raw).encode()
    part = b'{"text":' + text + b',"again":{"text":' + text + b"}}"
    nested = decode(
        Nested,
        b'{"one":%b,"maybe":%b,"byName":{"x":%b},"many":[%b],"array":[%b],"plain":%b}'
        % (part, part, part, part, text, text),
    )
    parts = (nested.one, nested.maybe, nested.by_name["x"], nested.many[0])
    for each in parts:
        assert each is not None
        assert each.again is not None
        assert raw == msgspec.json.decode(each.text) == msgspec.json.decode(each.again.text)
    assert raw == msgspec.json.decode(nested.array[0])
    assert raw == msgspec.json.decode(nested.plain)


def test_what_is_absent_has_its_default() -> None:
    assert Nested() == decode(Nested, b"{}")


@pytest.mark.parametrize("type_", [Deployment, Nested])
def test_an_object_keeps_nothing_of_the_response(type_: type[Resource]) -> None:
    gc.collect()
    tracemalloc.start()
    try:
        padding = b'"padding":"' + b"x" * 10_000_000 + b'"'
        raw = b'{"metadata":{"name":"a"},"spec":{},"one":{"text":[1]},"plain":2,' + padding + b"}"
        resource = decode(type_, raw)
        del raw, padding
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert "a" == resource.metadata.name
    assert held < 200_000


@pytest.mark.parametrize(
    ("raw", "key", "words"),
    [
        (
            b'{"metadata":{"name":"a","namespace":"n"},"status":{"replicas":"2"}}',
            Key("n", "a"),
            "deployments.apps n/a: Expected `int`, got `str` - at `$.status.replicas`",
        ),
        (b'{"metadata":{"name":"a","labels":[]}}', Key("", "a"), "$.metadata.labels"),
        (b'{"metadata":{"labels":[]}}', None, "$.metadata.labels"),
        (b'{"metadata":[]}', None, "$.metadata"),
        (b'{"metadata":{"name":"a"', None, "truncated"),
        (b'{"metadata":{"name":"\xff"}}', None, ""),
        (b"<html>", None, "malformed"),
        (b"", None, "truncated"),
    ],
)
def test_a_broken_object_is_named_if_it_can_be(raw: bytes, key: Key | None, words: str) -> None:
    with pytest.raises(DecodeError) as caught:
        decode(Deployment, raw)
    assert key == caught.value.key
    assert Deployment.KIND == caught.value.kind
    assert words in str(caught.value)


def test_one_broken_item_leaves_the_others() -> None:
    page = decode_list(
        Deployment.KIND,
        b'{"metadata":{"resourceVersion":"7","continue":"c"},"items":['
        b'{"metadata":{"name":"a"}},{"metadata":{"name":"b","generation":"x"}},{"metadata":{"name":"c"}}]}',
    )
    good, broken = decode_items(Deployment, page.items or [])
    assert ["a", "c"] == [each.metadata.name for each in good]
    assert [Key("", "b")] == [each.key for each in broken]
    assert ("7", "c") == (page.metadata.resource_version, page.metadata.continue_)


def test_an_empty_list_may_be_null() -> None:
    assert None is decode_list(Deployment.KIND, b'{"items":null}').items


DEEP = b"[" * 15_000 + b"]" * 15_000
ODD = (b"<html>", b'{"items":{}}', b"[]", b'{"items":"\xff"}', DEEP)


@pytest.mark.parametrize("raw", [*ODD, b'{"items":[{"x":%s}' % DEEP, b'{"items":{"x":%s}}' % DEEP])
def test_a_response_that_is_not_a_list_is_an_error(raw: bytes) -> None:
    with pytest.raises(DecodeError, match=r"^deployments\.apps: list: "):
        decode_list(Deployment.KIND, raw)


"""Deeper than any version of Python goes."""


class Bare(Resource, frozen=True):
    """Only the metadata."""

    KIND = Deployment.KIND
    READ_LEVELS = 3


def test_what_is_not_nested_too_deeply_can_be_read_alone() -> None:
    text = '{"metadata":{"name":"a","labels":{"b":"\\"[{"},"managedFields":%s},"x":%s}'
    resource = decode(Bare, (text % (DEEP.decode(), DEEP.decode())).encode())
    assert ("a", {"b": '"[{'}) == (resource.metadata.name, resource.metadata.labels)


def test_of_a_large_object_that_is_nested_too_deeply_only_the_start_is_scanned() -> None:
    large = b'{"metadata":{"name":"a"},"x":[%s,"%s"]}' % (DEEP, b"[" * MOST_SCANNED_BYTES)
    with pytest.raises(DecodeError) as error:
        decode(Bare, large)
    assert Key("", "a") == error.value.key
    hidden = b'{"x":[%s,"%s"],"metadata":{"name":"a"}}' % (DEEP, b"[" * MOST_SCANNED_BYTES)
    assert "" == identity(hidden).name


def test_an_object_that_is_nested_too_deeply_does_not_hide_the_others_of_its_list() -> None:
    names = (b"a", b'"items":[{', b"\\", b"z")
    whole = b'{"kind":"items","metadata":{"resourceVersion":"7","items":[{"x":1}]},"items":[%s],"more":[{}]}'
    objects = [b'{"metadata":{"name":%s},"x":%s}' % (json.dumps(it.decode()).encode(), b"[]") for it in names]
    deep = b'{"metadata":{"name":"deep"},"x":%s}' % DEEP
    page = decode_list(Deployment.KIND, whole % b" , ".join([objects[0], deep, *objects[1:]]))
    assert "7" == page.metadata.resource_version
    good, broken = decode_items(Deployment, page.items or [])
    assert [it.decode() for it in names] == [it.metadata.name for it in good]
    assert [Key("", "deep")] == [error.key for error in broken]
