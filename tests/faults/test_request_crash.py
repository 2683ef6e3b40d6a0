"""A request is carried out to the same end, whichever of its writes the operator dies at.

The Job's pod is played: it ends well, or badly, as soon as the request says that it profiles.
"""

from collections.abc import Callable
from typing import Any

import pytest

from cluster.requests.playing import JOB, REQUEST, Player, a_graph, a_request, state, terminated
from cluster.world import World
from dynamo_operator import names
from faults.scenarios import Scenario
from kube_runtime.types.kinds import ServiceAccount
from kube_runtime.types.meta import Kind

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1800)]

CURVES = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "planner-profile-data"},
    "data": {"a.json": "{}"},
}


def requested(**spec: Any) -> Callable[[World], object]:
    """Have the user ask, where an operator of one namespace works."""

    def act(world: World) -> None:
        world.create(ServiceAccount.KIND, {"metadata": {"name": names.PROFILING_SERVICE_ACCOUNT}})
        world.create(REQUEST, a_request(**spec))

    return act


def profiled(ends: Callable[[Player], None], *wanted: str) -> Callable[[World], bool]:
    """Whether the request is in one of these states; its pod ends on the way."""

    def is_over(world: World) -> bool:
        request, player = world.get(REQUEST, "chat"), Player(world)
        if request is not None and state(request) == "Profiling" and player.pods():
            ends(player)
        return request is not None and state(request) in wanted

    return is_over


def well(player: Player) -> None:
    player.finds(CURVES, a_graph())


def badly(player: Player) -> None:
    player.ends("Failed", terminated(2, "KeyError: sla"), terminated(0))


SCENARIOS = (
    Scenario("a request that is deployed", None, requested(autoApply=True), profiled(well, "Ready")),
    Scenario("a request that is not deployed", None, requested(), profiled(well, "Ready")),
    Scenario("a request that fails", None, requested(), profiled(badly, "Failed")),
)


@pytest.fixture(scope="module")
def compared() -> tuple[Kind, ...]:
    return REQUEST, JOB


@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_whenever_the_operator_is_killed_a_request_comes_to_the_same_end(
    scenario: Scenario, survives: Callable[[Scenario], None]
) -> None:
    survives(scenario)
