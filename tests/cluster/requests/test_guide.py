"""The instructions of `docs/requests.md` work, in the order in which users read them."""

import re
import shlex
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from cluster.requests.playing import BY_HAND, GRAPH, JOB, QUOTAS, REQUEST, Player, a_graph, documents
from cluster.world import World
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

PAGE = Path(__file__).parents[3] / "docs" / "requests.md"
BLOCK = re.compile(r"```(yaml|console)\n(.*?)```", re.DOTALL)


def blocks(wanted: str) -> list[str]:
    found = BLOCK.findall(PAGE.read_text(encoding="utf-8"))
    return [text for kind, text in found if kind == wanted]


def manifests() -> list[Object]:
    return [yaml.safe_load(text) for text in blocks("yaml")]


def commands() -> list[list[str]]:
    """The commands of the page, without `kubectl`."""
    lines = "".join(blocks("console")).splitlines()
    return [shlex.split(line.removeprefix("$ kubectl ")) for line in lines]


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
    first, _ = manifests()
    apply, get, wait, read = commands()
    file = tmp_path / "request.yaml"
    file.write_text(yaml.safe_dump(first), encoding="utf-8")
    kubectl(*(str(file) if each == "request.yaml" else each for each in apply))
    player.is_in("Profiling")
    assert "Profiling is in progress" in kubectl(*get)
    profiled(world, player, "chat", a_graph())
    kubectl(*wait)
    assert "generated" == yaml.safe_load(kubectl(*read))["metadata"]["name"]


def test_the_second_request_is_applied_under_the_name_that_it_asks_for(world: World, player: Player) -> None:
    _, second = manifests()
    second["spec"]["profilingConfig"]["resources"] = BY_HAND  # its pod has to report the results
    world.create(REQUEST, second)
    world.delete(QUOTAS, "none")
    player.finds(a_graph(), name="chat-now")
    player.is_in("Ready", "chat-now", within_seconds=180)
    graph = world.get(GRAPH, "chat-production")
    assert graph is not None
    assert "search" == graph["metadata"]["labels"]["team"]
    tolerations = graph["spec"]["services"]["W"]["extraPodSpec"]["tolerations"]
    assert [{"key": "nvidia.com/gpu", "operator": "Exists"}] == tolerations
