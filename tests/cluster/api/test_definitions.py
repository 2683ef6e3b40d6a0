"""The API server serves our kinds as users expect them from `kubectl`."""

import json
import runpy
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from dynamo_operator.crds import RESOURCES

ROOT = Path(__file__).parents[3]
MODEL = """
apiVersion: nvidia.com/v1alpha1
kind: DynamoModel
metadata: {name: m}
spec: {modelName: a, baseModelName: b}
"""
LEAVES = (
    "dgd.spec.services.extraPodSpec.mainContainer.livenessProbe.httpGet.port",
    "dgd.spec.services.eppConfig.config.schedulingProfiles.plugins.pluginRef",
    "dgdr.spec.profilingConfig.resources.limits",
    "dgdsa.spec.dgdRef.serviceName",
    "dm.spec.source.uri",
    "dwm.spec.data",
)


def test_every_definition_is_structural_and_its_names_are_accepted(definitions: ControlPlane) -> None:
    for resource in RESOURCES:
        found = json.loads(definitions.kubectl("get", "crd", str(resource.KIND), "-o", "json"))
        conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
        assert "True" == conditions["Established"]
        assert "True" == conditions["NamesAccepted"]
        assert "True" != conditions.get("NonStructuralSchema")


def test_one_word_lists_what_users_write(definitions: ControlPlane, namespace: str) -> None:
    definitions.kubectl("create", "-n", namespace, "-f", "-", input=MODEL)
    listed = definitions.kubectl("get", "dynamo", "-n", namespace, "-o", "name").split()
    assert 1 == len(listed)
    assert listed[0].startswith("dynamomodel.nvidia.com/")


@pytest.mark.parametrize("leaf", LEAVES)
def test_kubectl_explains_a_leaf(definitions: ControlPlane, leaf: str) -> None:
    text = definitions.kubectl("explain", leaf)
    assert f"FIELD: {leaf.rpartition('.')[2]}" in text


def test_kubectl_explains_our_fields_in_our_words(definitions: ControlPlane) -> None:
    text = definitions.kubectl("explain", "dgd.spec.services.multinode.nodeCount")
    assert "Number of nodes of each replica." in " ".join(text.split())


def test_the_embedded_types_are_those_of_this_api_server(control_plane: ControlPlane) -> None:
    tool = runpy.run_path(str(ROOT / "tools/pod_schema.py"))
    documents = [json.loads(control_plane.kubectl("get", "--raw", path)) for path in tool["DOCUMENTS"]]
    assert tool["text"](documents) == tool["TARGET"].read_text()
