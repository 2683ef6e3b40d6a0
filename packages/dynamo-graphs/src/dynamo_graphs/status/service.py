"""A service of a graph as its status describes it, on components or on Grove.

During an update the pods of a service start, as they do after a failure. What distinguishes an update is the
state before: pods of an older revision, or a service that was ready.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from dynamo_graphs.api.component import ServiceReplicaStatus
from dynamo_graphs.status.diagnosis import Diagnosis
from dynamo_graphs.status.reasons import GraphReason


@dataclass(frozen=True, slots=True)
class ServiceView:
    """The live state of a service.

    `name` is the object that runs it. `counts` has its replicas, and the state of its pods in `reason` and
    `message`. `desired` is the number of replicas. `obstacles` is why its workload is not ready; empty if it
    is. `exists` is whether its workload exists. `is_rolling` is whether some replicas lack the newest spec;
    `has_older`, whether replicas of an older one remain.

    `newest` has the counts of the newest revision where older revisions are objects of their own; None if
    `counts` are those of a single workload.
    """

    name: str
    counts: ServiceReplicaStatus
    desired: int
    obstacles: tuple[str, ...] = ()
    exists: bool = True
    is_rolling: bool = False
    has_older: bool = False
    requeue_after_seconds: float | None = None
    newest: ServiceReplicaStatus | None = None

    @property
    def is_ready(self) -> bool:
        """Whether all desired replicas run the newest spec, and no others."""
        return not self.obstacles

    @property
    def ready_of_newest(self) -> int:
        """The least number of ready replicas of the newest spec.

        Counts do not show which replicas are ready, so those of an older spec count as ready first.
        """
        counts = self.newest or self.counts
        ready = ready_replicas(counts)
        older = counts.replicas - counts.updated_replicas
        return min(max(0, (ready or 0) - max(0, older)), counts.updated_replicas)


def ready_replicas(counts: ServiceReplicaStatus) -> int | None:
    """The ready replicas, or the available ones of a workload that does not count ready ones."""
    return counts.available_replicas if counts.ready_replicas is None else counts.ready_replicas


_SOFT = (None, GraphReason.PODS_NOT_READY, GraphReason.UPDATING)
"""Reasons that an update explains. Any other needs a person's attention."""


def cause(reason: str | None, *, updates: bool) -> str | None:
    """The reason of a service that is not ready; None if unknown."""
    if reason not in _SOFT:
        return reason
    if updates:
        return GraphReason.UPDATING
    return None if reason is None else GraphReason.PODS_NOT_READY


def is_updating(
    before: ServiceReplicaStatus | None,
    *,
    is_same: bool,
    was_ready: bool,
    is_rolling: bool,
    has_older: bool,
) -> bool:
    """Whether a newer revision is replacing one that was ready.

    `before` are the counts in the stored status; `is_same` is whether that describes the same spec.
    """
    was_updating = before is not None and before.reason == GraphReason.UPDATING
    return has_older or (was_updating and (is_same or is_rolling)) or (was_ready and is_rolling)


def diagnosed(counts: ServiceReplicaStatus, diagnosis: Diagnosis) -> ServiceReplicaStatus:
    """The counts with the state of the pods."""
    scheduled = diagnosis.scheduled_replicas
    if scheduled is not None:
        # A ready pod has a node, even if its workload reports it before the pod does.
        scheduled = max(scheduled, counts.ready_replicas or counts.available_replicas or 0)
    return replace(
        counts,
        reason=diagnosis.reason,
        message=diagnosis.message,
        blocked_pods=diagnosis.blocked_pods,
        scheduled_replicas=scheduled,
    )


def unexplained(counts: ServiceReplicaStatus) -> ServiceReplicaStatus:
    """The counts of a ready service, without reason, message and blocked pods."""
    return replace(counts, reason=None, message=None, blocked_pods=())
