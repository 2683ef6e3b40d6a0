"""A service of a graph as its status sees it: the same for components and for Grove; and as a row of a list.

The pods of a service that is being updated merely start, as after a failure; an update can only be
recognized from the state before: pods of an older revision, or a service that was ready.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from dynamo_graphs.api.component import BlockedPod, DynamoComponentDeployment, ServiceReplicaStatus
from dynamo_graphs.api.deployment_config import base_replicas
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.plan.replicas import effective_replicas
from dynamo_graphs.plan.suspension import TYPE as SUSPENDED
from dynamo_graphs.status.diagnosis import Diagnosis
from dynamo_graphs.status.readiness import Stated
from dynamo_graphs.status.reasons import GraphReason
from kube_runtime.types.meta import condition


@dataclass(frozen=True, slots=True)
class ServiceView:
    """A service as it runs now.

    `name` is the object that runs it. `obstacles` is why it is not ready, as its workload says; empty means
    that it is. `desired` is the number of replicas. `exists` is whether anything is known of its workload.
    `is_rolling` is whether its newest spec has not got to all its replicas; `has_older`, whether replicas of
    an older one remain. `counts` carries the counts and, under `reason` and `message`, the state of its pods.

    `newest` has the counts of what runs the newest spec, where older generations are objects of their own.
    None means: `counts` are those of one workload.
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
        """Whether it runs its newest spec only, in the desired number."""
        return not self.obstacles

    @property
    def ready_of_newest(self) -> int:
        """Replicas that serve and are of the newest spec, at the least.

        Counts do not show which replicas serve: those of an older spec are taken to be the first of them.
        """
        counts = self.newest or self.counts
        ready = _ready_replicas(counts)
        older = counts.replicas - counts.updated_replicas
        return min(max(0, (ready or 0) - max(0, older)), counts.updated_replicas)


def _ready_replicas(counts: ServiceReplicaStatus) -> int | None:
    return counts.available_replicas if counts.ready_replicas is None else counts.ready_replicas


_SOFT = (None, GraphReason.PODS_NOT_READY, GraphReason.UPDATING)
"""What an update explains. Any other cause is worth a person's attention."""


def cause(reason: str | None, *, updates: bool) -> str | None:
    """The reason of a service that is not ready. None means: unknown."""
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
    """Whether something newer takes the place of something that served.

    `before` are the counts in the stored status, which is about the same spec if `is_same`.
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
    """The counts of a service that is ready, so that there is nothing to explain."""
    return replace(counts, reason=None, message=None, blocked_pods=())


@dataclass(frozen=True, slots=True)
class Service:
    """One service: the replicas that it should have, and what the status says of it.

    None means: not known; of `ready`, that its workload has no such count.
    """

    name: str
    wanted: int
    ready: int | None = None
    updated: int | None = None
    ready_of_newest: int = 0
    reason: str = ""
    message: str = ""
    blocked_pods: tuple[BlockedPod, ...] = ()


def services(stated: Stated) -> list[Service]:
    """The services, by name; none of an object that has no pods of its own."""
    match stated:
        case DynamoGraphDeployment():
            return _of_graph(stated)
        case DynamoComponentDeployment(spec=spec, status=status):
            desired = spec.desired_replicas
            return [_service(spec.service_name or stated.metadata.name, desired, status.service)]
        case _:
            return []


def _of_graph(graph: DynamoGraphDeployment) -> list[Service]:
    # What scaling adapters say is in the graph's spec by the time that it counts.
    suspended = condition(graph.status.conditions, SUSPENDED)
    is_at_zero = suspended is not None and suspended.status == "True"
    replicas = effective_replicas(graph, {}, graph.spec.services if is_at_zero else ())
    return [
        _service(
            key,
            base_replicas(graph, key) if desired is None else desired,
            graph.status.services.get(key),
        )
        for key, desired in sorted(replicas.items())
    ]


def _service(name: str, desired: int, counts: ServiceReplicaStatus | None) -> Service:
    if counts is None:
        return Service(name, desired)
    return Service(
        name,
        desired,
        ready=_ready_replicas(counts),
        updated=counts.updated_replicas,
        ready_of_newest=ServiceView(name, counts, desired).ready_of_newest,
        reason=counts.reason or "",
        message=counts.message or "",
        blocked_pods=counts.blocked_pods,
    )
