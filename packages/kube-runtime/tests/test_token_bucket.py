"""A token bucket allows a burst, and refills with time up to that burst."""

from hypothesis import given
from hypothesis import strategies as st

from kube_runtime.rate_limits import TokenBucket


def test_a_burst_then_one_each_time_that_a_token_is_back() -> None:
    bucket = TokenBucket(2, at=0)
    assert [True, True, False] == [bucket.take(2, 10, 0) for _ in range(3)]
    assert [False, True, False] == [bucket.take(2, 10, now) for now in (9, 10, 11)]


@given(st.lists(st.floats(min_value=0, max_value=100), max_size=60))
def test_never_more_than_the_burst_and_what_came_back(waits: list[float]) -> None:
    bucket, now, taken = TokenBucket(5, at=0), 0.0, 0
    for wait in waits:
        now += wait
        taken += bucket.take(5, 10, now)
        assert taken <= 5 + now / 10 + 1e-6
