"""What `dynamoctl new` prints becomes ready."""

import pytest
import yaml

from cluster.conditions import is_ready
from cluster.graph.test_graph import GRAPH
from cluster.world import World
from dynamoctl.main import app
from kube_runtime.commandline import execute

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


@pytest.mark.parametrize("mode", ["aggregated", "disaggregated"])
def test_a_new_graph_becomes_ready(mode: str, world: World, capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--model", "openai/gpt-oss-120b", "--gpu", "h200_sxm", "--mode", mode]
    execute(app(), ["new", "chat", *flags])
    body = yaml.safe_load(capsys.readouterr().out)
    world.create(GRAPH, body)
    ready = world.eventually(GRAPH, "chat", is_ready)
    assert set(body["spec"]["services"]) == set(ready["status"]["services"])
