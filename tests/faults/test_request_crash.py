"""A request is carried out to the same end, whichever of its writes the operator dies at.

The Job's pod is played: it ends well, or badly, as soon as the request says that it profiles.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest

from cluster.conftest import ControlPlane
from cluster.requests.playing import (
    JOB,
    REQUEST,
    Player,
    a_graph,
    a_request,
    documents,
    state,
    terminated,
)
from cluster.world import PODS, World
from dynamo_operator.api import names
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.core import ServiceAccount
from faults.playing import Run, all_survived, asked, played
from faults.scenarios import Scenario
from faults.stage import Stage, stage_on, tls_of

pytestmark = pytest.mark.cluster

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
        request = world.get(REQUEST, "chat")
        if request is not None and state(request) == "Profiling" and _waits(world):
            ends(Player(world))
        return request is not None and state(request) in wanted

    return is_over


def well(player: Player) -> None:
    """Have profiling find a graph, and ConfigMaps for it."""
    player.writes(config_with_planner_yaml=documents(CURVES, a_graph()))
    player.succeeds()


def badly(player: Player) -> None:
    """Have the profiler crash."""
    player.ends("Failed", terminated(2, "KeyError: sla"), terminated(0))


def _waits(world: World) -> bool:
    pods: list[Object] = world.list(PODS)
    return any(
        each["metadata"].get("labels", {}).get("dgdr.nvidia.com/name") == "chat"
        and each["status"].get("phase") not in ("Succeeded", "Failed")
        for each in pods
    )


SCENARIOS = (
    Scenario(
        "a request that is deployed", None, requested(autoApply=True), profiled(well, "Ready")
    ),
    Scenario("a request that is not deployed", None, requested(), profiled(well, "Ready")),
    Scenario("a request that fails", None, requested(), profiled(badly, "Failed")),
)


@pytest.fixture(scope="module")
def request_stage(kinds: ControlPlane, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage on which requests are compared as well."""
    folder = tmp_path_factory.mktemp("request-stage")
    with stage_on(kinds, tls_of(kinds), folder, REQUEST, JOB) as found:
        yield found


@pytest.fixture(scope="module")
def runs(request_stage: Stage, request: pytest.FixtureRequest) -> Iterator[Mapping[Scenario, Run]]:
    """All scenarios that are asked for."""
    with played(request_stage, asked(request)) as found:
        yield found


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=str)
def test_whenever_the_operator_is_killed_a_request_comes_to_the_same_end(
    scenario: Scenario, runs: Mapping[Scenario, Run], survived: list[tuple[str, int, int]]
) -> None:
    survived.append(all_survived(scenario, runs[scenario]))
