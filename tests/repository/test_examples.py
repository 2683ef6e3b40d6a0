"""Every example renders without a problem and uses nothing that would be refused."""

from pathlib import Path

import pytest

from dynamo_graphs.facts import Facts
from dynamo_graphs.settings import RenderSettings
from dynamoctl.expansion import expanded
from dynamoctl.manifests import manifests

FOLDER = Path(__file__).parents[2] / "examples"
EXAMPLES = sorted(each for each in FOLDER.glob("*.yaml") if not each.stem.startswith("request-"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_renders(example: Path) -> None:
    (manifest,) = manifests([str(example)])
    document = {
        **manifest.value,
        "metadata": {**manifest.value["metadata"], "namespace": "default"},
    }
    expansion = expanded(document, Facts(), RenderSettings())
    assert () == expansion.problems
    services = document["spec"]["services"]
    deployments = [each for each in expansion.objects if each["kind"] == "Deployment"]
    assert len(services) == len(deployments)


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_named_after_its_file_and_listed(example: Path) -> None:
    (manifest,) = manifests([str(example)])
    assert example.stem == manifest.value["metadata"]["name"]
    assert f"({example.name})" in (FOLDER / "README.md").read_text(encoding="utf-8")
