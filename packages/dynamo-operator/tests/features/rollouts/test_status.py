"""A graph's status reports a rollout of its workers."""

from collections import Counter
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.api import DynamoComponentDeployment, ServiceReplicaStatus
from dynamo_operator.component.service import WorkerRevision
from dynamo_operator.features.rollouts.plan import Rollout
from dynamo_operator.features.rollouts.revisions import Member, Revisions
from dynamo_operator.features.rollouts.status import (
    RolloutResult,
    rolling_update,
    rollout_results,
    why_it_remains,
    with_old_revisions,
)
from dynamo_operator.graph.api import DynamoGraphDeployment, DynamoGraphDeploymentStatus, RollingUpdateStatus
from kube_runtime.types.meta import Condition
from specs import a_component, a_graph, a_service

NOW = "2026-01-01T12:00:00Z"
BEFORE = "2026-01-01T11:00:00Z"
NEW = WorkerRevision("bbbbbbbb", "1:bbbbbbbb")


def graph(stored: RollingUpdateStatus | None = None, current: str = "") -> DynamoGraphDeployment:
    annotations = {"nvidia.com/current-worker-hash": current} if current else {}
    new = a_graph({"Decode": a_service()}, metadata={"annotations": annotations})
    status = msgspec.structs.replace(new.status, rolling_update=stored)
    return msgspec.structs.replace(new, status=status)


def member(suffix: str, counts: dict[str, Any] | None = None) -> Member:
    status: dict[str, Any] = {"conditions": []}
    if counts:
        status["service"] = counts
    body = {
        "metadata": {"name": f"chat-decode-{suffix}"},
        "spec": {**a_service(), "serviceName": "Decode"},
        "status": status,
    }
    return Member(msgspec.convert(body, DynamoComponentDeployment), suffix, f"1:{suffix}")


def rollout(
    *, current: str = "aaaaaaaa", new: bool = True, old: str = "aaaaaaaa", through: bool = False
) -> Rollout:
    revisions = Revisions(NEW, current, (member("bbbbbbbb"),) if new else (), (member(old),) if old else ())
    return Rollout(revisions, NEW, through=("Decode",) if through else ())


def update(phase: str, begun: str = NOW, old: str = "aaaaaaaa", new: str = "bbbbbbbb") -> RollingUpdateStatus:
    return RollingUpdateStatus(phase, begun, from_hash=old, to_hash=new)


@pytest.mark.parametrize(
    ("stored", "rollout", "expected"),
    [
        (None, rollout(old=""), None),
        (None, rollout(new=False), update("Pending")),
        (update("Pending", BEFORE), rollout(), update("InProgress", BEFORE)),
        (update("InProgress", BEFORE, new="cccccccc"), rollout(), update("InProgress")),
        (None, rollout(current="bbbbbbbb", old="cccccccc"), update("InProgress", old="cccccccc")),
    ],
    ids=["no rollout", "no new component yet", "its beginning stays", "another target", "a revert"],
)
def test_a_rollout_is_reported(
    stored: RollingUpdateStatus | None, rollout: Rollout, expected: RollingUpdateStatus | None
) -> None:
    assert expected == rolling_update(graph(stored), rollout, NOW)


def test_it_is_complete_only_once_the_annotation_is_written() -> None:
    stored = update("InProgress", BEFORE)
    over = rollout(old="", through=True)
    reported = rolling_update(graph(stored, current="aaaaaaaa"), over, NOW)
    assert reported
    assert "InProgress" == reported.phase
    reported = rolling_update(graph(stored, current="bbbbbbbb"), over, NOW)
    assert reported
    assert ("Completed", BEFORE, NOW) == (reported.phase, reported.start_time, reported.end_time)
    assert ("Decode",) == reported.updated_services
    again = rolling_update(graph(reported, current="bbbbbbbb"), over, "2026-01-01T13:00:00Z")
    assert reported == again


def test_a_service_counts_all_its_generations() -> None:
    old = {
        "componentKind": "Deployment",
        "componentName": "old",
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 2,
        "availableReplicas": 2,
    }
    new = ServiceReplicaStatus("Deployment", "new", 1, 1, ready_replicas=0)
    summed = with_old_revisions(new, [member("aaaaaaaa", old), member("cccccccc")])
    expected = ServiceReplicaStatus("Deployment", "new", 4, 1, 2, 2, component_names=("new", "old"))
    assert expected == summed


def test_a_service_of_one_generation_counts_as_ever() -> None:
    new = ServiceReplicaStatus("Deployment", "new", 1, 1)
    assert new == with_old_revisions(new, [])


def why(old: Member, **more: Any) -> str:
    revisions = Revisions(NEW, "aaaaaaaa", old=(old,), successors=more.pop("successors", ()))
    return why_it_remains(old, Rollout(revisions, revisions.target, **more))


def an_old_one(replicas: int, pods: int, **metadata: Any) -> Member:
    counts = {"componentKind": "Deployment", "componentName": "old"}
    old = member("aaaaaaaa", {**counts, "replicas": pods, "updatedReplicas": pods})
    component = old.component
    spec = msgspec.structs.replace(component.spec, replicas=replicas)
    about = msgspec.structs.replace(component.metadata, **metadata)
    changed = msgspec.structs.replace(component, spec=spec, metadata=about)
    return Member(changed, old.suffix, old.content)


def test_an_old_component_reports_what_it_waits_for() -> None:
    assert "worker revision bbbbbbbb is replacing it" == why(an_old_one(2, 2))
    assert "its last pods are terminating (2)" == why(an_old_one(0, 2))
    gone = an_old_one(0, 0)
    assert "its last pods are terminating (1)" == why(gone, leaving={gone.name: 1})
    assert "is deleted once all services are replaced" in why(gone)
    assert "chat-decode-bbbbbbbb is replacing it" == why(an_old_one(2, 2), successors=(member("bbbbbbbb"),))


def test_an_old_component_reports_its_pause_while_it_has_pods() -> None:
    paused = {"annotations": {"nvidia.com/paused": "true"}}
    assert "paused" in why(an_old_one(2, 2, **paused))
    assert "paused" in why(an_old_one(0, 1, **paused))
    assert "paused" not in why(an_old_one(0, 0, **paused))


def test_a_rollout_ends_when_there_are_no_generations_any_more() -> None:
    stored = RollingUpdateStatus("InProgress", BEFORE, None, ("Decode",), "aaaaaaaa", "bbbbbbbb")
    nothing = Rollout(Revisions(WorkerRevision("", "")), WorkerRevision("", ""))
    reported = rolling_update(graph(stored), nothing, NOW)
    assert reported is not None
    assert RollingUpdateStatus("Completed", BEFORE, NOW, (), "aaaaaaaa", "") == reported


LATE = Condition("Progressing", "False", "progress_deadline_exceeded", "m")
GOING = Condition("Progressing", "True", "updating", "m")


def rolled(phase: str = "", to: str | None = "b", progress: Condition = GOING) -> DynamoGraphDeployment:
    update = RollingUpdateStatus(phase, from_hash="a", to_hash=to) if phase else None
    status = DynamoGraphDeploymentStatus(conditions=(progress,), rolling_update=update)
    return DynamoGraphDeployment(status=status)


@pytest.mark.parametrize(
    ("before", "after", "results"),
    [
        (rolled(), rolled(), []),
        (rolled(), rolled("Pending"), ["started"]),
        (rolled(), rolled("InProgress"), ["started"]),
        (rolled("Completed"), rolled("Pending"), ["started"]),
        (rolled("Completed", "c"), rolled("Pending"), ["started"]),
        (rolled("Pending"), rolled("InProgress"), []),
        (rolled("InProgress"), rolled("Completed"), ["completed"]),
        (rolled("Pending"), rolled("Completed"), ["completed"]),
        (rolled("InProgress", ""), rolled("Completed", None), ["completed"]),
        (rolled("InProgress", "b"), rolled("Pending", "c"), ["superseded", "started"]),
        (rolled("InProgress", "b"), rolled("Completed", "a"), ["superseded"]),
        (rolled("InProgress", "b"), rolled("Completed", ""), ["superseded"]),
        (rolled("InProgress"), rolled("InProgress", progress=LATE), ["deadline_exceeded"]),
        (rolled("InProgress", progress=LATE), rolled("InProgress"), []),
        (rolled("InProgress", progress=LATE), rolled("Completed"), ["completed"]),
        (rolled(), rolled(progress=LATE), []),
        (rolled("Completed"), rolled("Completed", progress=LATE), []),
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


def with_rollout(graph: DynamoGraphDeployment, stored: RollingUpdateStatus | None) -> DynamoGraphDeployment:
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
