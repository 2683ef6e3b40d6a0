"""The same for workers that span several nodes on Grove, which `PlayedGrove` simulates."""

from collections.abc import Callable, Iterator

import pytest

from cluster.conftest import ControlPlane
from cluster.installed import installed
from faults.grove import CLIQUE, GROUP, SET, PlayedGrove
from faults.scenarios import Scenario, over_nodes
from kube_runtime.types.meta import Kind

GROVE = (SET, CLIQUE, GROUP)

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def operated(kinds: ControlPlane) -> Iterator[ControlPlane]:
    grove = PlayedGrove(kinds.world(""))
    with installed(kinds, ("grove",), GROVE), grove.running():
        yield kinds


@pytest.fixture(scope="module")
def compared() -> tuple[Kind, ...]:
    return GROVE


@pytest.mark.parametrize("scenario", over_nodes("on Grove"), ids=str)
def test_cliques_end_the_same_whenever_it_is_killed(
    scenario: Scenario, survives: Callable[[Scenario], None]
) -> None:
    survives(scenario)
