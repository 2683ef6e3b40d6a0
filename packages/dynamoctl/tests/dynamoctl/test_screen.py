"""Durations of a command line, and tables on a narrow terminal."""

from io import StringIO

import pytest
from cyclopts import CycloptsError
from rich.console import Console

from dynamoctl.screen import seconds, table


@pytest.mark.parametrize("text", ["10", "m", "-5m", "1.5h", "10 m"])
def test_a_duration_that_is_none(text: str) -> None:
    with pytest.raises(CycloptsError, match="invalid duration"):
        seconds(text)


def printed(width: int) -> list[str]:
    output = StringIO()
    row = ("5m", "ScalingReplicaSet", "Deployment/vllm-disaggregated-decode", "Scaled up replica set " * 3)
    Console(file=output, width=width).print(table(("AGE", "REASON", "OBJECT", "MESSAGE"), [row]))
    return [line.rstrip() for line in output.getvalue().splitlines()]


@pytest.mark.parametrize("width", [40, 60, 80, 120, 200])
def test_no_word_of_a_row_is_broken_and_what_has_no_room_stands_below(width: int) -> None:
    head, row, *below = printed(width)
    assert ["AGE", "REASON"] == head.split()[:2]
    assert ["5m", "ScalingReplicaSet"] == row.split()[:2]
    assert all(line.startswith("  ") for line in below)
    words = " ".join((row, *below)).split()
    assert words[2:] == ["Deployment/vllm-disaggregated-decode", *["Scaled", "up", "replica", "set"] * 3]
    assert len(row) <= width
