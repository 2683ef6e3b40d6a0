"""A graph's status reports a rollout of its workers."""

from typing import Any

import msgspec

from dynamo_operator.component.api import DynamoComponentDeployment, ServiceReplicaStatus
from dynamo_operator.features.rollouts.plan import Member, Revisions, Rollout, WorkerRevision
from dynamo_operator.features.rollouts.status import (
    rolling_update,
    why_it_remains,
    with_old_revisions,
)
from dynamo_operator.graph.api import DynamoGraphDeployment, RollingUpdateStatus
from specs import a_graph, a_service

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
    revisions = Revisions(
        NEW,
        current,
        (member("bbbbbbbb"),) if new else (),
        (member(old),) if old else (),
    )
    return Rollout(revisions, NEW, through=("Decode",) if through else ())


def test_a_graph_without_a_rollout_reports_none() -> None:
    assert None is rolling_update(graph(), rollout(old=""), NOW)


def test_it_is_pending_until_there_is_a_new_component() -> None:
    expected = RollingUpdateStatus("Pending", NOW, from_hash="aaaaaaaa", to_hash="bbbbbbbb")
    assert expected == rolling_update(graph(), rollout(new=False), NOW)


def test_it_keeps_its_beginning() -> None:
    stored = RollingUpdateStatus("Pending", BEFORE, from_hash="aaaaaaaa", to_hash="bbbbbbbb")
    expected = msgspec.structs.replace(stored, phase="InProgress")
    assert expected == rolling_update(graph(stored), rollout(), NOW)


def test_another_target_begins_anew() -> None:
    stored = RollingUpdateStatus("InProgress", BEFORE, from_hash="aaaaaaaa", to_hash="cccccccc")
    reported = rolling_update(graph(stored), rollout(), NOW)
    assert reported
    assert (NOW, "bbbbbbbb") == (reported.start_time, reported.to_hash)


def test_it_is_complete_only_once_the_annotation_is_written() -> None:
    stored = RollingUpdateStatus("InProgress", BEFORE, from_hash="aaaaaaaa", to_hash="bbbbbbbb")
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


def test_a_revert_names_the_generation_that_it_leaves() -> None:
    reported = rolling_update(graph(), rollout(current="bbbbbbbb", old="cccccccc"), NOW)
    assert reported
    assert ("cccccccc", "bbbbbbbb") == (reported.from_hash, reported.to_hash)


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
    summed = with_old_revisions({"Decode": new}, [member("aaaaaaaa", old), member("cccccccc")])
    expected = ServiceReplicaStatus("Deployment", "new", 4, 1, 2, 2, component_names=("new", "old"))
    assert {"Decode": expected} == summed


def test_a_service_of_one_generation_counts_as_ever() -> None:
    new = ServiceReplicaStatus("Deployment", "new", 1, 1)
    assert {"Decode": new} == with_old_revisions({"Decode": new}, [])


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
    assert "chat-decode-bbbbbbbb is replacing it" == why(
        an_old_one(2, 2), successors=(member("bbbbbbbb"),)
    )


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
