"""Each managed rollout is reported once when it begins and once when it ends."""

from collections import Counter

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.features.rollouts.plan import Member, Revisions, Rollout, WorkerRevision
from dynamo_operator.features.rollouts.status import RolloutResult, rolling_update, rollout_results
from dynamo_operator.graph.api import (
    DynamoGraphDeployment,
    DynamoGraphDeploymentStatus,
    RollingUpdateStatus,
)
from kube_runtime.types.meta import Condition
from specs import a_component, a_graph, a_service

NOW = "2026-01-01T12:00:00Z"
LATE = Condition("Progressing", "False", "progress_deadline_exceeded", "m")
GOING = Condition("Progressing", "True", "updating", "m")


def graph(
    phase: str = "", to: str | None = "b", progress: Condition = GOING
) -> DynamoGraphDeployment:
    update = RollingUpdateStatus(phase, from_hash="a", to_hash=to) if phase else None
    status = DynamoGraphDeploymentStatus(conditions=(progress,), rolling_update=update)
    return DynamoGraphDeployment(status=status)


@pytest.mark.parametrize(
    ("before", "after", "results"),
    [
        (graph(), graph(), []),
        (graph(), graph("Pending"), ["started"]),
        (graph(), graph("InProgress"), ["started"]),
        (graph("Completed"), graph("Pending"), ["started"]),
        (graph("Completed", "c"), graph("Pending"), ["started"]),
        (graph("Pending"), graph("InProgress"), []),
        (graph("InProgress"), graph("Completed"), ["completed"]),
        (graph("Pending"), graph("Completed"), ["completed"]),
        (graph("InProgress", ""), graph("Completed", None), ["completed"]),
        (graph("Completed"), graph("Completed"), []),
        (graph("InProgress", "b"), graph("Pending", "c"), ["superseded", "started"]),
        (graph("InProgress", "b"), graph("Completed", "a"), ["superseded"]),
        (graph("InProgress", "b"), graph("Completed", ""), ["superseded"]),
        (graph("InProgress"), graph("InProgress", progress=LATE), ["deadline_exceeded"]),
        (graph("InProgress", progress=LATE), graph("InProgress", progress=LATE), []),
        (graph("InProgress", progress=LATE), graph("InProgress"), []),
        (graph("InProgress", progress=LATE), graph("Completed"), ["completed"]),
        (graph(), graph(progress=LATE), []),
        (graph("Completed"), graph("Completed", progress=LATE), []),
    ],
)
def test_events_between_two_statuses(
    before: DynamoGraphDeployment, after: DynamoGraphDeployment, results: list[str]
) -> None:
    assert results == list(rollout_results(before, after))
    assert [] == list(rollout_results(after, after))


def seen(target: str, *, is_made: bool, has_old: bool) -> Rollout:
    """What there is of a rollout to `target`, "" for workers that leave all generations."""
    generation = WorkerRevision(target, f"1:{target}" if target else "")
    new = (Member(a_component(), target, f"1:{target}"),) if is_made and target else ()
    old = (Member(a_component("old"), "old", "1:old"),) if has_old else ()
    return Rollout(Revisions(generation, "old", new, old), generation)


def with_rollout(
    graph: DynamoGraphDeployment, stored: RollingUpdateStatus | None
) -> DynamoGraphDeployment:
    status = DynamoGraphDeploymentStatus(rolling_update=stored)
    return msgspec.structs.replace(graph, status=status)


LOOKS = st.tuples(st.sampled_from(["", "aaaaaaaa", "bbbbbbbb"]), *[st.booleans()] * 3)


@given(st.lists(LOOKS, min_size=5))
def test_whatever_is_seen_each_rollout_begins_once_and_ends_once(
    looks: list[tuple[str, bool, bool, bool]],
) -> None:
    counts: Counter[RolloutResult] = Counter()
    stored: RollingUpdateStatus | None = None
    for target, is_made, has_old, is_noted in looks:
        noted = {"nvidia.com/current-worker-hash": target} if is_noted else {}
        graph = a_graph({"W": a_service()}, metadata={"annotations": noted})
        before = with_rollout(graph, stored)
        what = seen(target, is_made=is_made, has_old=has_old)
        after = with_rollout(graph, rolling_update(before, what, NOW))
        counts.update(rollout_results(before, after))
        stored = after.status.rolling_update
        ended = counts[RolloutResult.COMPLETED] + counts[RolloutResult.SUPERSEDED]
        is_open = stored is not None and stored.phase != "Completed"
        assert counts[RolloutResult.STARTED] == ended + is_open
