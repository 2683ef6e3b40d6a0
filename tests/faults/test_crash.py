"""The operator is killed at each of its writes, and the next one brings everything to the same end.

`make crash` plays every point of every scenario: before each write reaches the API server, and after it,
before the answer is read. `make test` plays a spread sample of them, so that it stays quick.
"""

import os
from collections.abc import Sequence

import pytest

from faults.crash import Point
from faults.scenarios import SCENARIOS, Scenario
from faults.stage import Outcome, Stage

IS_LONG = os.environ.get("DYNAMO_TEST_LONG") == "1"
SAMPLE = 4

pytestmark = pytest.mark.cluster


def chosen(points: Sequence[Point]) -> Sequence[Point]:
    """All points, or some that are spread over them and fall before and after writes by turns."""
    if IS_LONG or len(points) <= SAMPLE:
        return points
    step = len(points) // SAMPLE
    return points[:: step | 1]


@pytest.mark.timeout(900)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_whenever_it_is_killed_the_end_is_the_same(
    scenario: Scenario, stage: Stage, survived: list[tuple[str, int, int]]
) -> None:
    calm = stage.calm(scenario)
    points = calm.points()
    outcomes = stage.crashes(scenario, calm, chosen(points))
    died = outcomes.count(Outcome.SURVIVED)
    survived.append((str(scenario), len(points), died))
    assert died
