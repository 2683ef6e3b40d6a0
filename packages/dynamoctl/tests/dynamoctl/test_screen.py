"""Durations of a command line, and tables at the width of a terminal."""

import io

import pytest
from cyclopts import CycloptsError
from rich.console import Console

from dynamoctl.screen import seconds, table


@pytest.mark.parametrize("text", ["10", "m", "-5m", "1.5h", "10 m"])
def test_a_duration_that_is_none(text: str) -> None:
    with pytest.raises(CycloptsError, match="invalid duration"):
        seconds(text)


HEAD = ("LAST SEEN", "REASON", "OBJECT", "COUNT", "MESSAGE")
ROW = ("4s", "ScalingReplicaSet", "Deployment/vllm-disaggregated-decode", "1", "Scaled up to 2")


@pytest.mark.parametrize(
    ("width", "lines"),
    [
        (
            110,
            [
                "LAST SEEN  REASON             OBJECT                                COUNT  MESSAGE",
                "4s         ScalingReplicaSet  Deployment/vllm-disaggregated-decode  1      Scaled up to 2",
            ],
        ),
        (
            80,
            [
                "LAST SEEN  REASON             OBJECT                                COUNT",
                "4s         ScalingReplicaSet  Deployment/vllm-disaggregated-decode  1",
                "  Scaled up to 2",
            ],
        ),
        (
            50,
            [
                "LAST SEEN  REASON",
                "4s         ScalingReplicaSet",
                "  Deployment/vllm-disaggregated-decode  1  Scaled",
                "  up to 2",
            ],
        ),
    ],
)
def test_no_name_is_broken_where_a_terminal_is_narrow(width: int, lines: list[str]) -> None:
    output = io.StringIO()
    Console(file=output, width=width).print(table(HEAD, [ROW]))
    assert lines == [line.rstrip() for line in output.getvalue().splitlines()]
