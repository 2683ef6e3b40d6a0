"""What a body asks for: a review, or nothing."""

import msgspec
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dynamo_operator.admission.review import NotAReview, request_in
from reviews.asking import review
from reviews.rows import graph


@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.binary(max_size=200) | st.text(max_size=200).map(str.encode))
def test_no_body_at_all_makes_another_error_than_that_it_is_no_review(body: bytes) -> None:
    try:
        request = request_in(body)
    except NotAReview:
        return
    assert request.uid


def test_a_review_carries_what_is_asked() -> None:
    found = request_in(review(graph(), graph()))
    assert ("UPDATE", "lab", "alice") == (found.operation, found.namespace, found.user_info.username)
    assert found.new is not None
    assert graph() == msgspec.json.decode(found.new)
    assert request_in(review(graph())).old is None
