"""The offline check and the API server agree on every document, and on what becomes of it."""

import itertools
from typing import Any

import pytest

from cluster.api.documents import BAD, GOOD, graph, service
from cluster.api.judge import Judge
from dynamo_graphs.schema import schema_problems
from dynamo_operator.crds import defaulted
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
