"""A document in the other version is one that a person could have written, and loses nothing."""

import json
from itertools import pairwise
from typing import Any

import pytest

from dynamo_graphs import Graph, InvalidObject
from dynamo_graphs.comments import converted_text
from dynamo_graphs.versions import in_version, notes_of
from dynamo_operator.documents import documents
from kube_runtime.types.meta import Object

GRAPH = """\
# A chat model.
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata:
  name: chat  # also its DNS name
spec:
  services:
    Worker:
      componentType: worker
      # Two of them survive the loss of a node.
      replicas: 2
      resources:
        limits:
          gpu: "1"  # of any kind
      extraPodSpec:
        mainContainer:
          image: example.com/vllm:1
          args:
            - |
              # no comment
              exec python3 -m dynamo.vllm
    Frontend:
      componentType: frontend
      extraPodSpec:
        mainContainer:
          image: example.com/vllm:1
# The end.
"""
CONVERTED = """\
# A chat model.
apiVersion: nvidia.com/v1beta1
kind: DynamoGraphDeployment
metadata:
  name: chat  # also its DNS name
spec:
  components:
  - name: Worker
    type: worker
    # Two of them survive the loss of a node.
    replicas: 2
    podTemplate:
      spec:
        containers:
        - name: main
          image: example.com/vllm:1
          args:
          - |
            # no comment
            exec python3 -m dynamo.vllm
          resources:
            limits:
              nvidia.com/gpu: '1'  # of any kind
  - name: Frontend
    type: frontend
    podTemplate:
      spec:
        containers:
        - name: main
          image: example.com/vllm:1
# The end.
"""


def read(text: str) -> Object:
    (document,) = documents("text", text)
    value: Object = document.value
    return value


def comments(text: str) -> set[str]:
    """The comments, each with the line that it is in or above."""
    lines = [line.strip().removeprefix("- ").replace('"', "'") for line in text.splitlines()]
    return {
        " ".join(pair) if pair[0].startswith("#") else pair[0] for pair in pairwise(lines) if "#" in pair[0]
    }


def test_order_and_comments_stay_and_no_annotation_is_added_without_need() -> None:
    document = read(GRAPH)
    assert CONVERTED == converted_text(GRAPH, document, in_version(document, "v1beta1"))


def test_the_way_back_is_the_same_graph_with_its_comments() -> None:
    document, later = read(GRAPH), read(CONVERTED)
    earlier = in_version(later, "v1alpha1")
    assert document == earlier
    text = converted_text(CONVERTED, later, earlier)
    assert comments(GRAPH) == comments(text)


def test_a_field_that_only_one_version_has_comes_back() -> None:
    document = read(GRAPH)
    document["spec"]["pvcs"] = [
        {
            "name": "models",
            "create": True,
            "size": "1Gi",
            "storageClass": "fast",
            "volumeAccessMode": "ReadWriteMany",
        }
    ]
    later = in_version(document, "v1beta1")
    assert ("nvidia.com/dgd-spec",) == notes_of(later)
    assert document["spec"] == in_version(later, "v1alpha1")["spec"]


@pytest.mark.parametrize("created", [{}, {"size": "20Gi", "storage_class": "shared"}])
def test_a_pvc_has_an_annotation_in_v1beta1_only_where_the_operator_creates_it(created: Any) -> None:
    graph = Graph("chat").pvc("models").pvc("kernels", **created).frontend()
    document = graph.worker(model="m/n", mounts={"models": "/models"}, cache="kernels").to_dict("v1beta1")
    notes = document["metadata"].get("annotations", {})
    saved = [json.loads(text)["spec"] for text in notes.values()]
    assert [["kernels"]] * bool(created) == [[it["name"] for it in spec["pvcs"]] for spec in saved]
    assert all({"pvcs"} == spec.keys() for spec in saved)


def test_a_mount_of_a_cache_without_a_path_is_no_mount_of_the_container() -> None:
    document = read(GRAPH)
    cache: list[Any] = [{"name": "kernels", "useAsCompilationCache": True}]
    document["spec"]["services"]["Worker"]["volumeMounts"] = cache
    component = in_version(document, "v1beta1")["spec"]["components"][0]
    assert {"pvcName": "kernels"} == component["compilationCache"]
    assert "volumeMounts" not in component["podTemplate"]["spec"]["containers"][0]


def test_an_unknown_field_is_a_problem_and_does_not_get_lost() -> None:
    with pytest.raises(InvalidObject, match=r"spec\.components\[1\]\.replica: unknown field"):
        in_version(read(CONVERTED.replace("    type: frontend", "    replica: 2")), "v1alpha1")


def test_what_the_other_version_would_refuse_has_no_form_in_it() -> None:
    request = {
        "apiVersion": "nvidia.com/v1beta1",
        "kind": "DynamoGraphDeploymentRequest",
        "metadata": {"name": "r"},
        "spec": {"model": "m"},
    }
    with pytest.raises(InvalidObject, match=r"no form in v1alpha1: spec\.profilingConfig"):
        in_version(request, "v1alpha1")


def test_a_graph_reads_and_writes_either_version() -> None:
    earlier, later = Graph.from_yaml(GRAPH), Graph.from_yaml(CONVERTED)
    assert earlier == later
    assert (GRAPH, CONVERTED) == (earlier.to_yaml(), earlier.to_yaml("v1beta1"))
    assert (CONVERTED, CONVERTED) == (later.to_yaml(), later.to_yaml("v1beta1"))
    assert read(CONVERTED) == later.to_dict()
    assert read(GRAPH) == later.to_dict("v1alpha1")


def test_a_new_graph_is_written_in_v1beta1_unless_a_program_chooses(monkeypatch: pytest.MonkeyPatch) -> None:
    graph = Graph("chat").frontend(image="example.com/vllm:1")
    assert "nvidia.com/v1beta1" == graph.to_dict()["apiVersion"]
    assert "nvidia.com/v1alpha1" == graph.to_dict("v1alpha1")["apiVersion"]
    monkeypatch.setattr("dynamo_graphs.objects.DEFAULT_VERSION", "v1alpha1")
    assert "nvidia.com/v1alpha1" == graph.to_dict()["apiVersion"]
    assert read(CONVERTED) == Graph.from_yaml(CONVERTED).to_dict()


def test_what_a_document_says_in_other_words_stays_until_it_is_edited() -> None:
    document = read(CONVERTED)
    document["spec"]["components"][0]["globalDynamoNamespace"] = False
    graph = Graph.from_dict(document)
    assert document == graph.to_dict()
    edited = graph.service("Worker", replicas=3).to_dict()
    assert "nvidia.com/v1beta1" == edited["apiVersion"]
    assert 3 == edited["spec"]["components"][0]["replicas"]


def test_a_graph_of_v1beta1_can_be_edited_and_keeps_its_text() -> None:
    text = Graph.from_yaml(CONVERTED).service("Worker", replicas=3).to_yaml("v1beta1")
    assert CONVERTED.replace("replicas: 2", "replicas: 3") == text


def test_a_graph_does_not_read_what_v1beta1_does_not_have() -> None:
    with pytest.raises(InvalidObject, match=r"spec\.services: unknown field"):
        Graph.from_yaml(GRAPH.replace("v1alpha1", "v1beta1"))
