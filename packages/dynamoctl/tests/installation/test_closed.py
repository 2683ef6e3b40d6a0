"""What `dynamoctl check` says of graphs and objects that nothing will run."""

from datetime import UTC, datetime
from typing import Any

import pytest

from dynamoctl.installation.checks import (
    CheckResult,
    closed_namespaces,
    graphs_in_closed,
    unobserved,
)
from dynamoctl.installation.manifests import Choices, manifests
from kube_runtime.kind import Object

NOW = datetime(2026, 1, 1, 0, 2, tzinfo=UTC)


def a_set(**fields: Any) -> Object:
    metadata = {"name": "chat", "namespace": "prod", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return {
        "kind": "PodCliqueSet",
        "metadata": {**metadata, **fields.pop("metadata", {})},
        **fields,
    }


def test_the_closed_namespaces_are_those_of_the_installed_policy() -> None:
    policies = [
        body
        for body in manifests(Choices("platform"))
        if body["kind"] == "ValidatingAdmissionPolicy"
    ]
    closed = {"kube-node-lease", "kube-public", "kube-system", "platform"}
    assert closed == closed_namespaces(policies)


def test_a_graph_in_a_closed_namespace_is_named_with_the_remedy() -> None:
    finding = graphs_in_closed({"platform": ["chat"], "kube-system": []}, is_before=False)
    assert CheckResult.WARNING is finding.verdict
    assert "platform/chat: the operator does not change them" == finding.text
    assert "namespacePolicy.releaseNamespace=false" in finding.remedy
    before = graphs_in_closed({"platform": ["chat"]}, is_before=True)
    assert "after the upgrade their pods keep running" in before.text
    assert CheckResult.OK is graphs_in_closed({"platform": []}, is_before=False).verdict


def test_objects_that_no_controller_observes_are_reported() -> None:
    finding = unobserved("Grove", [a_set(), a_set(metadata={"name": "other"})], NOW)
    assert finding is not None
    assert "no controller has observed PodCliqueSet prod/chat and 1 other object" == finding.text
    assert "check that the controller of Grove runs" in finding.remedy


@pytest.mark.parametrize(
    "body",
    [
        a_set(status={"observedGeneration": 1}),
        a_set(metadata={"creationTimestamp": "2026-01-01T00:01:30Z"}),
        a_set(metadata={"creationTimestamp": "now"}),
    ],
)
def test_an_observed_or_a_new_object_is_not_reported(body: Object) -> None:
    assert unobserved("Grove", [body], NOW) is None
