"""Whether a service or its Deployment is ready: counts, what an update explains, what is missing."""

from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from dynamo_operator.component.api import ServiceReplicaStatus
from dynamo_operator.component.pods import Diagnosis
from dynamo_operator.shared.conditions import ComponentReason, GraphReason
from kube_runtime.types.kinds import Deployment, DeploymentSpec, DeploymentStatus
from kube_runtime.types.meta import condition


# During an update the pods of a service start, as they do after a failure. What distinguishes an
# update is the state before: pods of an older revision, or a service that was ready.
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


# Its counts describe the newest template only once its controller has observed the newest
# generation, and they count old pods as available too.
@dataclass(frozen=True, slots=True)
class Readiness:
    """Whether a workload is ready, with the reason and message of its component's `Available`.

    `is_rolling` is whether some replicas lack the newest template; `has_older`, whether replicas of an older
    one remain.
    """

    is_ready: bool
    reason: ComponentReason
    message: str
    is_rolling: bool = False
    has_older: bool = False


NO_DEPLOYMENT = Readiness(
    is_ready=False,
    reason=ComponentReason.DEPLOYMENT_NOT_READY,
    message="Deployment is not ready: it does not exist yet or is being deleted",
)


def deployment_readiness(deployment: Deployment) -> Readiness:
    """Whether all desired replicas of a Deployment run its newest template, and no others."""
    status = deployment.status
    spec = msgspec.json.decode(deployment.spec, type=DeploymentSpec)
    cause = _deployment_obstacle(deployment, spec)
    if cause is None:
        return Readiness(
            is_ready=True, reason=ComponentReason.DEPLOYMENT_READY, message="Deployment is ready"
        )
    return Readiness(
        is_ready=False,
        reason=ComponentReason.DEPLOYMENT_NOT_READY,
        message=f"Deployment is not ready: {cause}",
        is_rolling=status.observed_generation < deployment.metadata.generation
        or status.updated_replicas < max(spec.replicas, status.replicas),
        has_older=status.replicas > status.updated_replicas,
    )


def _deployment_obstacle(deployment: Deployment, spec: DeploymentSpec) -> str | None:
    """Why the Deployment is not ready: the first cause in the order of a rollout; None if it is ready."""
    status, desired = deployment.status, spec.replicas
    older = status.replicas - status.updated_replicas
    checks = (
        (spec.paused and desired > 0, "it is paused"),
        (
            status.observed_generation < deployment.metadata.generation,
            "its controller has not observed the newest spec yet",
        ),
        (
            status.updated_replicas < desired,
            f"{status.updated_replicas} of {desired} replicas are updated",
        ),
        (older > 0, f"{older} replicas of an older revision remain"),
        (status.replicas > desired, f"{status.replicas - desired} surplus replicas remain"),
        (
            status.available_replicas < desired,
            f"{status.available_replicas} of {desired} replicas are available",
        ),
    )
    obstacle = next((text for applies, text in checks if applies), None)
    return f"{obstacle}{_rollout_failure(status)}" if obstacle else None


def _rollout_failure(status: DeploymentStatus) -> str:
    """The Deployment controller's message about a stuck rollout, or ""."""
    for type_, bad in (("ReplicaFailure", "True"), ("Progressing", "False")):
        entry = condition(status.conditions, type_)
        if entry and entry.status == bad:
            return f"; {entry.message}"
    return ""


def deployment_replicas(deployment: Deployment) -> ServiceReplicaStatus:
    """The counts of a Deployment; none is updated until its controller has observed the newest spec."""
    status = deployment.status
    is_behind = status.observed_generation < deployment.metadata.generation
    return ServiceReplicaStatus(
        component_kind="Deployment",
        component_name=deployment.metadata.name,
        replicas=status.replicas,
        updated_replicas=0 if is_behind else status.updated_replicas,
        ready_replicas=status.ready_replicas,
        available_replicas=status.available_replicas,
        component_names=(deployment.metadata.name,),
    )
