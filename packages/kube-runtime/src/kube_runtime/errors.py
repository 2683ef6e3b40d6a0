"""The errors of this package.

OperatorError
├─ ConfigError            unusable kubeconfig, settings or certificate: exit with one clear line
│                           (ConfigErrors: a group of them, with a line for each)
├─ Unreachable            no response: connection refused, TLS failure, timeout
│  ├─ NoAnswer            connected, but no response in time: the API server may still be at work
│  └─ Untrusted           the certificate is not trusted; waiting does not help
├─ ApiError               the API server answered with an error
│  ├─ Refused             this request is refused, and so is a retry; others may succeed
│  │  └─ Forbidden 403 · NotFound 404 · Invalid 400 and 422
│  ├─ Unauthorized 401 · Conflict 409 · Expired 410 · Throttled 429
│  └─ ServerFailure 5xx
└─ DecodeError            one object does not fit its type, or is too large (TooLarge)
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:  # a command line imports errors before it knows its command
    from kube_runtime.types.meta import Key, Kind, Object

E = TypeVar("E", bound=BaseException)


class OperatorError(Exception):
    """Base of all expected errors."""


class ConfigError(OperatorError):
    """A file, flag or credential that cannot be used. `source` names it."""

    def __init__(self, source: str, message: str) -> None:
        super().__init__(f"{source}: {message}")
        self.source = source
        self.message = message


class ConfigErrors(ExceptionGroup[ConfigError]):
    """Every mistake of a text, of files or of settings, to be reported at once."""


class Unreachable(OperatorError):
    """The API server did not respond; whether a write took effect is unknown."""


class NoAnswer(Unreachable):
    """The API server did not respond within `waited_seconds`; it may still be at work."""

    def __init__(self, message: str, waited_seconds: float) -> None:
        super().__init__(message)
        self.waited_seconds = waited_seconds


class Untrusted(Unreachable):
    """The certificate of the API server is not valid for its address, or its CA is not trusted."""


@dataclass(eq=False)  # compared by identity, as exceptions are
class ApiError(OperatorError):
    """An error response of the API server, with its message. `method` is that of the HTTP request."""

    code: int
    reason: str
    message: str
    kind: "Kind | None" = None
    key: "Key | None" = None
    details: "Object | None" = None
    retry_after_seconds: float | None = None
    method: str = ""

    def __str__(self) -> str:
        subject = " ".join(str(part) for part in (self.kind, self.key) if part)
        return f"{subject}: {self.message}" if subject else self.message


class Unauthorized(ApiError):
    """401: credentials missing, wrong or expired."""


class Refused(ApiError):
    """Any other 4xx, or an admission webhook or policy that denies the request with whatever code."""


class Forbidden(Refused):
    """403: no permission, or refused by an admission plugin such as a quota."""


class NotFound(Refused):
    """404: the object, its namespace or kind, or an object that it refers to."""


class Conflict(ApiError):
    """409: already exists, another resource version, a field of another manager, or a failed precondition."""


class Expired(ApiError):
    """410: the resource version or list page is gone; list again."""


class Invalid(Refused):
    """400 or 422: the object was refused, and a retry will be, too. Or its name was, before any request."""


class Throttled(ApiError):
    """429: too many requests; `retry_after_seconds` is from the response."""


class ServerFailure(ApiError):
    """5xx."""


class DecodeError(OperatorError):
    """One object does not fit its type; `key` is None if even its name is unreadable."""

    def __init__(self, kind: "Kind | None", key: "Key | None", message: str) -> None:
        subject = " ".join(str(part) for part in (kind, key) if part)
        super().__init__(f"{subject}: {message}" if subject else message)
        self.kind = kind
        self.key = key
        self.message = message


class TooLarge(DecodeError):
    """One object, or a response, exceeds its limit of size."""


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
    """The error class of an HTTP status code."""
    other = ServerFailure if code >= 500 else Refused if code >= 400 else ApiError  # noqa: PLR2004
    return _BY_CODE.get(code, other)


def is_unconverted(error: OperatorError | None) -> bool:
    """Whether a request failed because nothing converts objects between the versions of their kind.

    Source: `k8s.io/apiextensions-apiserver`, v1.36.
    """
    return isinstance(error, ApiError) and "conversion webhook for " in error.message


def leaves(group: BaseExceptionGroup[E]) -> Iterator[E]:
    """The errors of a group, including nested groups."""
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from leaves(error)
        else:
            yield error


def visible(text: str) -> str:
    """The text in one line, without control and invisible characters.

    Messages from a cluster may contain them, for example the end of a container's log.
    """
    return "".join(
        char if char.isprintable() else " " if char.isspace() else "\N{REPLACEMENT CHARACTER}"
        for char in text
    )
