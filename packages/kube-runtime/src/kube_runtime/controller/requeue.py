"""When to retry a key whose reconcile failed: by what a retry can do for the error.

A conflict resolves at once, an outage needs a backoff, and a refusal needs a user.
"""

from dataclasses import dataclass
from typing import Literal

from kube_runtime.controller.worker import WorkBusy
from kube_runtime.errors import ApiError, Conflict, Forbidden, Invalid, NoAnswer, OperatorError
from kube_runtime.rate_limits import Backoff

CONFLICT = Backoff(first_seconds=0.05, limit_seconds=60)
OUTAGE = Backoff(first_seconds=0.1, limit_seconds=300)
REFUSAL = Backoff(first_seconds=60, limit_seconds=600)
_QUIET_CONFLICTS = 5
SERVER_TIMEOUT_SECONDS = 34.0
"""After which the API server ends a request with 504 (`requestTimeoutUpperBound` in k8s.io/apiserver)."""
BUSY = Backoff(first_seconds=2, limit_seconds=60)


@dataclass(frozen=True, slots=True)
class Retry:
    """When to retry after an error, and at which level to log it."""

    backoff: Backoff
    log: Literal["debug", "warning", "exception"]
    at_least_seconds: float = 0.0


def retry(error: BaseException, failures: int) -> Retry:
    """Choose the retry for an error of a reconcile that failed `failures` times in a row before."""
    asked = _least_seconds(error)
    match error:
        case Conflict():
            return Retry(CONFLICT, "debug" if failures < _QUIET_CONFLICTS else "warning", asked)
        case WorkBusy():
            return Retry(BUSY, "debug")
        case Invalid() | Forbidden() | RecursionError():  # the last: an object is nested too deeply
            return Retry(REFUSAL, "warning", asked)
        case OperatorError() | TimeoutError():
            return Retry(OUTAGE, "warning", asked)
        case _:
            return Retry(OUTAGE, "exception")


def _least_seconds(error: BaseException) -> float:
    """How long the API server wants to be left alone.

    After a request that got no answer in time it is overloaded, or needs that long for this one object, and
    may still be at work. Immediate retries would keep it busy, and delay other requests and Leases.
    """
    match error:
        case NoAnswer():
            return error.waited_seconds
        case ApiError(code=504):
            return max(error.retry_after_seconds or 0.0, SERVER_TIMEOUT_SECONDS)
        case ApiError():
            return error.retry_after_seconds or 0.0
        case _:
            return 0.0
