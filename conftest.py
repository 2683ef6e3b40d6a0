"""Fixtures and settings of every test."""

import asyncio
import gc
import os
import ssl
import sys
from collections.abc import Iterator
from pathlib import Path

# Imported here because its plugin would import it at the end of the run, while finalizers run: one that
# prints a traceback then makes Python 3.11 fail with a SystemError (cpython 106905).
import hypothesis
import pytest
import structlog

from stalls import Steps
from times import Times

# No time limits: on a busy machine an example may take long.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")

gc.set_threshold(50_000, 20, 50)  # collections took 6 % of the CPU time of unit tests


class _ClosingSocket(ssl.SSLSocket):
    """Closed if it is half made: `wrap_socket` forgets it when the peer resets the connection too early.

    Its ResourceWarning would fail whatever test runs then.
    """

    def __del__(self) -> None:
        if not hasattr(self, "_connected"):
            self.close()
        super().__del__()  # type: ignore[misc]  # of a type in C


ssl.SSLContext.sslsocket_class = _ClosingSocket
_STEPS = Steps()
_STEPS.watch()


def pytest_configure(config: pytest.Config) -> None:
    """Record what tests cost if the variable DYNAMO_TEST_TIMES names a folder."""
    if folder := os.environ.get("DYNAMO_TEST_TIMES"):
        part = "_".join(arg.strip("/").replace("/", ".") for arg in config.args)
        config.pluginmanager.register(Times(Path(folder, f"{part[:100]}.jsonl")))


@pytest.fixture(scope="session", autouse=True)
def _no_event_loop_is_left_open() -> None:
    """Keep looptime from creating an event loop for each synchronous test.

    It gets the current loop, which asyncio creates when there is none, and does not close it.
    """
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def _tracebacks_are_plain() -> None:
    """Make structlog log plain tracebacks, as the operator does: pretty ones would block the event loop.

    For each test, because tests of the logs reset the configuration.
    """
    if not structlog.is_configured():
        plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])


@pytest.fixture(autouse=True)
def _no_event_loop_stands_still(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test that blocks an event loop of any thread for more than 100 ms; see `stalls`.

    Fixtures that run before this one do not count. The mark `stalls` is for tests that block on purpose.
    """
    _STEPS.long.clear()
    yield
    long_steps = tuple(_STEPS.long)
    if request.node.get_closest_marker("stalls") is None:
        assert not long_steps, long_steps


@pytest.fixture(autouse=True)
def _recursion_limit_stays() -> Iterator[None]:
    """Restore the limit that a program of ours sets when a test runs it in this process."""
    limit = sys.getrecursionlimit()
    yield
    sys.setrecursionlimit(limit)
