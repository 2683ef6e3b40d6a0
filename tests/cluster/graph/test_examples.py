"""Every example of a graph becomes ready as it stands."""

from pathlib import Path

import pytest
import yaml

from cluster.conditions import is_ready
from cluster.world import GRAPH, World

FOLDER = Path(__file__).parents[3] / "examples"
# Requests become ready in tests/cluster/profiler, where a profiler runs.
EXAMPLES = sorted(each for each in FOLDER.glob("*.yaml") if not each.stem.startswith("request-"))

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_becomes_ready(example: Path, world: World) -> None:
    body = yaml.safe_load(example.read_text(encoding="utf-8"))
    world.create(GRAPH, body)
    ready = world.eventually(GRAPH, body["metadata"]["name"], is_ready)
    assert set(body["spec"]["services"]) == set(ready["status"]["services"])
