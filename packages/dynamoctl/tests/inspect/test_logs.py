"""Logs on a terminal or in a pipe: each line after the name of its pod."""

import pytest

from dynamo_graphs.logs import log_line
from dynamoctl.inspect.logs import LogPrinter
from dynamoctl.screen import console

LINES = (b"2026-11-23T03:00:00Z hello\n", b"no time\n")


@pytest.mark.parametrize(
    ("has_timestamps", "printed"),
    [
        (False, "chat-0  hello\nchat-0  no time\n"),
        (True, "chat-0  2026-11-23T03:00:00Z hello\nchat-0  no time\n"),
    ],
)
def test_each_line_follows_its_pod(
    has_timestamps: bool, printed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printer = LogPrinter(console(), has_timestamps=has_timestamps)
    for line in LINES:
        printer.write("chat-0", log_line(line.removesuffix(b"\n")))
    assert printed == capsys.readouterr().out
