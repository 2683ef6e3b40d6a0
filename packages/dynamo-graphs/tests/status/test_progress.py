"""A graph says that it stands still after its deadline, and not before, whatever becomes of the operator."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.api import ComponentSpec
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentSpec,
    ProgressStatus,
)
from dynamo_operator.graph.status import GraphProgress, goal_hash, graph_progress
from kube_runtime.types.meta import Metadata

START = datetime(2026, 1, 1, tzinfo=UTC)
STORED = ProgressStatus(2, "2026-01-01T00:00:00Z", 7, "goal")


def after(
    seconds: float,
    *,
    ready: int | None = 2,
    generation: int = 7,
    goal: str = "goal",
    deadline: int | None = 100,
) -> GraphProgress:
    return graph_progress(
        STORED,
        ready=ready,
        generation=generation,
        goal=goal,
        now=START + timedelta(seconds=seconds),
        deadline_seconds=deadline,
    )


def test_one_more_ready_replica_begins_a_new_time() -> None:
    progress = after(99, ready=3)
    assert (
        GraphProgress(
            ProgressStatus(3, "2026-01-01T00:01:39Z", 7, "goal"), requeue_after_seconds=100.0
        )
        == progress
    )


def test_another_spec_begins_a_new_time() -> None:
    stored = after(99, ready=0, generation=8, goal="other").stored
    assert ProgressStatus(0, "2026-01-01T00:01:39Z", 8, "other") == stored


def test_a_number_of_replicas_begins_no_new_time() -> None:
    assert GraphProgress(STORED, requeue_after_seconds=1.0) == after(99, generation=8)


def test_without_a_hash_the_generation_identifies_the_spec() -> None:
    stored, now = ProgressStatus(2, "2026-01-01T00:00:00Z", 7), START + timedelta(seconds=99)
    same = graph_progress(stored, ready=2, generation=7, goal="g", now=now, deadline_seconds=100)
    assert GraphProgress(stored, requeue_after_seconds=1.0) == same
    other = graph_progress(stored, ready=2, generation=8, goal="g", now=now, deadline_seconds=100)
    assert ProgressStatus(2, "2026-01-01T00:01:39Z", 8, "g") == other.stored


def a_goal(replicas: int, *, image: str = "a", is_suspending: bool = False) -> str:
    services = {"Decode": ComponentSpec(replicas=replicas, service_name=image)}
    spec = DynamoGraphDeploymentSpec(services=services, replicas=replicas)
    return goal_hash(DynamoGraphDeployment(Metadata("chat"), spec), is_suspending=is_suspending)


def test_a_goal_is_another_for_all_but_replicas() -> None:
    assert a_goal(1) == a_goal(9)
    assert 3 == len({a_goal(1), a_goal(1, image="b"), a_goal(1, is_suspending=True)})


def test_the_best_stays_when_replicas_are_lost() -> None:
    assert GraphProgress(STORED, requeue_after_seconds=50.0) == after(50, ready=0)


def test_the_time_is_up_at_the_deadline() -> None:
    assert GraphProgress(STORED, requeue_after_seconds=1.0) == after(99)
    assert GraphProgress(STORED, is_overdue=True) == after(100)


def test_a_graph_that_is_ready_has_nothing_left_to_reach() -> None:
    assert GraphProgress() == after(500, ready=None)


def test_without_a_deadline_of_its_own_a_graph_has_more_than_two_hours() -> None:
    assert not after(7799, deadline=None).is_overdue
    assert after(7800, deadline=None).is_overdue


@given(st.lists(st.tuples(st.integers(0, 3), st.floats(0, 99)), max_size=20))
def test_what_is_stored_changes_only_for_something_better(steps: list[tuple[int, float]]) -> None:
    stored, now = None, START
    for ready, seconds in steps:
        now += timedelta(seconds=seconds)
        reported = graph_progress(
            *(stored,), ready=ready, generation=1, goal="g", now=now, deadline_seconds=10
        ).stored
        assert reported is not None
        assert (
            reported == stored or stored is None or reported.ready_replicas > stored.ready_replicas
        )
        stored = reported


def test_a_time_that_a_user_broke_begins_a_new_one() -> None:
    stored = ProgressStatus(2, "2026-01-01T00:00:00+99:99", 7, "goal")
    progress = graph_progress(
        stored, ready=2, generation=7, goal="goal", now=START, deadline_seconds=100
    )
    assert ProgressStatus(2, "2026-01-01T00:00:00Z", 7, "goal") == progress.stored
