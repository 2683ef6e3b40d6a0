"""The same where the API server stores v1beta1: what the operator writes is converted before."""

from collections.abc import Callable, Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.converter import stored_in
from faults.playing import every_second
from faults.scenarios import SCENARIOS, Scenario

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

CHOSEN = ("create", "scale a service", "restart", "enable a scaling adapter", "add a service", "delete")


@pytest.fixture(scope="module")
def operated(kinds: ControlPlane) -> Iterator[ControlPlane]:
    with stored_in(kinds, "v1beta1"):
        yield kinds


@every_second([scenario for scenario in SCENARIOS if str(scenario) in CHOSEN])
def test_graphs_stored_in_v1beta1_end_the_same_whenever_it_is_killed(
    scenario: Scenario, survives: Callable[[Scenario], None]
) -> None:
    survives(scenario)
