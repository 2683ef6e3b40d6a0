"""Offline, a document becomes what the API server would store."""

from typing import Any

import pytest

from dynamo_operator.crds import defaulted
from kube_runtime.kind import Object


def stored(service: Any) -> Any:
    document = {"kind": "DynamoGraphDeployment", "spec": {"services": {"A": service}}}
    return defaulted(document)["spec"]["services"]["A"]


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"multinode": {}}, {"multinode": {"nodeCount": 2}}),
        ({"multinode": {"nodeCount": None}}, {"multinode": {"nodeCount": 2}}),
        ({"multinode": {"nodeCount": 4}}, {"multinode": {"nodeCount": 4}}),
        ({"scalingAdapter": {}}, {"scalingAdapter": {"enabled": False}}),
        ({"replicas": None, "labels": {"a": None}}, {"labels": {}}),
        ({"replicas": 2.0}, {"replicas": 2}),
        (
            {"extraPodSpec": {"mainContainer": {"ports": [{"containerPort": 1}]}}},
            {
                "extraPodSpec": {
                    "mainContainer": {"ports": [{"containerPort": 1, "protocol": "TCP"}]}
                }
            },
        ),
        (
            {"eppConfig": {"config": {"later": None, "plugins": [{"type": "t", "name": None}]}}},
            {"eppConfig": {"config": {"later": None, "plugins": [{"type": "t"}]}}},
        ),
    ],
)
def test_nulls_are_dropped_and_defaults_filled_in(given: Object, expected: Object) -> None:
    assert expected == stored(given)


def test_a_service_that_is_null_is_dropped() -> None:
    document = {"kind": "DynamoGraphDeployment", "spec": {"services": {"A": None}}}
    assert {"services": {}} == defaulted(document)["spec"]


def test_the_document_that_was_given_stays_as_it_was() -> None:
    document = {"kind": "DynamoModel", "spec": {"modelName": "m", "source": None}}
    assert {"modelName": "m", "modelType": "base"} == defaulted(document)["spec"]
    assert {"modelName": "m", "source": None} == document["spec"]


def test_filling_in_twice_changes_nothing_more() -> None:
    document = {"kind": "DynamoGraphDeployment", "spec": {"restart": {"id": "1", "strategy": {}}}}
    assert defaulted(document) == defaulted(defaulted(document))


def test_a_document_of_another_kind_comes_back_as_it_is() -> None:
    for document in ({"kind": "ConfigMap", "data": None}, {"kind": ["odd"]}, {}):
        assert document == defaulted(document)
