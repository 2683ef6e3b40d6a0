"""What every test needs, whatever it tests."""

import asyncio
from collections.abc import Iterator

# Its plugin imports it at the end of every run, through pytest's compiler. Finalizers run then as well, and
# one that prints a traceback in that moment makes Python 3.11 fail with a SystemError (cpython 106905).
import hypothesis
import pytest
import structlog

from stalls import Steps

# Without limits of time: on a busy machine an example may take as long as it needs.
hypothesis.settings.register_profile(
    "patient", deadline=None, suppress_health_check=[hypothesis.HealthCheck.too_slow]
)
hypothesis.settings.load_profile("patient")

_STEPS = Steps()
_STEPS.watch()


@pytest.fixture(scope="session", autouse=True)
def _no_event_loop_is_left_open() -> None:
    """Keep looptime from making an event loop for each test that is not asynchronous.

    It asks for the current loop, which asyncio makes when there is none, and does not close.
    """
    asyncio.set_event_loop(None)


@pytest.fixture(autouse=True)
def _tracebacks_are_plain() -> None:
    """Have structlog log exceptions as the operator does, without drawing frames: that takes a loop long.

    For each test, because a test of the logs may reset what another configured.
    """
    if not structlog.is_configured():
        plain = structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)
        structlog.configure(processors=[*structlog.get_config()["processors"][:-1], plain])


@pytest.fixture(autouse=True)
def _no_event_loop_stands_still(request: pytest.FixtureRequest) -> Iterator[None]:
    """Fail a test in which an event loop of this process stands still for more than 100 ms; see `stalls`.

    Also where it runs in another thread. Not counted is what comes before the test's own fixtures, and a test
    that is marked with `stalls`, because it has a loop stand still on purpose.
    """
    _STEPS.long.clear()
    yield
    found = tuple(_STEPS.long)
    if request.node.get_closest_marker("stalls") is None:
        assert not found, found
