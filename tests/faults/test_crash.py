"""The operator is killed at each of its writes, and the next one brings everything to the same end.

`make crash` plays every point of every scenario: before each write reaches the API server, and after it,
before the answer is read. `make test` plays a spread sample of them, so that it stays quick.
"""

from collections.abc import Iterator, Mapping

import pytest

from faults.playing import Run, all_survived, asked, played
from faults.scenarios import SCENARIOS, Scenario
from faults.stage import Stage

pytestmark = pytest.mark.cluster


@pytest.fixture(scope="module")
def runs(stage: Stage, request: pytest.FixtureRequest) -> Iterator[Mapping[Scenario, Run]]:
    """All scenarios that are asked for."""
    with played(stage, asked(request)) as found:
        yield found


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_whenever_it_is_killed_the_end_is_the_same(
    scenario: Scenario, runs: Mapping[Scenario, Run], survived: list[tuple[str, int, int]]
) -> None:
    survived.append(all_survived(scenario, runs[scenario]))
