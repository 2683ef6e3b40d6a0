"""The operator is killed at each of its writes, and the next one brings everything to the same end.

`make crash` plays every point of every scenario: before each write reaches the API server, and after it,
before the answer is read. `make test` plays one of them in every second scenario, so that it stays quick.
"""

from collections.abc import Callable

import pytest

from faults.playing import every_second
from faults.scenarios import SCENARIOS, Scenario

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]


@every_second(SCENARIOS)
def test_whenever_it_is_killed_the_end_is_the_same(
    scenario: Scenario, survives: Callable[[Scenario], None]
) -> None:
    survives(scenario)
