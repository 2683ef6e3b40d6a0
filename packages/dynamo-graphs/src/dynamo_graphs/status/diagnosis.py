"""Why a service is not ready, from its pods.

A service may have a thousand pods: the status names the worst five, always in the same order, so that
nothing is written as long as nothing has changed.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from dynamo_graphs.api.component import BlockedPod
from dynamo_graphs.status.pods import Blockage, is_over, pod_report
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.types.grove import REPLICA_INDEX
from dynamo_graphs.types.optional_apis import SET_NAME
from kube_runtime.types.core import Pod

BLOCKED_LIMIT = 5
"""Most pods that the status of a service names."""

_WORST_FIRST = (
    GraphReason.INSUFFICIENT_CAPACITY,
    GraphReason.IMAGE_PULL_FAILED,
    GraphReason.CONFIG_ERROR,
    GraphReason.PODS_CRASHING,
    GraphReason.PODS_NOT_READY,
)


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a service is not ready, as far as its pods show it.

    `requeue_after_seconds` is when it may be another one although no pod has changed.

    None means: not known; and of `requeue_after_seconds`, never.
    """

    reason: GraphReason | None = None
    message: str | None = None
    blocked_pods: tuple[BlockedPod, ...] = ()
    scheduled_replicas: int | None = None
    requeue_after_seconds: float | None = None


UNKNOWN = Diagnosis()
"""What is known of a service whose pods are not watched."""


def diagnose(pods: Iterable[Pod], *, nodes: int, now: datetime) -> Diagnosis:
    """What the pods of a service say. `nodes` is how many pods one replica has."""
    live = [pod for pod in pods if not is_over(pod)]
    reports = [(pod.metadata.name, pod_report(pod, now)) for pod in live]
    blocked = sorted(
        ((name, report.blockage) for name, report in reports if report.blockage),
        key=lambda blocked_pod: (_WORST_FIRST.index(blocked_pod[1].reason), blocked_pod[0]),
    )
    times = [
        report.requeue_after_seconds
        for _, report in reports
        if report.requeue_after_seconds is not None
    ]
    return Diagnosis(
        reason=blocked[0][1].reason if blocked else None,
        message=_message(*blocked[0], others=len(blocked) - 1) if blocked else None,
        blocked_pods=tuple(_blocked(name, blockage) for name, blockage in blocked[:BLOCKED_LIMIT]),
        scheduled_replicas=_scheduled(live, nodes),
        requeue_after_seconds=min(times, default=None),
    )


def _message(name: str, blockage: Blockage, *, others: int) -> str:
    container = f" container {blockage.container}" if blockage.container else ""
    more = f" (and {others} more)" if others else ""
    detail = f": {blockage.message}" if blockage.message else ""
    return f"pod {name}{container} {blockage.word}{detail}{more}"


def _blocked(name: str, blockage: Blockage) -> BlockedPod:
    return BlockedPod(
        name=name,
        reason=blockage.word,
        container=blockage.container,
        message=blockage.message or None,
        since=blockage.since,
        restarts=blockage.restarts,
    )


def _scheduled(pods: Iterable[Pod], nodes: int) -> int:
    """How many replicas have a node for each of their pods."""
    placed = Counter(_replica(pod, nodes) for pod in pods if pod.spec.node_name)
    return sum(count >= nodes for count in placed.values())


def _replica(pod: Pod, nodes: int) -> str:
    """Which replica a pod belongs to: of one pod, itself; of several, its group."""
    if nodes == 1:
        return pod.metadata.name
    pod_labels = pod.metadata.labels
    return pod_labels.get(SET_NAME) or pod_labels.get(REPLICA_INDEX, "")
