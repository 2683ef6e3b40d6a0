"""Errors carry the message of the API server."""

import json
from typing import Any

import msgspec
import pytest

from kube_runtime.client.client import error_of_answer, error_of_watch
from kube_runtime.errors import (
    ApiError,
    Conflict,
    Expired,
    Forbidden,
    Invalid,
    NotFound,
    Refused,
    ServerFailure,
    Throttled,
    Unauthorized,
)
from kube_runtime.types.meta import Key, Kind

KIND = Kind("t.io", "v1", "Thing", "things")


def error_of(code: int, **status: Any) -> ApiError:
    body = json.dumps({"kind": "Status", **status}).encode()
    return error_of_answer(code, {}, body, KIND, Key("n", "a"))


@pytest.mark.parametrize(
    ("code", "type_"),
    [
        (302, ApiError),
        (400, Invalid),
        (401, Unauthorized),
        (403, Forbidden),
        (404, NotFound),
        (405, Refused),
        (409, Conflict),
        (410, Expired),
        (422, Invalid),
        (429, Throttled),
        (500, ServerFailure),
        (599, ServerFailure),
    ],
)
def test_the_status_code_is_the_class(code: int, type_: type[ApiError]) -> None:
    assert type_ is type(error_of(code, message="m"))


@pytest.mark.parametrize("code", [400, 401, 409, 410, 422, 429, 500, 503])
def test_a_denial_of_admission_is_a_refusal_whatever_its_code(code: int) -> None:
    webhook = error_of(code, message='admission webhook "w.example.com" denied the request: no')
    policy = error_of(
        code, message="x is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: no"
    )
    assert [Refused, Refused] == [type(webhook), type(policy)]


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ('failed calling webhook "w.example.com": connection refused', ServerFailure),
        ('the answer quotes: admission webhook "w" denied the request', ServerFailure),
        ("failed to create typed patch object (n/a; v1, Kind=X): .b: field not declared in schema", Invalid),
    ],
)
def test_a_500_is_a_server_failure_or_an_unknown_field_in_an_apply(text: str, type_: type[ApiError]) -> None:
    assert type_ is type(error_of(500, message=text))


def test_the_text_is_subject_and_message_for_which_a_reason_stands_in() -> None:
    assert "things.t.io n/a: no" == str(error_of(403, reason="Forbidden", message="no"))
    assert "Forbidden" == error_of(403, reason="Forbidden").message


def test_causes_that_the_message_leaves_out_are_added() -> None:
    causes = [
        {"field": "spec.a", "message": "Required value"},
        {"field": "spec.b", "message": "too long"},
        {"message": "and more"},
    ]
    error = error_of(422, message="invalid: spec.a: Required value", details={"causes": causes})
    assert "invalid: spec.a: Required value; spec.b: too long; and more" == error.message
    assert error.details == {"causes": causes}


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"404 page not found\n", "404 page not found"),
        (b"<html>\n <b>Bad  gateway</b></html>", "<html> <b>Bad gateway</b></html>"),
        (b"x" * 1000, "x" * 300),
        (b"", "HTTP 502 without a message"),
        (b"\xff", "\ufffd"),
        (b'{"a":1}', '{"a":1}'),
    ],
)
def test_a_response_without_a_status_object_is_quoted(body: bytes, message: str) -> None:
    assert message == error_of_answer(502, {}, body).message


@pytest.mark.parametrize(
    ("value", "seconds"), [("7", 7.0), ("Wed, 21 Oct 2026 07:28:00 GMT", None), ("-1", None)]
)
def test_retry_after_is_a_number_of_seconds(value: str, seconds: float | None) -> None:
    assert seconds == error_of_answer(429, {"retry-after": value}, b"").retry_after_seconds


@pytest.mark.parametrize(
    ("raw", "type_"),
    [
        (b'{"kind":"Status","code":410,"reason":"Expired","message":"too old"}', Expired),
        (b'{"code":500,"message":"m"}', ServerFailure),
        *((nothing, Expired) for nothing in (b"{}", b"[]", b'{"message":"m"}')),
    ],
)
def test_the_error_line_of_a_watch_has_its_own_code_or_means_a_new_list(
    raw: bytes, type_: type[ApiError]
) -> None:
    assert isinstance(error_of_watch(msgspec.Raw(raw), KIND), type_)


def test_errors_compare_by_identity() -> None:
    error = error_of(409, message="m")
    assert 1 == len({error, error})
    assert error_of(409, message="m") != error
