"""Log lines of containers on a screen: joined, bounded, and without control of the terminal."""

from collections.abc import AsyncIterator

import pytest
from cyclopts import CycloptsError

from dynamo_graphs.logs import LINE_BYTES, bounded_lines, log_line
from dynamoctl.screen import seconds


async def chunks(*parts: bytes) -> AsyncIterator[bytes]:
    for part in parts:
        yield part


async def lines(*parts: bytes) -> list[bytes]:
    return [each async for each in bounded_lines(chunks(*parts))]


async def test_lines_are_joined_over_chunks() -> None:
    assert [b"one", b"two", b"three"] == await lines(b"on", b"e\ntwo\nth", b"ree")


async def test_a_line_has_a_limit() -> None:
    parts = [b"x" * LINE_BYTES] * 3
    assert [b"x" * LINE_BYTES, b"y"] == await lines(*parts, b"\ny")


def test_a_line_does_not_rule_the_terminal() -> None:
    line = log_line(b"2026-11-23T03:00:00.1Z \x1b[31mred\x1b[0m \x1b[2Jgone\x07\r")
    assert ("2026-11-23T03:00:00.1Z", "red \ufffd[2Jgone\ufffd") == (line.time, line.text)


def test_a_line_without_a_time_is_kept_whole() -> None:
    assert "no time here" == log_line(b"no time here").text


def test_times_are_ordered_though_zeros_are_left_out() -> None:
    texts = (b"2026-11-23T03:00:00.1Z a", b"2026-11-23T03:00:00.12Z b", b"2026-11-23T03:00:01Z c")
    orders = [log_line(each).order for each in texts]
    assert sorted(orders) == orders


@pytest.mark.parametrize("text", ["10", "m", "-5m", "1.5h", "10 m"])
def test_a_duration_that_is_none(text: str) -> None:
    with pytest.raises(CycloptsError, match="invalid duration"):
        seconds(text)
