"""Whether a Deployment is ready, what is missing, and its counts with the state of its pods."""

from dataclasses import dataclass

from msgspec.structs import replace

from dynamo_operator.component.api import ServiceReplicaStatus
from dynamo_operator.component.diagnosis import Diagnosis
from dynamo_operator.shared.conditions import ComponentReason
from kube_runtime.types.kinds import Deployment, DeploymentSpec
from kube_runtime.types.meta import condition, from_json


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


# The counts of a Deployment describe the newest template only once its controller has observed the
# newest generation, and they count old pods as available too.
def deployment_readiness(deployment: Deployment) -> Readiness:
    """Whether all desired replicas of a Deployment run its newest template, and no others."""
    status = deployment.status
    spec = from_json(deployment.spec, DeploymentSpec)
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
