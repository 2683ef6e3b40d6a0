"""A ConversionReview is answered in order, or with the first error."""

from typing import Any

import pytest

from dynamo_operator.versions.review import review

OLD, NEW = "nvidia.com/v1alpha1", "nvidia.com/v1beta1"


def adapter(name: str, version: str = OLD, **spec: Any) -> Any:
    kind = "DynamoGraphDeploymentScalingAdapter"
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"namespace": "team-a", "name": name},
        "spec": spec,
    }


def response(*objects: Any, to: str = NEW) -> Any:
    request = {"uid": "u1", "desiredAPIVersion": to, "objects": list(objects)}
    answer = review({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "request": request})
    assert ("apiextensions.k8s.io/v1", "ConversionReview") == (answer["apiVersion"], answer["kind"])
    assert answer["response"].pop("uid") == "u1"
    return answer["response"]


def failure(message: str) -> Any:
    return {"result": {"status": "Failure", "message": message}}


def test_objects_are_answered_in_order() -> None:
    objects = (adapter("b", replicas=1), adapter("a", replicas=0))
    expected = [{**body, "apiVersion": NEW} for body in objects]
    assert {"result": {"status": "Success"}, "convertedObjects": expected} == response(*objects)


def test_the_first_object_that_fails_ends_the_review() -> None:
    message = (
        'DynamoGraphDeploymentScalingAdapter team-a/b: spec.replicas: invalid value "x" '
        "(expected an integer of 32 bits)"
    )
    assert failure(message) == response(adapter("a"), adapter("b", replicas="x"), adapter("c", replicas="y"))


def test_an_object_has_to_be_in_the_other_version() -> None:
    kind = "DynamoGraphDeploymentScalingAdapter"
    assert failure(f'{kind} team-a/a: apiVersion: invalid value "{NEW}" (expected "{OLD}")') == response(
        adapter("a", NEW)
    )
    assert failure(
        f'{kind} team-a/a: desiredAPIVersion: invalid value "v3" (expected {OLD} or {NEW})'
    ) == response(adapter("a"), to="v3")


@pytest.mark.parametrize(
    ("body", "title"),
    [(3, "object"), ({}, "object"), ({"kind": "Pod"}, "Pod"), ({"metadata": {"name": "x"}}, "object x")],
)
def test_whatever_is_no_object_of_ours_is_a_failure(body: Any, title: str) -> None:
    result = response(body)["result"]
    assert "Failure" == result["status"]
    assert result["message"].startswith(f"{title}: ")


def test_a_review_without_objects_is_a_success() -> None:
    assert {"result": {"status": "Success"}, "convertedObjects": []} == response()


@pytest.mark.parametrize("document", [None, [], {"request": 3}, {"request": {"objects": 3}}])
def test_a_document_that_is_no_review_is_a_failure(document: Any) -> None:
    result = review(document)["response"]
    assert "" == result["uid"]
    assert "Failure" == result["result"]["status"]
