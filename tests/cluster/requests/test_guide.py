"""The instructions of `docs/requests.md` work, in the order in which users read them."""

from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cluster.guides import commands, written
from cluster.requests.playing import BY_HAND, JOB, REQUEST, Player, a_graph, documents
from cluster.world import GRAPH, QUOTAS, World
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

PAGE = "requests.md"


def profiled(world: World, player: Player, name: str, graph: Object) -> None:
    """Have profiling end well; the cluster ends pods at once, so none comes before the results."""
    world.eventually(JOB, f"profile-{name}")
    player.writes(name, config_with_planner_yaml=documents(graph))
    world.delete(QUOTAS, "none")


@pytest.fixture(autouse=True)
def _no_pods_yet(world: World) -> None:
    world.create(QUOTAS, {"metadata": {"name": "none"}, "spec": {"hard": {"pods": "0"}}})


def test_the_first_request_is_asked_watched_and_read(
    world: World, player: Player, kubectl: Callable[..., str], tmp_path: Path
) -> None:
    first, *_ = written(PAGE)
    apply, get, wait, read = commands(PAGE)
    file = tmp_path / "request.yaml"
    file.write_text(yaml.safe_dump(first), encoding="utf-8")
    kubectl(*(str(file) if each == "request.yaml" else each for each in apply))
    player.is_in("Profiling")
    assert "Profiling is in progress" in kubectl(*get)
    profiled(world, player, "chat", a_graph())
    kubectl(*wait)
    assert "generated" == yaml.safe_load(kubectl(*read))["metadata"]["name"]


def test_the_second_request_is_applied_under_the_name_that_it_asks_for(world: World, player: Player) -> None:
    _, second, _ = written(PAGE)
    second["spec"]["profilingConfig"]["resources"] = BY_HAND  # its pod has to report the results
    world.create(REQUEST, second)
    world.delete(QUOTAS, "none")
    player.finds(a_graph(), name="chat-now")
    player.is_in("Ready", "chat-now", within_seconds=180)
    graph = world.read(GRAPH, "chat-production")
    assert "search" == graph["metadata"]["labels"]["team"]
    tolerations = graph["spec"]["services"]["W"]["extraPodSpec"]["tolerations"]
    assert [{"key": "nvidia.com/gpu", "operator": "Exists"}] == tolerations
