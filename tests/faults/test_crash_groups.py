"""The same for workers that span several nodes: groups of pods, and what Grove makes of a set.

Groups are run by the real LeaderWorkerSet controller. Nobody runs Grove but `PlayedGrove`.
"""

from collections.abc import Iterator, Mapping

import pytest

from cluster.conftest import ControlPlane
from cluster.graph.graphs import service, worker
from cluster.graph.test_graph import GRAPH
from cluster.installed import installed
from cluster.multinode.conftest import groups
from cluster.world import World
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_operator.kube.types.leaderworkerset import LeaderWorkerSet
from dynamo_operator.kube.types.volcano import PodGroup
from faults.grove import PlayedGrove
from faults.playing import Run, all_survived, asked, played
from faults.scenarios import IMAGE, Scenario, a_graph, edit_service, is_gone
from faults.stage import stage_on, tls_of

__all__ = ["groups"]

GROVE = (PodCliqueSet.KIND, PodClique.KIND, PodCliqueScalingGroup.KIND)
GROUPS = (LeaderWorkerSet.KIND, PodGroup.KIND)

pytestmark = pytest.mark.cluster


def spread() -> Object:
    """A frontend, and a worker over two nodes."""
    wide = worker("decode", resources=None, multinode={"nodeCount": 2})
    return a_graph(Frontend=service("frontend"), Decode=wide)


def create(world: World) -> object:
    return world.create(GRAPH, spread())


def delete(world: World) -> None:
    world.delete(GRAPH, "chat")


ON_GROUPS = (
    Scenario("create, over several nodes", None, create),
    Scenario("edit the image over several nodes", spread(), edit_service("Decode", IMAGE)),
    Scenario("scale over several nodes", spread(), edit_service("Decode", {"replicas": 2})),
    Scenario("delete, over several nodes", spread(), delete, is_gone),
)
ON_GROVE = (
    Scenario("create on Grove", None, create),
    Scenario("edit the image on Grove", spread(), edit_service("Decode", IMAGE)),
    Scenario("scale on Grove", spread(), edit_service("Decode", {"replicas": 2})),
    Scenario("delete on Grove", spread(), delete, is_gone),
)


@pytest.fixture(scope="module")
def runs_on_groups(
    groups: ControlPlane,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mapping[Scenario, Run]]:
    """The scenarios of groups that are asked for."""
    chosen = [each for each in asked(request) if each in ON_GROUPS]
    folder = tmp_path_factory.mktemp("groups-stage")
    with stage_on(groups, tls_of(groups), folder, *GROUPS) as stage, played(stage, chosen) as found:
        yield found


@pytest.fixture(scope="module")
def runs_on_grove(
    kinds: ControlPlane,
    request: pytest.FixtureRequest,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Mapping[Scenario, Run]]:
    """The scenarios of Grove that are asked for."""
    chosen = [each for each in asked(request) if each in ON_GROVE]
    tls, folder = tls_of(kinds), tmp_path_factory.mktemp("grove-stage")
    with (
        installed(kinds, ("grove",), GROVE),
        PlayedGrove(World(kinds.server, tls, "")).running(),
        stage_on(kinds, tls, folder, *GROVE) as stage,
        played(stage, chosen) as found,
    ):
        yield found


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scenario", ON_GROUPS, ids=str)
def test_groups_end_the_same_whenever_it_is_killed(
    scenario: Scenario,
    runs_on_groups: Mapping[Scenario, Run],
    survived: list[tuple[str, int, int]],
) -> None:
    survived.append(all_survived(scenario, runs_on_groups[scenario]))


@pytest.mark.timeout(1800)
@pytest.mark.parametrize("scenario", ON_GROVE, ids=str)
def test_cliques_end_the_same_whenever_it_is_killed(
    scenario: Scenario,
    runs_on_grove: Mapping[Scenario, Run],
    survived: list[tuple[str, int, int]],
) -> None:
    survived.append(all_survived(scenario, runs_on_grove[scenario]))
