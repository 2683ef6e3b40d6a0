"""What every test needs, whatever it tests."""

import asyncio

# Its plugin imports it at the end of every run, through pytest's compiler. Finalizers run then as well, and
# one that prints a traceback in that moment makes Python 3.11 fail with a SystemError (cpython 106905).
import hypothesis  # noqa: F401
import pytest


@pytest.fixture(scope="session", autouse=True)
def _no_event_loop_is_left_open() -> None:
    """Keep looptime from making an event loop for each test that is not asynchronous.

    It asks for the current loop, which asyncio makes when there is none, and nobody closes it.
    """
    asyncio.set_event_loop(None)
