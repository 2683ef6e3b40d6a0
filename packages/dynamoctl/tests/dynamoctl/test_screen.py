"""Durations of a command line."""

import pytest
from cyclopts import CycloptsError

from dynamoctl.screen import seconds


@pytest.mark.parametrize("text", ["10", "m", "-5m", "1.5h", "10 m"])
def test_a_duration_that_is_none(text: str) -> None:
    with pytest.raises(CycloptsError, match="invalid duration"):
        seconds(text)
