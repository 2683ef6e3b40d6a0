"""When to retry a key whose reconcile failed: by what a retry can do for the error.

A conflict resolves at once, an outage needs a backoff, and a refusal needs a user.
"""

from dataclasses import dataclass
from typing import Literal

from kube_runtime.controller.worker import WorkBusy
from kube_runtime.errors import ApiError, Conflict, Forbidden, Invalid, OperatorError
from kube_runtime.rate_limits import Backoff

CONFLICT = Backoff(first_seconds=0.05, limit_seconds=60)
OUTAGE = Backoff(first_seconds=0.1, limit_seconds=300)
REFUSAL = Backoff(first_seconds=60, limit_seconds=600)
_QUIET_CONFLICTS = 5
BUSY = Backoff(first_seconds=2, limit_seconds=60)


@dataclass(frozen=True, slots=True)
class Retry:
    """When to retry after an error, and at which level to log it."""

    backoff: Backoff
    log: Literal["debug", "warning", "exception"]
    at_least_seconds: float = 0.0


def retry(error: BaseException, failures: int) -> Retry:
    """Choose the retry for an error of a reconcile that failed `failures` times in a row before."""
    asked = error.retry_after_seconds or 0.0 if isinstance(error, ApiError) else 0.0
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
