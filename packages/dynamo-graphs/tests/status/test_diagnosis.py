"""Of a service's pods the worst few are named, always in the same order."""

import random
from datetime import UTC, datetime
from typing import Any

import msgspec

from dynamo_operator.component.pods import diagnose
from dynamo_operator.shared.conditions import GraphReason
from kube_runtime.kind import Object
from kube_runtime.types.kinds import Pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)
READY = {"conditions": [{"type": "Ready", "status": "True"}]}


def a_pod(name: str, status: Object, *, node: str = "n", **labels: str) -> Pod:
    metadata = {"name": name, "labels": {key.replace("__", "/"): labels[key] for key in labels}}
    body = {"metadata": metadata, "spec": {"nodeName": node}, "status": status}
    return msgspec.convert(body, Pod)


def waiting(reason: str, message: str = "") -> Object:
    state = {"waiting": {"reason": reason, "message": message}}
    return {"containerStatuses": [{"name": "main", "state": state}]}


def unplaced(**metadata: Any) -> Object:
    condition = {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": "full",
    }
    return {"conditions": [{**condition, **metadata}]}


def test_the_worst_pod_speaks_for_the_service() -> None:
    pods = [
        a_pod("x-0", READY),
        a_pod("x-1", waiting("CrashLoopBackOff")),
        a_pod("x-2", waiting("ErrImagePull", "no such tag")),
        a_pod("x-3", waiting("ErrImagePull", "no such tag")),
    ]
    diagnosis = diagnose(pods, nodes=1, now=NOW)
    assert GraphReason.IMAGE_PULL_FAILED == diagnosis.reason
    message = "pod x-2 container main ImagePullBackOff: no such tag (and 2 more)"
    assert message == diagnosis.message
    assert ["x-2", "x-3", "x-1"] == [pod.name for pod in diagnosis.blocked_pods]
    assert 4 == diagnosis.scheduled_replicas


def test_no_more_than_five_are_listed_and_their_order_does_not_depend_on_that_of_the_pods() -> None:
    pods = [a_pod(f"x-{index}", waiting("CrashLoopBackOff")) for index in range(9)]
    shuffled = random.Random(1).sample(pods, len(pods))  # noqa: S311  # an order, not a secret
    expected = [f"x-{index}" for index in range(5)]
    assert expected == [pod.name for pod in diagnose(pods, nodes=1, now=NOW).blocked_pods]
    assert diagnose(pods, nodes=1, now=NOW) == diagnose(shuffled, nodes=1, now=NOW)


def test_nothing_holds_up_pods_that_are_ready() -> None:
    diagnosis = diagnose([a_pod("x-0", READY)], nodes=1, now=NOW)
    assert (None, None, ()) == (diagnosis.reason, diagnosis.message, diagnosis.blocked_pods)


def test_a_replica_over_several_nodes_is_placed_when_all_its_pods_are() -> None:
    one = {"leaderworkerset.sigs.k8s.io__name": "w-0"}
    two = {"leaderworkerset.sigs.k8s.io__name": "w-1"}
    pods = [
        a_pod("w-0-0", READY, **one),
        a_pod("w-0-1", READY, **one),
        a_pod("w-1-0", READY, **two),
        a_pod("w-1-1", unplaced(), node="", **two),
    ]
    diagnosis = diagnose(pods, nodes=2, now=NOW)
    assert (1, "insufficient_capacity") == (diagnosis.scheduled_replicas, diagnosis.reason)


def test_the_earliest_requeue_counts() -> None:
    pods = [
        a_pod("x-0", unplaced(lastTransitionTime="2025-12-31T23:59:50Z"), node=""),
        a_pod("x-1", unplaced(lastTransitionTime="2025-12-31T23:59:40Z"), node=""),
    ]
    diagnosis = diagnose(pods, nodes=1, now=NOW)
    assert ("pods_not_ready", 10.0) == (diagnosis.reason, diagnosis.requeue_after_seconds)
