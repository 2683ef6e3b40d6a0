"""A graph says that it stands still after its deadline, and not before, whatever becomes of the operator."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.api.graph import Progress
from dynamo_operator.status.progress import Advance, advance

START = datetime(2026, 1, 1, tzinfo=UTC)
STORED = Progress(2, "2026-01-01T00:00:00Z", 7)


def after(
    seconds: float, *, ready: int | None = 2, generation: int = 7, deadline: int | None = 100
) -> Advance:
    now = START + timedelta(seconds=seconds)
    return advance(STORED, ready=ready, generation=generation, now=now, deadline_seconds=deadline)


def test_one_more_ready_replica_begins_a_new_time() -> None:
    found = after(99, ready=3)
    assert Advance(Progress(3, "2026-01-01T00:01:39Z", 7), again_seconds=100.0) == found


def test_another_spec_begins_a_new_time() -> None:
    assert Progress(0, "2026-01-01T00:01:39Z", 8) == after(99, ready=0, generation=8).progress


def test_the_best_stays_when_replicas_are_lost() -> None:
    assert Advance(STORED, again_seconds=50.0) == after(50, ready=0)


def test_the_time_is_up_at_the_deadline() -> None:
    assert Advance(STORED, again_seconds=1.0) == after(99)
    assert Advance(STORED, is_exceeded=True) == after(100)


def test_a_graph_that_is_ready_has_nothing_left_to_reach() -> None:
    assert Advance() == after(500, ready=None)


def test_without_a_deadline_of_its_own_a_graph_has_more_than_two_hours() -> None:
    assert not after(7799, deadline=None).is_exceeded
    assert after(7800, deadline=None).is_exceeded


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 99)), max_size=20))
def test_what_is_stored_changes_only_for_something_better(steps: list[tuple[int, float]]) -> None:
    stored, now = None, START
    for ready, seconds in steps:
        now += timedelta(seconds=seconds)
        found = advance(stored, ready=ready, generation=1, now=now, deadline_seconds=10).progress
        assert found is not None
        assert found == stored or stored is None or found.ready_replicas > stored.ready_replicas
        stored = found
