"""Turn error responses of the API server into `ApiError`, with its message.

Not every response is a `Status`: a proxy on the way answers with HTML, and the API server itself answers an
unknown path with plain text.
"""

from collections.abc import Mapping

import msgspec

from kube_runtime.decode import UNREADABLE
from kube_runtime.errors import ApiError, Invalid, Refused, error_type
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.types.meta import Struct

RETRY_AFTER_LIMIT_SECONDS = 60.0
"""Longest `Retry-After` that is honoured; an hour, for example, is a mistake of something on the way."""

_TEXT_LIMIT = 300
_GONE = 410
_UNKNOWN_FIELD = "failed to create typed patch object"
_WEBHOOK, _BY_WEBHOOK = 'admission webhook "', " denied the request"
_POLICY, _BY_POLICY = "ValidatingAdmissionPolicy '", " denied request: "
"""How the messages of denials begin, and continue (`k8s.io/apiserver`, v1.36). The code is the webhook's or
the policy's choice."""


class _Status(Struct, frozen=True):
    """The `Status` object of an error response."""

    code: int = 0
    reason: str = ""
    message: str = ""
    details: Object | None = None


_STATUS = msgspec.json.Decoder(_Status)


def error_of_answer(
    code: int,
    headers: Mapping[str, str],
    body: bytes,
    kind: Kind | None = None,
    key: Key | None = None,
) -> ApiError:
    """The error of an HTTP response with status `code`."""
    status = _status(body)
    if status is None:
        text = " ".join(body.decode("utf-8", "replace").split())
        status = _Status(message=text[:_TEXT_LIMIT] or f"HTTP {code} without a message")
    error = _error(code, status, kind, key)
    error.retry_after_seconds = _retry_after(headers)
    return error


def error_of_watch(raw: bytes | msgspec.Raw, kind: Kind) -> ApiError:
    """The error in an ERROR event of a watch; an empty one counts as 410, which makes the watch relist."""
    status = _status(raw) or _Status(message="the watch ended with an unreadable error")
    return _error(status.code or _GONE, status, kind, None)


def _status(body: bytes | msgspec.Raw) -> _Status | None:
    try:
        status = _STATUS.decode(body)
    except UNREADABLE:
        return None
    return status if status.message or status.reason else None


def _error(code: int, status: _Status, kind: Kind | None, key: Key | None) -> ApiError:
    type_ = error_type(code)
    if status.message.startswith(_UNKNOWN_FIELD):
        # The object has a field that the API does not know, so a retry fails again.
        # Source: v1.36, measured; it answers such an apply with 500 and no reason.
        type_ = Invalid
    elif not issubclass(type_, Refused) and _is_denied(status.message):
        type_ = Refused
    return type_(
        code=code,
        reason=status.reason,
        message=_with_causes(status),
        kind=kind,
        key=key,
        details=status.details,
    )


def _is_denied(message: str) -> bool:
    by_webhook = message.startswith(_WEBHOOK) and _BY_WEBHOOK in message
    return by_webhook or (_POLICY in message and _BY_POLICY in message)


def _with_causes(status: _Status) -> str:
    text = status.message or status.reason
    for cause in causes(status.details):
        message = str(cause.get("message", ""))
        if message and message not in text:
            field = cause.get("field")
            text += f"; {field}: {message}" if field else f"; {message}"
    return text


def causes(details: Object | None) -> list[Object]:
    """The causes in the details of an error; each has `reason`, `field` and `message`."""
    entries = (details or {}).get("causes")
    return (
        [cause for cause in entries if isinstance(cause, dict)] if isinstance(entries, list) else []
    )


def _retry_after(headers: Mapping[str, str]) -> float | None:
    value = headers.get("retry-after", "")
    is_number = value.isascii() and value.isdigit()
    return min(float(value), RETRY_AFTER_LIMIT_SECONDS) if is_number else None
