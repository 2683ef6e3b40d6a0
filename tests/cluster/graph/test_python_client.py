"""A Python program with `dynamo_graphs` on a real cluster."""

import io
import re
from contextlib import redirect_stdout
from pathlib import Path

import pytest
import yaml

from cluster.conftest import ControlPlane
from cluster.graph.graphs import IMAGE
from cluster.world import World
from dynamo_graphs import Cluster, Exists, Graph, InvalidObject, Model, NotReady
from dynamo_graphs.fields import ExtraPodMetadata
from dynamo_graphs.reader import Missing
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from kube_runtime.errors import Conflict

# What only a client imports and compiles, once, takes longer than a step of an operator may.
pytestmark = [pytest.mark.cluster, pytest.mark.stalls, pytest.mark.usefixtures("operator")]

ROOT = Path(__file__).parents[3]
PROGRAM = re.compile(r"^```python\n(.*?)^```$(\n\n```text\n(.*?)^```$)?", re.MULTILINE | re.DOTALL)
"""A program, and what it prints, if the page shows that."""
PROGRAMS = (ROOT / "README.md", ROOT / "docs/python.md")
KIND = DynamoGraphDeployment.KIND
MODEL = "Qwen/Qwen3-0.6B"
GRAPH = Graph("chat").frontend(image=IMAGE).worker("Decode", model=MODEL)


@pytest.fixture
def cluster(kinds: ControlPlane, namespace: str) -> Cluster:
    return Cluster(namespace=namespace, kubeconfig=kinds.kubeconfig)


@pytest.fixture
def kubeconfig(kinds: ControlPlane, namespace: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A kubeconfig with the namespace, which programs find as kubectl does."""
    body = yaml.safe_load(kinds.kubeconfig.read_text(encoding="utf-8"))
    body["contexts"][0]["context"]["namespace"] = namespace
    path = tmp_path / "kubeconfig"
    path.write_text(yaml.safe_dump(body), encoding="utf-8")
    monkeypatch.setenv("KUBECONFIG", str(path))
    return path


def test_the_life_of_a_graph(cluster: Cluster, world: World) -> None:
    assert "create" == cluster.diff(GRAPH).verb
    assert "created" == cluster.apply(GRAPH).verb
    shown: list[str] = []
    ready = cluster.wait(GRAPH, seconds=90, seen=lambda it: shown.append(repr(it)))
    assert "<Graph chat: 2 services, 1 GPU, ready>" == shown[-1] == repr(ready)
    assert "1/1 ready · 1 GPU" in ready.svg()
    assert ["chat"] == [each.name for each in cluster.graphs()]
    assert cluster.why(ready).findings[0].startswith(f"{world.namespace}/chat has been ready since")

    larger = GRAPH.service("Decode", replicas=2)
    change = cluster.diff(larger)
    assert [("Decode", "scale")] == [(each.service, each.verb) for each in change.effects]
    assert "configured" == cluster.apply(larger).verb
    assert 2 == len(cluster.wait(larger, seconds=90).spec.services)
    said = cluster.scale("chat", "Decode", 3).message
    assert said.startswith(f"Scaling {world.namespace}/chat/Decode from 2 to 3 replicas")
    assert 3 == cluster.get("chat").spec.services["Decode"].replicas

    cluster.delete(larger, seconds=90)
    assert world.get(KIND, "chat") is None
    with pytest.raises(Missing, match="graph chat not found"):
        cluster.get("chat")


def test_what_is_wrong_is_an_error(cluster: Cluster, world: World) -> None:
    empty = Graph("empty")
    with pytest.raises(InvalidObject, match="must have at least one service"):
        cluster.apply(empty)
    assert world.get(KIND, "empty") is None
    cluster.apply(GRAPH)
    world.eventually(KIND, "chat")
    world.apply(KIND, {**GRAPH.service("Decode", replicas=5).to_dict("v1alpha1")})
    with pytest.raises(Conflict, match="force"):
        cluster.apply(GRAPH)
    assert "configured" == cluster.apply(GRAPH, force=True).verb
    with pytest.raises(Missing, match='service "Decod" not found; did you mean'):
        cluster.scale("chat", "Decod", 1)
    assert "created" == cluster.apply(Model("m", model_name=MODEL, base_model_name=MODEL)).verb
    assert world.get(DynamoModel.KIND, "m") is not None


def test_why_a_graph_is_not_ready(cluster: Cluster, world: World) -> None:
    metadata: ExtraPodMetadata = {"annotations": {"fake-kubelet": "no-image"}}
    broken = GRAPH.service("Decode", extra_pod_metadata=metadata)
    cluster.apply(broken)
    pulled = "image_pull_failed"
    world.eventually(KIND, "chat", lambda it: pulled in str(it.get("status")))
    with pytest.raises(NotReady) as caught:
        cluster.wait(broken, seconds=0.1)
    # Frontend may still start, so its cause may be there too.
    assert re.search(r"^Decode: The image \S+ cannot", str(caught.value), re.MULTILINE)
    assert caught.value.explanation.advice
    logs = cluster.logs(broken, "Decode")
    assert [] == logs.lines
    assert 1 == len(logs.unread)


LORA = Model.lora("support", model="support", base=MODEL, uri="s3://bucket/support")


def test_the_life_of_a_model(cluster: Cluster, world: World) -> None:
    assert "create" == LORA.diff(cluster).verb
    assert "created" == LORA.apply(cluster).verb
    world.eventually(DynamoModel.KIND, "support", lambda it: "status" in it)
    with pytest.raises(NotReady, match=f"{world.namespace}/support was not ready within 0.1 s"):
        LORA.wait(cluster, seconds=0.1)
    assert "No endpoint" in str(LORA.why(cluster))
    assert "<Model support: not ready (NoEndpoints)>" == repr(LORA.get(cluster))
    LORA.delete(cluster, seconds=60)
    assert world.get(DynamoModel.KIND, "support") is None


def test_a_temporary_graph_is_gone_after_an_error_and_never_one_that_was_there(
    cluster: Cluster, world: World
) -> None:
    with GRAPH.temporary(cluster, seconds=90) as ready:
        assert "<Graph chat: 2 services, 1 GPU, ready>" == repr(ready)
        assert f"http://chat-frontend.{world.namespace}:8000" == ready.url(cluster)
        kinds = {event.object.partition("/")[0] for event in ready.events(cluster)}
        assert {"Deployment", "DynamoGraphDeployment"} <= kinds
    assert world.get(KIND, "chat") is None
    with pytest.raises(NotReady), GRAPH.temporary(cluster, seconds=0.1):
        pass
    assert world.get(KIND, "chat") is None
    cluster.apply(GRAPH)
    with pytest.raises(Exists, match="exists already"), GRAPH.temporary(cluster):
        pass
    assert world.get(KIND, "chat") is not None


def test_a_graph_is_suspended_restarted_and_rolled_back(cluster: Cluster, world: World) -> None:
    GRAPH.apply(cluster)
    GRAPH.wait(cluster, seconds=90)
    assert GRAPH.suspend(cluster).message.startswith("Suspending")
    assert GRAPH.resume(cluster).message.startswith("Resuming")
    GRAPH.service("Decode", env={"A": "1"}).apply(cluster)
    world.until(lambda: 2 == len(GRAPH.history(cluster)))
    change = GRAPH.undo(cluster=cluster, dry_run=True).change
    assert change is not None
    assert ["restart"] == [effect.verb for effect in change.effects]
    GRAPH.undo(cluster=cluster)
    assert () == GRAPH.get(cluster).spec.services["Decode"].envs
    assert GRAPH.restart(cluster).message.startswith("Restarting")


@pytest.mark.parametrize("page", PROGRAMS, ids=lambda it: it.name)
@pytest.mark.usefixtures("kubeconfig")
def test_the_programs_of_a_page(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    blocks = PROGRAM.findall(text)
    assert ".apply()" in "".join(program for program, _, _ in blocks)
    names: dict[str, object] = {}
    for program, has_output, output in blocks:
        printed = io.StringIO()
        with redirect_stdout(printed):
            exec(program, names)  # noqa: S102  our own page
        if has_output:
            assert output == printed.getvalue()
