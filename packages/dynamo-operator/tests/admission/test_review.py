"""What a body asks for: a review, or nothing."""

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_operator.admission.decide import Decision, ReviewContext
from dynamo_operator.admission.review import Decisions, NotAReview, request_in
from dynamo_operator.versions.conversion import convert
from dynamo_operator.versions.room import MOST_BYTES
from kube_runtime.types.meta import Object
from reviews.asking import SETTINGS, review, rules_of
from reviews.rows import graph


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_body_at_all_makes_another_error_than_that_it_is_no_review(body: bytes) -> None:
    try:
        request = request_in(body)
    except NotAReview:
        return
    assert request.uid


def crowded(version: str, spare: int) -> Object:
    """A graph with so much room for the annotation in which its conversion keeps the empty list."""
    body = graph(envs=[]) if version == "v1alpha1" else convert(graph(), "nvidia.com/v1beta1")
    metadata = {"name": "chat", "namespace": "lab", "annotations": {"a": "x" * (MOST_BYTES - 1 - spare)}}
    empty: Object = {"env": []} if version == "v1beta1" else {}
    return {**body, "metadata": metadata, "spec": {**body["spec"], **empty}}


@pytest.mark.parametrize("version", ["v1alpha1", "v1beta1"])
def test_an_object_without_room_for_what_its_other_version_keeps_is_refused(version: str) -> None:
    decisions = Decisions(lambda _: ReviewContext(SETTINGS), lambda _: False)

    def decided(spare: int, before: int | None = None) -> Decision:
        old = None if before is None else crowded(version, before)
        body = review(crowded(version, spare), old, kind={"version": version})
        return decisions.decide(rules_of(graph()), request_in(body))

    assert decided(2000).allowed
    refused = decided(10)
    assert "too_large" == refused.reason
    (problem,) = map(str, refused.problems)
    assert problem.startswith("metadata.annotations: no room for nvidia.com/dgd-typed")
    assert decided(9, before=10).allowed
    assert not decided(10, before=2000).allowed


def test_a_review_carries_what_is_asked() -> None:
    found = request_in(review(graph(), graph()))
    assert ("UPDATE", "lab", "alice") == (found.operation, found.namespace, found.user_info.username)
    assert found.new is not None
    assert graph() == msgspec.json.decode(found.new)
    assert request_in(review(graph())).old is None
