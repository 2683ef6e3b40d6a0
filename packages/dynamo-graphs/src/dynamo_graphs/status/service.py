"""A service of a graph as its status sees it: the same for components and for Grove.

The pods of a service that is being updated merely start, as after a failure; an update can only be
recognized from the state before: pods of an older revision, or a service that was ready.
"""

from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from dynamo_graphs.api.service_status import ServiceReplicaStatus
from dynamo_graphs.status.diagnosis import Diagnosis
from dynamo_graphs.status.reasons import GraphReason
from kube_runtime.kind import Object


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A service as it runs now.

    `name` is the object that runs it. `obstacles` is why it is not ready, as its workload says; empty means
    that it is. `wanted` is the number of replicas. `exists` is whether anything is known of its workload.
    `is_rolling` is whether its newest spec has not got to all its replicas; `has_older`, whether replicas of
    an older one remain. `counts` carries the counts and, under `reason` and `message`, the state of its pods.

    `newest` has the counts of what runs the newest spec, where older generations are objects of their own.
    None means: `counts` are those of one workload.
    """

    name: str
    counts: ServiceReplicaStatus
    wanted: int
    obstacles: tuple[str, ...] = ()
    exists: bool = True
    is_rolling: bool = False
    has_older: bool = False
    requeue_after_seconds: float | None = None
    newest: ServiceReplicaStatus | None = None

    @property
    def is_ready(self) -> bool:
        """Whether it runs its newest spec only, in the wanted number."""
        return not self.obstacles

    @property
    def ready_of_newest(self) -> int:
        """Replicas that serve and are of the newest spec, at the least.

        Counts do not show which replicas serve: those of an older spec are taken to be the first of them.
        """
        counts = self.newest or self.counts
        ready = (
            counts.available_replicas if counts.ready_replicas is None else counts.ready_replicas
        )
        older = counts.replicas - counts.updated_replicas
        return min(max(0, (ready or 0) - max(0, older)), counts.updated_replicas)


_SOFT = (None, GraphReason.PODS_NOT_READY, GraphReason.UPDATING)
"""What an update explains. Any other cause is worth a person's attention."""


def cause(found: str | None, *, is_updating: bool) -> str | None:
    """The reason of a service that is not ready. None means: unknown."""
    if found not in _SOFT:
        return found
    if is_updating:
        return GraphReason.UPDATING
    return None if found is None else GraphReason.PODS_NOT_READY


def diagnosed(counts: ServiceReplicaStatus, diagnosis: Diagnosis) -> ServiceReplicaStatus:
    """The counts with the state of the pods."""
    scheduled = diagnosis.scheduled_replicas
    if (
        scheduled is not None
    ):  # a ready pod has a node, even if its workload reports it before the pod does
        scheduled = max(scheduled, counts.ready_replicas or counts.available_replicas or 0)
    return replace(
        counts,
        reason=diagnosis.reason,
        message=diagnosis.message,
        blocked_pods=diagnosis.blocked_pods,
        scheduled_replicas=scheduled,
    )


def explained(
    counts: ServiceReplicaStatus, reason: str | None, message: str | None
) -> ServiceReplicaStatus:
    """The counts with this reason and message."""
    return replace(counts, reason=reason, message=message)


def unexplained(counts: ServiceReplicaStatus) -> ServiceReplicaStatus:
    """The counts of a service that is ready, so that there is nothing to explain."""
    return replace(counts, reason=None, message=None, blocked_pods=())


def service_json(counts: ServiceReplicaStatus) -> Object:
    """The service as a status has it. What is not known is None, which removes what was there."""
    every: Object = msgspec.to_builtins(counts)
    return {name: None if value in ((), []) else value for name, value in every.items()}
