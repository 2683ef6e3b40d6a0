"""Whether a workload runs the desired pods, and why not; the rules are those of a Deployment.

Its counts describe the newest template only once its controller has observed the newest generation, and they
count old pods as available too.
"""

from dataclasses import dataclass

import msgspec

from dynamo_graphs.api.component import ServiceReplicaStatus
from dynamo_graphs.status.reasons import ComponentReason
from kube_runtime.types.apps import Deployment, DeploymentSpec, DeploymentStatus
from kube_runtime.types.meta import condition


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
