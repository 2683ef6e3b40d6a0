"""A service of a graph: as its status sees it, on components or on Grove, and as a row of a list.

During an update the pods of a service start, as they do after a failure. What distinguishes an update is the
state before: pods of an older revision, or a service that was ready.
"""

from dataclasses import dataclass

from msgspec.structs import replace

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.deployment_config import base_replicas
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.service_status import BlockedPod, ServiceReplicaStatus
from dynamo_graphs.plan.replicas import effective_replicas
from dynamo_graphs.plan.suspension import TYPE as SUSPENDED
from dynamo_graphs.status.diagnosis import Diagnosis
from dynamo_graphs.status.readiness import Stated
from dynamo_graphs.status.reasons import GraphReason
from kube_runtime.types.meta import condition


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
        ready = _ready_replicas(counts)
        older = counts.replicas - counts.updated_replicas
        return min(max(0, (ready or 0) - max(0, older)), counts.updated_replicas)


def _ready_replicas(counts: ServiceReplicaStatus) -> int | None:
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


@dataclass(frozen=True, slots=True)
class Service:
    """A row of a list of services: the desired replicas, and what the status reports.

    None means unknown; for `ready`, that its workload has no such count.
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
    """The services of a graph or component, by name; other kinds have none."""
    match stated:
        case DynamoGraphDeployment():
            return _of_graph(stated)
        case DynamoComponentDeployment(spec=spec, status=status):
            desired = spec.desired_replicas
            return [_service(spec.service_name or stated.metadata.name, desired, status.service)]
        case _:
            return []


def _of_graph(graph: DynamoGraphDeployment) -> list[Service]:
    # The operator copies the replicas of scaling adapters into the spec, so adapters are not read here.
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
