"""Whether a service or its Deployment is ready: counts, what an update explains, what is missing."""

from dataclasses import dataclass

import msgspec
from msgspec.structs import replace

from dynamo_operator.component.api import ServiceReplicaStatus
from dynamo_operator.component.pods import Diagnosis
from dynamo_operator.shared.conditions import ComponentReason, GraphReason
from kube_runtime.types.kinds import Deployment, DeploymentSpec
from kube_runtime.types.meta import condition


# During an update the pods of a service start, as they do after a failure. What distinguishes an
# update is the state before: pods of an older revision, or a service that was ready.
@dataclass(frozen=True, slots=True)
class ServiceView:
    """The live state of a service, which the object `name` runs, with the number of `desired` replicas.

    `counts` has its replicas, and the state of its pods in `reason` and `message`; `newest` those of the
    newest revision, where older ones are objects of their own. `obstacles` is why its workload is not ready.
    With `is_rolling` some replicas lack the newest spec; with `has_older` some of an older one remain.
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
    before: ServiceReplicaStatus | None, *, is_same: bool, was_ready: bool, is_rolling: bool, has_older: bool
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

    reason: ComponentReason
    message: str
    is_ready: bool = False
    is_rolling: bool = False
    has_older: bool = False


NO_DEPLOYMENT = Readiness(
    ComponentReason.DEPLOYMENT_NOT_READY, "Deployment is not ready: it does not exist yet or is being deleted"
)


def deployment_readiness(deployment: Deployment) -> Readiness:
    """Whether all desired replicas of a Deployment run its newest template, and no others."""
    status = deployment.status
    spec = msgspec.json.decode(deployment.spec, type=DeploymentSpec)
    cause = _deployment_obstacle(deployment, spec)
    if cause is None:
        return Readiness(ComponentReason.DEPLOYMENT_READY, "Deployment is ready", is_ready=True)
    return Readiness(
        ComponentReason.DEPLOYMENT_NOT_READY,
        f"Deployment is not ready: {cause}",
        is_rolling=status.observed_generation < deployment.metadata.generation
        or status.updated_replicas < max(spec.replicas, status.replicas),
        has_older=status.replicas > status.updated_replicas,
    )


def _deployment_obstacle(deployment: Deployment, spec: DeploymentSpec) -> str | None:
    # The first cause in the order of a rollout.
    status, desired = deployment.status, spec.replicas
    updated, available = status.updated_replicas, status.available_replicas
    is_behind = status.observed_generation < deployment.metadata.generation
    checks = (
        (spec.paused and desired > 0, "it is paused"),
        (is_behind, "its controller has not observed the newest spec yet"),
        (updated < desired, f"{updated} of {desired} replicas are updated"),
        (status.replicas > updated, f"{status.replicas - updated} replicas of an older revision remain"),
        (status.replicas > desired, f"{status.replicas - desired} surplus replicas remain"),
        (available < desired, f"{available} of {desired} replicas are available"),
    )
    obstacle = next((text for applies, text in checks if applies), None)
    for type_, bad in (("ReplicaFailure", "True"), ("Progressing", "False")):
        entry = condition(status.conditions, type_)
        if obstacle and entry and entry.status == bad:  # the Deployment controller knows why it is stuck
            return f"{obstacle}; {entry.message}"
    return obstacle


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
