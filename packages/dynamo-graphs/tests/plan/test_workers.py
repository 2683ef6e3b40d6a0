"""What becomes of the workers of a graph: services step alone, generations go as a whole."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.rollouts.plan import (
    Member,
    Revisions,
    Rollout,
    WorkerRevision,
    plan_rollout,
)
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.kind import Object
from specs import a_graph, a_service

NOW = datetime(2026, 1, 1, 12, 0, 30, tzinfo=UTC)
NEW = WorkerRevision("new", "1:new", "prod-chat_")
RECREATE = {"nvidia.com/deployment-strategy": "Recreate"}


def graph(**services: Object) -> DynamoGraphDeployment:
    return a_graph(services or {"Decode": a_service(replicas=4)})


def member(
    service: str,
    suffix: str,
    replicas: int,
    available: int | None = None,
    pods: int | None = None,
    *,
    since: str | None = None,
    is_observed: bool = True,
) -> Member:
    """A service in one revision; all desired replicas are ready unless given otherwise."""
    counts = {
        "componentKind": "Deployment",
        "componentName": "x",
        "replicas": replicas if pods is None else pods,
        "updatedReplicas": 0,
        "availableReplicas": replicas if available is None else available,
    }
    conditions: list[Any] = []
    if since:
        conditions = [{"type": "Available", "status": "True", "lastTransitionTime": since}]
    body = {
        "metadata": {
            "name": f"chat-{service}-{suffix}".lower(),
            "namespace": "prod",
            "generation": 2,
        },
        "spec": {**a_service(), "serviceName": service, "replicas": replicas},
        "status": {
            "conditions": conditions,
            "service": counts,
            "observedGeneration": 2 if is_observed else 1,
        },
    }
    return Member(msgspec.convert(body, DynamoComponentDeployment), suffix, f"1:{suffix}")


def plan(
    graph: DynamoGraphDeployment, new: list[Member], old: list[Member], **more: Any
) -> Rollout:
    return plan_rollout(graph, Revisions(NEW, "old", tuple(new), tuple(old)), NOW, **more)


def asked(rollout: Rollout) -> dict[str, int]:
    return {component.metadata.name: replicas for component, replicas in rollout.resized}


def names(rollout: Rollout) -> set[str]:
    return {key.name for _, key in rollout.spared}


def test_without_old_workers_nothing_is_decided() -> None:
    rollout = plan(graph(), [member("Decode", "new", 4)], [])
    assert NEW == rollout.workers
    assert not rollout.is_under_way
    assert ("Decode",) == rollout.through


def test_a_rollout_begins_with_what_the_budget_allows() -> None:
    rollout = plan(graph(), [], [member("Decode", "old", 4)])
    assert {"Decode": 1} == rollout.workers.replicas
    assert {"chat-decode-old": 3} == asked(rollout)
    assert {"chat-decode-old"} == names(rollout)
    assert rollout.is_under_way


def test_services_step_alone() -> None:
    services = {"Decode": a_service(replicas=4), "Prefill": a_service("prefill", replicas=1)}
    new = [member("Decode", "new", 4), member("Prefill", "new", 1, available=0)]
    old = [member("Decode", "old", 0), member("Prefill", "old", 1)]
    rollout = plan(graph(**services), new, old)
    assert ("Decode",) == rollout.through
    assert {} == asked(rollout)
    assert {"chat-decode-old", "chat-prefill-old"} == names(rollout)


def test_when_all_are_through_the_old_components_go() -> None:
    rollout = plan(graph(), [member("Decode", "new", 4)], [member("Decode", "old", 0)])
    assert frozenset() == rollout.spared
    assert () == rollout.resized
    assert rollout.is_under_way


def test_pods_that_are_still_there_keep_their_component() -> None:
    old = member("Decode", "old", 0, pods=1)
    assert {"chat-decode-old"} == names(plan(graph(), [member("Decode", "new", 4)], [old]))


def test_a_number_that_was_not_observed_yet_may_still_be_so_many_pods() -> None:
    old = member("Decode", "old", 3, available=3, pods=0, is_observed=False)
    assert 2 == plan(graph(), [], [old]).workers.replicas["Decode"]


def test_the_last_old_replica_stays_until_new_ones_have_settled() -> None:
    old = [member("Decode", "old", 1)]
    fresh = member("Decode", "new", 4, since="2026-01-01T12:00:24Z")
    waiting = plan(graph(), [fresh], old)
    assert {} == asked(waiting)
    assert 4.0 == waiting.wait_seconds
    settled = member("Decode", "new", 4, since="2026-01-01T12:00:20Z")
    over = plan(graph(), [settled], old)
    assert {"chat-decode-old": 0} == asked(over)
    assert 0.0 == over.wait_seconds


def test_a_service_that_is_gone_stays_until_the_others_are_through() -> None:
    old = [member("Decode", "old", 0), member("Gone", "old", 2)]
    waiting = plan(graph(), [member("Decode", "new", 3)], old)
    assert {"chat-decode-old", "chat-gone-old"} == names(waiting)
    assert {} == asked(waiting)
    assert frozenset() == plan(graph(), [member("Decode", "new", 4)], old).spared


def test_a_recreated_service_waits_for_the_last_old_pod() -> None:
    body = graph(Decode=a_service(replicas=4, annotations=RECREATE))
    first = plan(body, [], [member("Decode", "old", 4)])
    assert {"chat-decode-old": 0} == asked(first)
    assert {"Decode": 0} == first.workers.replicas
    going = plan(body, [], [member("Decode", "old", 0, pods=1)])
    assert {"Decode": 0} == going.workers.replicas
    gone = [member("Decode", "old", 0)]
    leaving = plan(body, [], gone, leaving={"chat-decode-old": 1})
    assert {"Decode": 0} == leaving.workers.replicas
    assert {"Decode": 4} == plan(body, [], gone).workers.replicas


def test_a_suspended_graph_is_through_at_zero() -> None:
    body = graph(Decode=a_service(replicas=0))
    first = plan(body, [], [member("Decode", "old", 2)])
    assert {"chat-decode-old": 0} == asked(first)
    new = member("Decode", "new", 0)
    assert frozenset() == plan(body, [new], [member("Decode", "old", 0)]).spared
