"""The registration object: names, order and paths as installers of the Go operator know them."""

from dataclasses import replace
from typing import Any

import pytest

from dynamo_legacy.admission import LEGACY_RULES
from dynamo_operator.admission.configuration import LEGACY_REVIEWED
from reviews.registration import Registration, full_name, registration

CLUSTER = Registration("dynamo-platform", "dyn")


def entries(wanted: Registration) -> list[Any]:
    found: list[Any] = registration(wanted)["webhooks"]
    return found


def test_entries_have_their_names_in_their_order() -> None:
    assert [
        "vdynamocomponentdeployment.kb.io",
        "vdynamographdeployment.kb.io",
        "vdynamomodel.kb.io",
        "vdynamographdeploymentrequest.kb.io",
    ] == [each["name"] for each in entries(CLUSTER)]


def test_entries_of_the_older_generation_come_last() -> None:
    plain, both = entries(CLUSTER), entries(replace(CLUSTER, legacy_kinds=True))
    assert both[: len(plain)] == plain
    assert [
        ("vdynamodeployment.kb.io", ["dynamodeployments"]),
        ("vdynamonimdeployment.kb.io", ["dynamonimdeployments"]),
        ("vdynamonimrequest.kb.io", ["dynamonimrequests"]),
    ] == [(each["name"], each["rules"][0]["resources"]) for each in both[len(plain) :]]


def test_kinds_of_the_older_generation_are_those_that_have_rules() -> None:
    assert list(LEGACY_REVIEWED) == [each.type_.KIND for each in LEGACY_RULES]


def test_an_entry_says_what_is_shown_to_whom() -> None:
    assert {
        "name": "vdynamomodel.kb.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {
            "service": {
                "name": "dynamo-platform-dynamo-operator-webhook-service",
                "namespace": "dyn",
                "path": "/validate-nvidia-com-v1alpha1-dynamomodel",
            }
        },
        "failurePolicy": "Fail",
        "rules": [
            {
                "apiGroups": ["nvidia.com"],
                "apiVersions": ["v1alpha1"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["dynamomodels"],
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": 10,
    } == entries(CLUSTER)[2]


def test_a_restricted_operator_is_shown_its_own_namespace_only() -> None:
    wanted = Registration("dynamo-platform", "dyn", restricted_namespace="team")
    assert "dynamo-platform-dynamo-operator-validating-team" == registration(wanted)["metadata"]["name"]
    expected = {"matchLabels": {"kubernetes.io/metadata.name": "team"}}
    assert all(expected == each["namespaceSelector"] for each in entries(wanted))


def test_a_selector_of_the_user_wins_but_never_selects_foreign_namespaces() -> None:
    own = {"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "Exists"}]}
    wide = Registration("r", "dyn", selector=own)
    assert all(own == each["namespaceSelector"] for each in entries(wide))
    wanted = Registration("r", "dyn", restricted_namespace="team", selector=own)
    labels = {"a": "b", "kubernetes.io/metadata.name": "team"}
    assert all({**own, "matchLabels": labels} == each["namespaceSelector"] for each in entries(wanted))


def test_a_bundle_and_an_address_may_be_given() -> None:
    (first, *_) = entries(Registration("r", "dyn", ca_bundle="Q0E=", url="https://127.0.0.1:9443"))
    url = "https://127.0.0.1:9443/validate-nvidia-com-v1alpha1-dynamocomponentdeployment"
    assert {"url": url, "caBundle": "Q0E="} == first["clientConfig"]


@pytest.mark.parametrize(
    ("release", "expected"),
    [
        ("dynamo-platform", "dynamo-platform-dynamo-operator"),
        ("my-dynamo-operator", "my-dynamo-operator"),
        ("r" * 53, f"{'r' * 53}-dynamo-op"),
    ],
)
def test_a_release_gives_its_objects_a_name(release: str, expected: str) -> None:
    assert expected == full_name(release)
