"""A ConversionReview is answered in order, or with the first error."""

import json
from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Raw

from dynamo_operator.versions import review
from dynamo_operator.versions.review import Conversion, Converter, NotAConversion, conversion_in

OLD, NEW = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"
KIND = "DynamoGraphDeploymentScalingAdapter"


def adapter(name: str, version: str = OLD, **spec: Any) -> Any:
    return {
        "apiVersion": version,
        "kind": KIND,
        "metadata": {"namespace": "team-a", "name": name},
        "spec": spec,
    }


def body(*objects: Any, to: str = NEW) -> bytes:
    request = {"uid": "u1", "desiredAPIVersion": to, "objects": list(objects)}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview"}
    return json.dumps({**head, "request": request}).encode()


def answered(text: bytes, converter: Converter | None = None) -> Any:
    conversion = Conversion(conversion_in(text), converter or Converter())
    while (answer := conversion.answer()) is None:
        pass
    return json.loads(answer)


def response(*objects: Any, to: str = NEW) -> Any:
    answer = answered(body(*objects, to=to))
    assert ("apiextensions.k8s.io/v1", "ConversionReview") == (answer["apiVersion"], answer["kind"])
    assert answer["response"].pop("uid") == "u1"
    return answer["response"]


def failure(message: str) -> Any:
    return {"result": {"status": "Failure", "message": message}}


def test_objects_are_answered_in_order() -> None:
    objects = (adapter("b", replicas=1), adapter("a", replicas=0))
    expected = [{**each, "apiVersion": NEW} for each in objects]
    assert {"result": {"status": "Success"}, "convertedObjects": expected} == response(*objects)


def test_an_object_is_converted_once_for_each_version() -> None:
    converter = Converter()
    for version, to in ((OLD, NEW), (NEW, OLD)):
        text = Raw(json.dumps(adapter("a", version, replicas=1)).encode())
        first = converter.converted(text, to)
        assert adapter("a", to, replicas=1) == json.loads(bytes(first))
        assert first is converter.converted(Raw(bytes(text)), to)
    changed = Raw(json.dumps(adapter("a", replicas=2)).encode())
    assert adapter("a", NEW, replicas=2) == json.loads(bytes(converter.converted(changed, NEW)))


def test_slices_lose_and_repeat_no_object(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "_SLICE_SECONDS", -1.0)  # an object per slice
    names = [f"a{number}" for number in range(20)]
    converted = response(*map(adapter, names))["convertedObjects"]
    assert names == [each["metadata"]["name"] for each in converted]


def test_the_first_object_that_fails_ends_the_review() -> None:
    message = f'{KIND} team-a/b: spec.replicas: invalid value "x" (expected an integer of 32 bits)'
    assert failure(message) == response(adapter("a"), adapter("b", replicas="x"), adapter("c", replicas="y"))


def test_an_object_has_to_be_in_the_other_version() -> None:
    assert failure(f'{KIND} team-a/a: apiVersion: invalid value "{NEW}" (expected "{OLD}")') == response(
        adapter("a", NEW)
    )
    assert failure(
        f'{KIND} team-a/a: desiredAPIVersion: invalid value "v3" (expected {OLD} or {NEW})'
    ) == response(adapter("a"), to="v3")


@pytest.mark.parametrize(
    ("document", "title"),
    [(3, "object"), ({}, "object"), ({"kind": "Pod"}, "Pod"), ({"metadata": {"name": "x"}}, "object x")],
)
def test_whatever_is_no_object_of_ours_is_a_failure(document: Any, title: str) -> None:
    result = response(document)["result"]
    assert "Failure" == result["status"]
    assert result["message"].startswith(f"{title}: ")


def test_a_review_without_objects_is_a_success() -> None:
    assert {"result": {"status": "Success"}, "convertedObjects": []} == response()


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"null",
        b"[]",
        b"{}",
        b'{"request": 3}',
        b'{"request":' * 20_000,
        b"\xff",
        body().replace(b'"u1"', b"1"),
        body().replace(b"[]", b"3"),
        body().replace(b"ConversionReview", b"AdmissionReview"),
        body().replace(b"apiextensions.k8s.io/v1", b"apiextensions.k8s.io/v1beta1"),
    ],
)
def test_a_body_that_is_no_review_is_refused(text: bytes) -> None:
    with pytest.raises(NotAConversion):
        conversion_in(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(exclude_categories=())),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=10,
)
DOCUMENTS = JSON | st.builds(
    lambda spec, metadata, annotation: {
        **adapter("x"),
        "kind": "DynamoGraphDeployment",
        "metadata": {"name": metadata, "annotations": {"nvidia.com/dgd-spec": annotation}},
        "spec": spec,
    },
    JSON,
    JSON,
    st.text(),
)


@settings(deadline=None)
@given(st.lists(DOCUMENTS, max_size=3), st.sampled_from((OLD, NEW, "")))
def test_any_objects_are_converted_or_refused(objects: list[Any], to: str) -> None:
    try:
        response = answered(body(*objects, to=to))["response"]
    except NotAConversion:
        return  # what Python writes as JSON is not always: NaN
    is_success = response["result"]["status"] == "Success"
    assert is_success == ("message" not in response["result"])
    assert (len(objects) if is_success else 0) == len(response.get("convertedObjects", ()))


@settings(deadline=None)
@given(st.binary() | st.builds(lambda at: body(adapter("a"))[:at], st.integers(0, 300)))
def test_any_bytes_are_answered_or_refused(text: bytes) -> None:
    with suppress(NotAConversion):
        assert "response" in answered(text)
