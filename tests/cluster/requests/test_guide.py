"""The instructions of `docs/requests.md` work, in their order, also those of the section about v1alpha1."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml

from cluster.conftest import ControlPlane
from cluster.converter import converter
from cluster.guides import command, commands, written
from cluster.requests.playing import BY_HAND, REQUEST, Player, a_graph
from cluster.served import serving
from cluster.world import GRAPH, World
from dynamoctl.main import app
from kube_runtime.commandline import execute
from kube_runtime.types.meta import Kind, Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

PAGE = "requests.md"
TEXT = (Path(__file__).parents[3] / "docs" / PAGE).read_text(encoding="utf-8")
LATER = Kind("nvidia.com", "v1beta1", "DynamoGraphDeploymentRequest")


@pytest.fixture(scope="module")
def operated(kinds: ControlPlane) -> Iterator[ControlPlane]:
    """A new cluster: the API server stores v1beta1, and has requests in v1alpha1 converted."""
    with converter() as webhook, serving(kinds, "v1beta1", "v1alpha1", conversion=webhook):
        yield kinds


def by_hand(request: Object) -> Object:
    """A request of the page whose pod the test runs."""
    job = {"template": {"spec": {"containers": [{"name": "profiler", "resources": BY_HAND}]}}}
    overrides = {**request["spec"].get("overrides", {}), "profilingJob": job}
    return {**request, "spec": {**request["spec"], "overrides": overrides}}


def lines_of(program: str) -> list[str]:
    """The lines of that program in the section about v1alpha1."""
    return re.findall(rf"^    \$ ({program} .*)$", TEXT, re.MULTILINE)


def test_the_name_of_a_model_becomes_a_graph(
    world: World, player: Player, kubectl: Callable[..., str], tmp_path: Path
) -> None:
    first, *_ = written(PAGE)
    create, wait, get, read, _ = commands(PAGE)
    file = tmp_path / "request.yaml"
    file.write_text(yaml.safe_dump(by_hand(first)), encoding="utf-8")
    kubectl(*(str(file) if word == "request.yaml" else word for word in create))
    player.finds(a_graph(), file="final_config")
    kubectl(*wait)
    *_, shown = kubectl(*get).splitlines()
    assert ["chat", "Qwen/Qwen3-0.6B", "auto", "Deployed"] == shown.split()[:4]
    generated = yaml.safe_load(kubectl(*read))
    assert ("nvidia.com/v1beta1", "generated") == (generated["apiVersion"], generated["metadata"]["name"])
    assert "successful" == world.read(GRAPH, "chat")["status"]["state"]
    (former,) = lines_of("kubectl")
    line, _, _ = former.partition(" # ")
    request = yaml.safe_load(kubectl(*command(f"$ {line}")))
    assert ("nvidia.com/v1alpha1", "Ready") == (request["apiVersion"], request["status"]["state"])


def test_a_graph_is_reviewed_before_it_is_created_under_the_name_of_the_override(
    world: World, player: Player, kubectl: Callable[..., str]
) -> None:
    _, reviewed, _ = written(PAGE)
    *_, switch = commands(PAGE)
    world.create(LATER, by_hand(reviewed))
    player.finds(a_graph(), name="chat-reviewed", file="final_config")
    request = world.eventually(LATER, "chat-reviewed", lambda it: it["status"].get("phase") == "Ready")
    assert "search" == request["status"]["profilingResults"]["selectedConfig"]["metadata"]["labels"]["team"]
    assert world.get(GRAPH, "chat-production") is None
    kubectl(*switch)
    world.eventually(LATER, "chat-reviewed", lambda it: it["status"].get("phase") == "Deployed")
    assert "search" == world.read(GRAPH, "chat-production")["metadata"]["labels"]["team"]


def test_a_file_is_converted_if_it_names_an_image(
    kubectl: Callable[..., str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    first, reviewed, _ = written(PAGE)
    (line,) = lines_of("dynamoctl")
    file = tmp_path / "request.yaml"
    words = [str(file) if word == "request.yaml" else word for word in line.split()[1:]]
    file.write_text(yaml.safe_dump(reviewed), encoding="utf-8")
    execute(app(), words)
    converted = capsys.readouterr().out
    assert "nvidia.com/v1alpha1" == yaml.safe_load(converted)["apiVersion"]
    kubectl("apply", "--dry-run=server", "--filename=-", input=converted)
    file.write_text(yaml.safe_dump(first), encoding="utf-8")
    with pytest.raises(SystemExit):
        execute(app(), words)
    assert "" == capsys.readouterr().out


def test_the_request_in_v1alpha1_is_applied_under_the_name_that_it_asks_for(
    world: World, player: Player
) -> None:
    *_, former = written(PAGE)
    former["spec"]["profilingConfig"]["resources"] = BY_HAND  # its pod has to report the results
    world.create(REQUEST, former)
    player.finds(a_graph(), name="chat-now")
    player.is_in("Ready", "chat-now", within_seconds=180)
    graph = world.read(GRAPH, "chat-production")
    assert "search" == graph["metadata"]["labels"]["team"]
    tolerations = graph["spec"]["services"]["W"]["extraPodSpec"]["tolerations"]
    assert [{"key": "nvidia.com/gpu", "operator": "Exists"}] == tolerations
