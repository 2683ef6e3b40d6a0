"""A pod that is not ready says why, in the same words as long as nothing has changed."""

import random
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dynamo_operator.component.diagnosis import TEXT_LIMIT, Blockage, PodReport, diagnose, pod_report
from dynamo_operator.shared.conditions import GraphReason
from kube_runtime.types.kinds import Pod
from kube_runtime.types.meta import Object

THEN = "2026-01-01T00:00:00Z"
NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)


def a_condition(type_: str, status: str, reason: str = "", message: str = "") -> Object:
    return {"type": type_, "status": status, "reason": reason, "message": message, "lastTransitionTime": THEN}


SCHEDULED = a_condition("PodScheduled", "True")
READY = (SCHEDULED, a_condition("Ready", "True"))
NOT_READY = a_condition("Ready", "False", "ContainersNotReady")
UNSCHEDULABLE = a_condition("PodScheduled", "False", "Unschedulable", "0/3 nodes: no nvidia.com/gpu")
UNSTARTED = a_condition("PodReadyToStartContainers", "False")


def waiting(reason: str, message: str = "", **more: Any) -> Object:
    return {"name": "main", "state": {"waiting": {"reason": reason, "message": message}}, **more}


def ended(code: int, reason: str = "Error", message: str = "") -> Object:
    end = {"exitCode": code, "reason": reason, "message": message, "finishedAt": THEN}
    return {"terminated": end}


def a_pod(
    *containers: Object,
    init: tuple[Object, ...] = (),
    conditions: tuple[Object, ...] = (SCHEDULED, NOT_READY),
    node: str = "n1",
    **metadata: Any,
) -> Pod:
    status = {
        "phase": "Pending",
        "conditions": conditions,
        "containerStatuses": containers,
        "initContainerStatuses": init,
    }
    body = {"metadata": {"name": "x-0", **metadata}, "spec": {"nodeName": node}, "status": status}
    return msgspec.convert(body, Pod)


def blockage(pod: Pod, now: datetime = NOW) -> Blockage:
    reported = pod_report(pod, now).blockage
    assert reported is not None
    return reported


RUNNING = {"name": "main", "ready": False, "started": True, "state": {"running": {}}}
LOOPING = waiting("CrashLoopBackOff", "back-off 5m0s", restartCount=7)


@pytest.mark.parametrize(
    ("pod", "reason", "word", "message"),
    [
        (
            a_pod(node="", conditions=(UNSCHEDULABLE,)),
            *("insufficient_capacity", "Unschedulable", "0/3 nodes: no nvidia.com/gpu"),
        ),
        (
            a_pod(waiting("ErrImagePull", "manifest unknown")),
            *("image_pull_failed", "ImagePullBackOff", "manifest unknown"),
        ),
        (
            a_pod(waiting("ImagePullBackOff", 'Back-off "i": ErrImagePull: manifest unknown')),
            *("image_pull_failed", "ImagePullBackOff", "manifest unknown"),
        ),
        (a_pod(waiting("InvalidImageName", "a b")), "image_pull_failed", "InvalidImageName", "a b"),
        (
            a_pod(waiting("CreateContainerConfigError", 'secret "hf" not found')),
            *("config_error", "CreateContainerConfigError", 'secret "hf" not found'),
        ),
        (
            a_pod(waiting("ContainerCreating"), conditions=(SCHEDULED, NOT_READY, UNSTARTED)),
            *("config_error", "ContainerCreating"),
            f"the node has failed to mount its volumes or set up its network since {THEN}",
        ),
        (
            a_pod(waiting("PodInitializing"), init=(waiting("PodInitializing"),)),
            *("config_error", "ContainerCreating"),
            f"the node has been mounting its volumes, setting up its network or pulling images since {THEN}",
        ),
        (
            a_pod(LOOPING | {"lastState": ended(1, message="Traceback\n  ValueError: bad flag")}),
            *("pods_crashing", "CrashLoopBackOff", "exit code 1: Traceback ValueError: bad flag"),
        ),
        (a_pod(LOOPING), "pods_crashing", "CrashLoopBackOff", ""),
        (
            a_pod(RUNNING | {"lastState": ended(137, "OOMKilled")}),
            *("pods_crashing", "OOMKilled", "exit code 137"),
        ),
        (
            a_pod(RUNNING, init=({"name": "setup", "state": ended(2)},)),
            *("pods_crashing", "Error", "exit code 2"),
        ),
        (a_pod({"name": "main", "state": ended(3, "Error")}), *("pods_crashing", "Error", "exit code 3")),
        (
            a_pod(RUNNING | {"started": False}),
            *("pods_not_ready", "NotReady", f"its startup probe has not succeeded since {THEN}"),
        ),
        (
            a_pod(RUNNING),
            *("pods_not_ready", "NotReady", f"its readiness probe has been failing since {THEN}"),
        ),
        (
            a_pod(RUNNING | {"lastState": ended(1)}),
            *("pods_not_ready", "NotReady"),
            f"its readiness probe has been failing since {THEN}; it previously exited with code 1",
        ),
        (
            a_pod(),
            *("pods_not_ready", "ContainersNotReady"),
            "the node has not started it yet; check the kubelet on n1",
        ),
        (
            a_pod(RUNNING | {"ready": True}, conditions=(SCHEDULED, NOT_READY)),
            *("pods_not_ready", "ContainersNotReady"),
            f"its containers are ready, but the pod has not been ready since {THEN}",
        ),
    ],
)
def test_the_first_cause_that_fits_is_named(pod: Pod, reason: str, word: str, message: str) -> None:
    reported = blockage(pod)
    assert (reason, word, message) == (reported.reason, reported.word, reported.message)


def test_a_pod_whose_image_is_pulled_is_only_not_ready_yet() -> None:
    mounted = a_condition("PodReadyToStartContainers", "True")
    pod = a_pod(waiting("ContainerCreating"), conditions=(SCHEDULED, NOT_READY, mounted))
    assert ("pods_not_ready", "ContainerCreating") == (blockage(pod).reason, blockage(pod).word)


def test_the_container_and_its_restarts_are_named() -> None:
    reported = blockage(a_pod(LOOPING | {"lastState": ended(1)}))
    assert ("main", 7, THEN) == (reported.container, reported.restarts, reported.since)


def test_of_a_long_last_message_the_end_is_kept() -> None:
    reported = blockage(a_pod(LOOPING | {"lastState": ended(1, message="x" * 4000 + " out of memory")}))
    assert reported.message.endswith(" out of memory")
    assert len("exit code 1: ") + TEXT_LIMIT == len(reported.message)


def test_a_pod_that_is_ready_or_over_is_not_held_up() -> None:
    assert PodReport() == pod_report(a_pod(RUNNING, conditions=READY), NOW)
    assert PodReport() == pod_report(a_pod(LOOPING, deletionTimestamp=THEN), NOW)
    evicted = msgspec.convert({"status": {"phase": "Failed"}, "spec": {"nodeName": "n1"}}, Pod)
    assert PodReport() == pod_report(evicted, NOW)


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        (a_pod(node="", conditions=(UNSCHEDULABLE,)), 30.0),
        (a_pod(waiting("ContainerCreating"), conditions=(SCHEDULED, NOT_READY, UNSTARTED)), 60.0),
    ],
)
def test_a_transient_failure_is_reported_after_a_grace_period(pod: Pod, seconds: float) -> None:
    start = datetime.fromisoformat(THEN)
    early = pod_report(pod, start + timedelta(seconds=seconds - 10))
    assert 10.0 == early.requeue_after_seconds
    assert early.blockage is None or GraphReason.PODS_NOT_READY == early.blockage.reason
    late = pod_report(pod, start + timedelta(seconds=seconds))
    assert late.requeue_after_seconds is None
    assert late.blockage is not None
    assert late.blockage.reason in {"insufficient_capacity", "config_error"}


def test_a_pod_that_waits_for_a_node_is_named_at_once() -> None:
    early = blockage(
        a_pod(node="", conditions=(UNSCHEDULABLE,)), datetime.fromisoformat(THEN) + timedelta(seconds=5)
    )
    assert ("pods_not_ready", "Unschedulable", "0/3 nodes: no nvidia.com/gpu") == (
        early.reason,
        early.word,
        early.message,
    )


def test_a_pod_that_the_scheduler_has_not_seen_is_not_blocked() -> None:
    gated = a_condition("PodScheduled", "False", "SchedulingGated")
    assert PodReport() == pod_report(a_pod(node="", conditions=()), NOW)
    assert PodReport() == pod_report(a_pod(node="", conditions=(gated,)), NOW)


EVERY = (
    a_pod(LOOPING),
    a_pod(RUNNING),
    a_pod(waiting("ContainerCreating"), conditions=(SCHEDULED, NOT_READY, UNSTARTED)),
    a_pod(node="", conditions=(UNSCHEDULABLE,)),
    a_pod(waiting("ErrImagePull", "no")),
)


@given(pod=st.sampled_from(EVERY), seconds=st.floats(60, 1e6))
def test_a_pod_report_does_not_change_with_time(pod: Pod, seconds: float) -> None:
    later = datetime.fromisoformat(THEN) + timedelta(seconds=seconds)
    assert pod_report(pod, NOW) == pod_report(pod, later)


def test_the_worst_pod_speaks_for_the_service() -> None:
    pods = [
        a_pod(conditions=READY, name="x-0"),
        a_pod(waiting("CrashLoopBackOff"), name="x-1"),
        a_pod(waiting("ErrImagePull", "no such tag"), name="x-2"),
        a_pod(waiting("ErrImagePull", "no such tag"), name="x-3"),
    ]
    diagnosis = diagnose(pods, nodes=1, now=NOW)
    assert GraphReason.IMAGE_PULL_FAILED == diagnosis.reason
    message = "pod x-2 container main ImagePullBackOff: no such tag (and 2 more)"
    assert message == diagnosis.message
    assert ["x-2", "x-3", "x-1"] == [pod.name for pod in diagnosis.blocked_pods]
    assert 4 == diagnosis.scheduled_replicas


def test_no_more_than_five_are_listed_and_their_order_does_not_depend_on_that_of_the_pods() -> None:
    pods = [a_pod(waiting("CrashLoopBackOff"), name=f"x-{index}") for index in range(9)]
    shuffled = random.Random(1).sample(pods, len(pods))  # noqa: S311  # an order, not a secret
    expected = [f"x-{index}" for index in range(5)]
    assert expected == [pod.name for pod in diagnose(pods, nodes=1, now=NOW).blocked_pods]
    assert diagnose(pods, nodes=1, now=NOW) == diagnose(shuffled, nodes=1, now=NOW)


def test_ready_pods_have_no_blocked_reason() -> None:
    diagnosis = diagnose([a_pod(conditions=READY, name="x-0")], nodes=1, now=NOW)
    assert (None, None, ()) == (diagnosis.reason, diagnosis.message, diagnosis.blocked_pods)


def test_a_replica_over_several_nodes_is_placed_when_all_its_pods_are() -> None:
    one = {"leaderworkerset.sigs.k8s.io/name": "w-0"}
    two = {"leaderworkerset.sigs.k8s.io/name": "w-1"}
    pods = [
        a_pod(conditions=READY, name="w-0-0", labels=one),
        a_pod(conditions=READY, name="w-0-1", labels=one),
        a_pod(conditions=READY, name="w-1-0", labels=two),
        a_pod(conditions=(UNSCHEDULABLE,), node="", name="w-1-1", labels=two),
    ]
    diagnosis = diagnose(pods, nodes=2, now=NOW)
    assert (1, "insufficient_capacity") == (diagnosis.scheduled_replicas, diagnosis.reason)


def test_the_earliest_requeue_counts() -> None:
    since = ("2025-12-31T23:59:50Z", "2025-12-31T23:59:40Z")
    pods = [a_pod(node="", conditions=(UNSCHEDULABLE | {"lastTransitionTime": time},)) for time in since]
    diagnosis = diagnose(pods, nodes=1, now=datetime.fromisoformat(THEN))
    assert ("pods_not_ready", 10.0) == (diagnosis.reason, diagnosis.requeue_after_seconds)
