"""The operator is killed at each of its writes, and the next one brings everything to the same end.

`make crash` plays every point of every scenario: before each write reaches the API server, and after it,
before the answer is read. `make test` plays a spread sample of them, so that it stays quick.
"""

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from faults.crash import Point
from faults.scenarios import SCENARIOS, Scenario
from faults.stage import AT_ONCE, IS_LONG, Calm, Outcome, Stage

SAMPLE = 3

pytestmark = pytest.mark.cluster


def chosen(points: Sequence[Point]) -> Sequence[Point]:
    """All points, or some that are spread over them."""
    if IS_LONG or len(points) <= SAMPLE:
        return points
    return [points[(2 * at + 1) * len(points) // (2 * SAMPLE)] for at in range(SAMPLE)]


@dataclass(frozen=True)
class Run:
    """A scenario that is being played: calmly first, then with an operator that dies at each chosen point."""

    calm: Future[Calm]
    crashes: list[Future[Outcome]]


@pytest.fixture(scope="module")
def runs(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Mapping[Scenario, Run]]:
    """All scenarios that are asked for. They wait most of the time, so several are played at once."""
    items = (item for item in request.session.items if isinstance(item, pytest.Function))
    given = (each.callspec.params.values() for each in items if hasattr(each, "callspec"))
    asked = [value for values in given for value in values if isinstance(value, Scenario)]
    with ThreadPoolExecutor(AT_ONCE) as pool:
        calms = {scenario: pool.submit(stage.calm, scenario) for scenario in asked}
        runs = {scenario: Run(calm, []) for scenario, calm in calms.items()}
        for scenario, run in runs.items():
            if run.calm.exception() is None:
                calm = run.calm.result()
                for point in chosen(calm.points()):
                    run.crashes.append(pool.submit(stage.crash, scenario, calm, point))
        yield runs
        pool.shutdown(cancel_futures=True)


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_whenever_it_is_killed_the_end_is_the_same(
    scenario: Scenario, runs: Mapping[Scenario, Run], survived: list[tuple[str, int, int]]
) -> None:
    run = runs[scenario]
    assert () == run.calm.result().end.orphans
    died = [each.result() for each in run.crashes].count(Outcome.SURVIVED)
    survived.append((str(scenario), len(run.crashes), died))
    assert died
