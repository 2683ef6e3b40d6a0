"""The schema of our kinds on a real API server: documents, statuses, and what `kubectl` shows of them."""

import itertools
import json
import runpy
from pathlib import Path
from typing import Any

import pytest

from cluster.api import statuses
from cluster.api.documents import BAD, GOOD, graph, service
from cluster.api.judge import Judge
from cluster.conftest import ControlPlane
from cluster.world import Refused
from dynamo_graphs.schema import schema_problems
from dynamo_operator.crds import RESOURCES, defaulted
from kube_runtime.types.meta import Object

CLAIM: Object = {"size": "1Gi", "storageClass": "fast", "volumeAccessMode": "ReadWriteOnce"}


@pytest.mark.parametrize("name", GOOD)
def test_a_good_document_is_taken_and_stored_with_the_same_defaults(judge: Judge, name: str) -> None:
    document = GOOD[name]
    stored = judge.stored(document)
    assert () == schema_problems(document)
    assert stored.get("spec") == defaulted(document).get("spec")


@pytest.mark.parametrize("name", BAD)
def test_a_bad_document_is_refused_for_the_same_fields(judge: Judge, name: str) -> None:
    document, paths = BAD[name]
    assert judge.refusal(document)
    assert paths == {problem.path for problem in schema_problems(document)}


def test_the_rule_of_claims_holds_with_each_optional_field_absent(judge: Judge) -> None:
    for create in (None, False, True):
        for size in range(len(CLAIM) + 1):
            for names in itertools.combinations(CLAIM, size):
                claim: dict[str, Any] = {"name": "c", **{name: CLAIM[name] for name in names}}
                if create is not None:
                    claim["create"] = create
                document = graph({"pvcs": [claim]})
                is_wrong = create is True and size < len(CLAIM)
                assert is_wrong == bool(judge.refusal(document)), claim
                assert is_wrong == bool(schema_problems(document)), claim


def test_labels_and_annotations_of_an_embedded_template_survive(judge: Judge) -> None:
    metadata = {"labels": {"a": "b"}, "annotations": {"c": "d"}}
    template = {"metadata": metadata, "spec": {"accessModes": ["ReadWriteOnce"]}}
    volume = {"name": "v", "ephemeral": {"volumeClaimTemplate": template}}
    stored = judge.stored(service({"extraPodSpec": {"volumes": [volume]}}))
    (kept,) = stored["spec"]["services"]["A"]["extraPodSpec"]["volumes"]
    assert metadata == kept["ephemeral"]["volumeClaimTemplate"]["metadata"]


@pytest.mark.parametrize("name", statuses.GOOD)
def test_a_status_is_kept_as_it_was_written(judge: Judge, namespace: str, name: str) -> None:
    owner, status = statuses.GOOD[name]
    assert status == judge.status(in_namespace(owner, namespace), status)


@pytest.mark.parametrize("name", statuses.BAD)
def test_a_status_that_breaks_a_rule_is_refused(judge: Judge, namespace: str, name: str) -> None:
    owner, status = statuses.BAD[name]
    with pytest.raises(Refused, match="is invalid"):
        judge.status(in_namespace(owner, namespace), status)


def in_namespace(owner: Object, namespace: str) -> Object:
    return {**owner, "metadata": {"name": "x", "namespace": namespace}}


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


def test_every_definition_is_structural_and_its_names_are_accepted(kinds: ControlPlane) -> None:
    for resource in RESOURCES:
        found = json.loads(kinds.kubectl("get", "crd", str(resource.KIND), "-o", "json"))
        conditions = {each["type"]: each["status"] for each in found["status"]["conditions"]}
        assert "True" == conditions["Established"]
        assert "True" == conditions["NamesAccepted"]
        assert "True" != conditions.get("NonStructuralSchema")


def test_one_word_lists_what_users_write(kinds: ControlPlane, namespace: str) -> None:
    kinds.kubectl("create", "-n", namespace, "-f", "-", input=MODEL)
    listed = kinds.kubectl("get", "dynamo", "-n", namespace, "-o", "name").split()
    assert 1 == len(listed)
    assert listed[0].startswith("dynamomodel.nvidia.com/")


@pytest.mark.parametrize("leaf", LEAVES)
def test_kubectl_explains_a_leaf(kinds: ControlPlane, leaf: str) -> None:
    text = kinds.kubectl("explain", leaf)
    assert f"FIELD: {leaf.rpartition('.')[2]}" in text


def test_kubectl_explains_our_fields_in_our_words(kinds: ControlPlane) -> None:
    text = kinds.kubectl("explain", "dgd.spec.services.multinode.nodeCount")
    assert "Number of nodes of each replica." in " ".join(text.split())


def test_the_embedded_types_are_those_of_this_api_server(control_plane: ControlPlane) -> None:
    tool = runpy.run_path(str(ROOT / "tools/pod_schema.py"))
    documents = [json.loads(control_plane.kubectl("get", "--raw", path)) for path in tool["DOCUMENTS"]]
    assert tool["text"](documents) == tool["TARGET"].read_text()
