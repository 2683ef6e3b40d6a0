"""The same for workers that span several nodes: groups, run by the real LeaderWorkerSet controller."""

from collections.abc import Callable

import pytest

from cluster.multinode.conftest import groups, operated
from dynamo_operator.shared.cluster import LeaderWorkerSet, PodGroup
from faults.scenarios import Scenario, over_nodes
from kube_runtime.types.meta import Kind

__all__ = ["groups", "operated"]

pytestmark = [pytest.mark.cluster, pytest.mark.long, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def compared() -> tuple[Kind, ...]:
    return LeaderWorkerSet.KIND, PodGroup.KIND


@pytest.mark.parametrize("scenario", over_nodes("over several nodes"), ids=str)
def test_groups_end_the_same_whenever_it_is_killed(
    scenario: Scenario, survives: Callable[[Scenario], None]
) -> None:
    survives(scenario)
