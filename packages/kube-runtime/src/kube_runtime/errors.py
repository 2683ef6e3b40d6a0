"""Every error that this package raises on purpose.

OperatorError
├─ ConfigError            unusable kubeconfig, settings or certificate: exit with one clear line
├─ Unreachable            no answer: connection refused, TLS failure, timeout
│  ├─ NoAnswer            connected, and no answer in time: the API server may still be working on it
│  └─ Untrusted           its certificate is not one that we trust; waiting does not help
├─ ApiError               the API server answered with an error
│  ├─ Unauthorized 401 · Forbidden 403 · NotFound 404 · Conflict 409 · Expired 410 · Invalid 400 and 422
│  └─ Throttled 429 · ServerFailure 5xx
└─ DecodeError            one object does not fit its type, or is too large (TooLarge)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeVar

from kube_runtime.kind import Key, Kind, Object

E = TypeVar("E", bound=BaseException)


class OperatorError(Exception):
    """Root of the tree: catch it for every expected error."""


class ConfigError(OperatorError):
    """A file, flag or credential that cannot be used. `source` names it."""

    def __init__(self, source: str, message: str) -> None:
        super().__init__(f"{source}: {message}")
        self.source = source
        self.message = message


class Unreachable(OperatorError):
    """The API server gave no answer; whether a write took effect is unknown."""


class NoAnswer(Unreachable):
    """The API server took a request and did not answer within `waited_seconds`; it may still be at work."""

    def __init__(self, message: str, waited_seconds: float) -> None:
        super().__init__(message)
        self.waited_seconds = waited_seconds


class Untrusted(Unreachable):
    """The certificate of the API server is not valid for its address, or not signed by a CA that we trust."""


@dataclass(eq=False)
class ApiError(OperatorError):
    """An error response of the API server, with its message.

    Compared by identity, as exceptions are: generated equality would make it unhashable.
    """

    code: int
    reason: str
    message: str
    kind: Kind | None = None
    key: Key | None = None
    details: Object | None = None
    retry_after_seconds: float | None = None

    def __str__(self) -> str:
        subject = " ".join(str(part) for part in (self.kind, self.key) if part)
        return f"{subject}: {self.message}" if subject else self.message


class Unauthorized(ApiError):
    """401: credentials missing, wrong or expired."""


class Forbidden(ApiError):
    """403: no permission, or refused by an admission plugin such as a quota."""


class NotFound(ApiError):
    """404."""


class Conflict(ApiError):
    """409: already exists, another version, another owner of a field, or a failed precondition."""


class Expired(ApiError):
    """410: the resource version or list page is gone; start from a new list."""


class Invalid(ApiError):
    """400 or 422: the object was refused and will be refused again."""


class Throttled(ApiError):
    """429: too many requests; `retry_after_seconds` is what the server asked for."""


class ServerFailure(ApiError):
    """5xx."""


class DecodeError(OperatorError):
    """One object does not fit its type; the others are not affected.

    None means: the object is so broken that not even its name can be read.
    """

    def __init__(self, kind: Kind, key: Key | None, message: str) -> None:
        super().__init__(f"{kind} {key}: {message}" if key else f"{kind}: {message}")
        self.kind = kind
        self.key = key
        self.message = message


class TooLarge(DecodeError):
    """One object has more bytes than are processed."""


_BY_CODE: dict[int, type[ApiError]] = {
    400: Invalid,
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    410: Expired,
    422: Invalid,
    429: Throttled,
}


def error_type(code: int) -> type[ApiError]:
    """The class for an HTTP status code of 400 or more."""
    return _BY_CODE.get(code, ServerFailure if code >= 500 else ApiError)  # noqa: PLR2004


def leaves(group: BaseExceptionGroup[E]) -> Iterator[E]:
    """The errors of a group and of the groups in it."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error
