"""Manifests of Dynamo's repository, which are of v1beta1, are checked, rendered and converted as they are."""

from itertools import pairwise
from pathlib import Path

import pytest

from dynamo_graphs.comments import converted_text
from dynamo_graphs.offline import expanded, installed_settings
from dynamo_graphs.versions import has_versions, in_version
from dynamo_operator.documents import Document, documents
from dynamo_operator.shared.cluster import Facts
from dynamoctl.authoring.lint import findings_of
from dynamoctl.authoring.manifest import read_manifests
from kube_runtime.types.meta import Object

FILES = sorted(Path(__file__, "..", "manifests").resolve().glob("*.yaml"))
FACTS = Facts(lws_served=True, inference_pools_served=True)


def converted(file: Path) -> list[Document]:
    return [document for document in documents(file.name, file.read_text()) if has_versions(document.value)]


def rendered(document: Object) -> list[Object]:
    """What is created but for components, whose fields are those of the graph."""
    placed = {**document, "metadata": {"namespace": "default", **document["metadata"]}}
    expansion = expanded(placed, FACTS, installed_settings())
    assert () == expansion.problems
    return [it for it in expansion.objects if it["kind"] != "DynamoComponentDeployment"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_has_no_problem_and_each_of_its_objects_is_checked(file: Path) -> None:
    manifests = read_manifests([str(file)])
    found = [it for one in manifests for it in findings_of(one, "default", installed_settings())]
    assert [] == [finding for finding in found if finding.level == "error"]
    assert converted(file)


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_creates_the_same_in_either_version(file: Path) -> None:
    for document in converted(file):
        earlier = in_version(document.value, "v1alpha1")
        again = in_version(earlier, "v1beta1")
        results = [rendered(it) for it in (document.value, earlier, again)]
        assert results[0]
        assert all(one == other for one, other in pairwise(results))


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_it_keeps_its_comments(file: Path) -> None:
    for document in converted(file):
        text = converted_text(document.text, document.value, in_version(document.value, "v1alpha1"))
        lines = (line.strip() for line in document.text.splitlines())
        for comment in (line for line in lines if line.startswith("#")):
            assert comment in text
