"""Why a service is not ready, from its pods.

A service may have a thousand pods. The status names the worst five, in a fixed order, so that it changes only
when they do.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime

from dynamo_graphs.api.component import BlockedPod
from dynamo_graphs.status.pods import Blockage, is_over, pod_report
from dynamo_graphs.status.reasons import POD_REASONS, PodReason
from dynamo_graphs.types.grove import REPLICA_INDEX
from dynamo_graphs.types.optional_apis import SET_NAME
from kube_runtime.types.core import Pod

BLOCKED_LIMIT = 5
"""Most blocked pods in the status of a service."""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """Why a service is not ready, as far as its pods show. None means unknown.

    `requeue_after_seconds` is when the diagnosis may differ without a change of a pod; None means never.
    """

    reason: PodReason | None = None
    message: str | None = None
    blocked_pods: tuple[BlockedPod, ...] = ()
    scheduled_replicas: int | None = None
    requeue_after_seconds: float | None = None


UNKNOWN = Diagnosis()
"""The diagnosis of a service whose pods are not watched."""


def diagnose(pods: Iterable[Pod], *, nodes: int, now: datetime) -> Diagnosis:
    """Diagnose a service by its pods. `nodes` is the number of pods of one replica."""
    live = [pod for pod in pods if not is_over(pod)]
    reports = [(pod.metadata.name, pod_report(pod, now)) for pod in live]
    blocked = sorted(
        ((name, report.blockage) for name, report in reports if report.blockage),
        key=lambda blocked_pod: (POD_REASONS.index(blocked_pod[1].reason), blocked_pod[0]),
    )
    times = [
        report.requeue_after_seconds
        for _, report in reports
        if report.requeue_after_seconds is not None
    ]
    reason = message = None
    if blocked:
        name, worst = blocked[0]
        more = f" (and {len(blocked) - 1} more)" if len(blocked) > 1 else ""
        reason, message = worst.reason, f"{worst.describe(name)}{more}"
    return Diagnosis(
        reason=reason,
        message=message,
        blocked_pods=tuple(_blocked(name, blockage) for name, blockage in blocked[:BLOCKED_LIMIT]),
        scheduled_replicas=_scheduled(live, nodes),
        requeue_after_seconds=min(times, default=None),
    )


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
    """The number of replicas whose pods all have a node."""
    placed = Counter(_replica(pod, nodes) for pod in pods if pod.spec.node_name)
    return sum(count >= nodes for count in placed.values())


def _replica(pod: Pod, nodes: int) -> str:
    """The replica of a pod: the pod itself, or the group that it belongs to."""
    if nodes == 1:
        return pod.metadata.name
    pod_labels = pod.metadata.labels
    return pod_labels.get(SET_NAME) or pod_labels.get(REPLICA_INDEX, "")
