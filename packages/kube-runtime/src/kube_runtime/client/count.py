"""How many requests a reconcile sends: for its line in the log, and for how busy the operator is."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass


@dataclass(slots=True)
class RequestCount:
    """How many requests were sent inside a block."""

    requests: int = 0


_count: ContextVar[RequestCount | None] = ContextVar("_count", default=None)


@contextmanager
def counting_requests() -> Iterator[RequestCount]:
    """Count the requests that are sent inside the block, by it and by tasks that it starts."""
    found = RequestCount()
    token = _count.set(found)
    try:
        yield found
    finally:
        _count.reset(token)


def count_request() -> None:
    """Take note that a request is sent now."""
    if count := _count.get():
        count.requests += 1
