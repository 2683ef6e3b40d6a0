"""The prompt of `dynamoctl chat` on a terminal."""

import asyncio
import os
import pty
import sys
import threading
from collections.abc import Iterator

import pytest

from dynamoctl.frontend.chat import typed_line


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """What a user types on is written to this descriptor; the commands read it as standard input."""
    keyboard, screen = pty.openpty()
    with os.fdopen(screen, encoding="utf-8") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield keyboard
    os.close(keyboard)


@pytest.mark.parametrize(("keys", "line"), [(b" hi \n", "hi"), (b"\n", ""), (b"\x04", None)])
async def test_a_line_that_is_typed_on_a_terminal(terminal: int, keys: bytes, line: str | None) -> None:
    os.write(terminal, keys)
    assert line == await typed_line()


def test_waiting_for_a_line_ends_at_once_when_it_is_interrupted(terminal: int) -> None:
    async def interrupted() -> None:
        async with asyncio.timeout(0.1):
            await typed_line()

    late = threading.Timer(20, os.write, (terminal, b"\n"))  # ends a read that is still waiting
    late.start()
    with pytest.raises(TimeoutError):
        asyncio.run(interrupted())
    assert late.is_alive()
    late.cancel()
