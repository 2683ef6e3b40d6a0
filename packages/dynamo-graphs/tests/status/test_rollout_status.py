"""A graph's status reports a rollout of its workers."""

from typing import Any

import msgspec

from dynamo_graphs.api.component import DynamoComponentDeployment, ServiceReplicaStatus
from dynamo_graphs.api.graph import DynamoGraphDeployment, RollingUpdateStatus
from dynamo_graphs.api.revision import WorkerRevision
from dynamo_graphs.plan.revisions import Member, Revisions
from dynamo_graphs.plan.rollout_plan import Rollout
from dynamo_graphs.status.rollout import replacing, rolling_update, with_old_generations
from specs import a_graph, a_service

NOW = "2026-01-01T12:00:00Z"
BEFORE = "2026-01-01T11:00:00Z"
NEW = WorkerRevision("bbbbbbbb", "1:bbbbbbbb")


def graph(stored: RollingUpdateStatus | None = None, current: str = "") -> DynamoGraphDeployment:
    annotations = {"nvidia.com/current-worker-hash": current} if current else {}
    found = a_graph({"Decode": a_service()}, metadata={"annotations": annotations})
    status = msgspec.structs.replace(found.status, rolling_update=stored)
    return msgspec.structs.replace(found, status=status)


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
    found = Revisions(
        NEW,
        current,
        (member("bbbbbbbb"),) if new else (),
        (member(old),) if old else (),
    )
    return Rollout(found, NEW, through=("Decode",) if through else ())


def test_a_graph_that_was_never_rolled_out_says_nothing() -> None:
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
    found = rolling_update(graph(stored), rollout(), NOW)
    assert found
    assert (NOW, "bbbbbbbb") == (found.start_time, found.to_hash)


def test_it_is_complete_only_when_the_record_says_so_too() -> None:
    stored = RollingUpdateStatus("InProgress", BEFORE, from_hash="aaaaaaaa", to_hash="bbbbbbbb")
    over = rollout(old="", through=True)
    found = rolling_update(graph(stored, current="aaaaaaaa"), over, NOW)
    assert found
    assert "InProgress" == found.phase
    found = rolling_update(graph(stored, current="bbbbbbbb"), over, NOW)
    assert found
    assert ("Completed", BEFORE, NOW) == (found.phase, found.start_time, found.end_time)
    assert ("Decode",) == found.updated_services
    again = rolling_update(graph(found, current="bbbbbbbb"), over, "2026-01-01T13:00:00Z")
    assert found == again


def test_a_revert_names_the_generation_that_it_leaves() -> None:
    found = rolling_update(graph(), rollout(current="bbbbbbbb", old="cccccccc"), NOW)
    assert found
    assert ("cccccccc", "bbbbbbbb") == (found.from_hash, found.to_hash)


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
    found = with_old_generations({"Decode": new}, [member("aaaaaaaa", old), member("cccccccc")])
    expected = ServiceReplicaStatus("Deployment", "new", 4, 1, 2, 2, component_names=("new", "old"))
    assert {"Decode": expected} == found


def test_a_service_of_one_generation_counts_as_ever() -> None:
    new = ServiceReplicaStatus("Deployment", "new", 1, 1)
    assert {"Decode": new} == with_old_generations({"Decode": new}, [])


def why(old: Member, **more: Any) -> str:
    found = Revisions(NEW, "aaaaaaaa", old=(old,), successors=more.pop("successors", ()))
    (text,) = replacing(Rollout(found, found.target, **more)).values()
    return text


def an_old_one(replicas: int, pods: int, **metadata: Any) -> Member:
    counts = {"componentKind": "Deployment", "componentName": "old"}
    found = member("aaaaaaaa", {**counts, "replicas": pods, "updatedReplicas": pods})
    component = found.component
    spec = msgspec.structs.replace(component.spec, replicas=replicas)
    about = msgspec.structs.replace(component.metadata, **metadata)
    changed = msgspec.structs.replace(component, spec=spec, metadata=about)
    return Member(changed, found.suffix, found.content)


def test_an_old_component_says_what_it_waits_for() -> None:
    assert "worker revision bbbbbbbb is replacing it" == why(an_old_one(2, 2))
    assert "its last pods are terminating (2)" == why(an_old_one(0, 2))
    gone = an_old_one(0, 0)
    assert "its last pods are terminating (1)" == why(gone, leaving={gone.name: 1})
    assert "is deleted once all services are replaced" in why(gone)
    assert "chat-decode-bbbbbbbb is replacing it" == why(
        an_old_one(2, 2), successors=(member("bbbbbbbb"),)
    )


def test_an_old_component_that_is_paused_says_so_while_it_has_pods() -> None:
    paused = {"annotations": {"nvidia.com/paused": "true"}}
    assert "paused" in why(an_old_one(2, 2, **paused))
    assert "paused" in why(an_old_one(0, 1, **paused))
    assert "paused" not in why(an_old_one(0, 0, **paused))


def test_a_rollout_ends_when_there_are_no_generations_any_more() -> None:
    stored = RollingUpdateStatus("InProgress", BEFORE, None, ("Decode",), "aaaaaaaa", "bbbbbbbb")
    nothing = Rollout(Revisions(WorkerRevision("", "")), WorkerRevision("", ""))
    found = rolling_update(graph(stored), nothing, NOW)
    assert found is not None
    assert RollingUpdateStatus("Completed", BEFORE, NOW, (), "aaaaaaaa", "") == found
