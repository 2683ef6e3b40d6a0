"""Compute the status of a component from its inputs and the result of the apply."""

from dynamo_graphs.api import names
from dynamo_graphs.api.component import DynamoComponentDeployment, DynamoComponentDeploymentStatus
from dynamo_graphs.render.orchestrators import group_names
from dynamo_graphs.status.component import component_status
from dynamo_graphs.status.diagnosis import Diagnosis
from dynamo_graphs.status.leaderworkerset import Group, groups_readiness, groups_replicas
from dynamo_graphs.status.workload import NO_DEPLOYMENT, deployment_readiness, deployment_replicas
from dynamo_graphs.types.optional_apis import LeaderWorkerSet, PodGroup
from dynamo_operator.component.read import ComponentInputs
from kube_runtime.apply.result import Applied
from kube_runtime.types.apps import Deployment


def applied_status(
    component: DynamoComponentDeployment,
    inputs: ComponentInputs,
    applied: Applied,
    diagnosis: Diagnosis,
) -> DynamoComponentDeploymentStatus:
    """The status of a component after an apply."""
    blocked, name = applied.blocked, component.metadata.name
    if component.spec.nodes > 1:
        groups = _groups(component, inputs, applied)
        replicas = groups_replicas(groups, names.group_name(name, 0))
        return component_status(component, groups_readiness(groups), replicas, blocked, diagnosis)
    deployment = applied.get(Deployment, names.workload_name(name))
    if deployment is None:
        return component_status(component, NO_DEPLOYMENT, None, blocked)
    readiness, replicas = deployment_readiness(deployment), deployment_replicas(deployment)
    return component_status(component, readiness, replicas, blocked, diagnosis)


def _groups(
    component: DynamoComponentDeployment, inputs: ComponentInputs, applied: Applied
) -> dict[str, Group]:
    """The groups that should exist, each with its live objects."""
    sets, placements = applied.by_name(LeaderWorkerSet), applied.by_name(PodGroup)
    return {
        name: Group(
            pods=sets.get(name),
            leaders=inputs.leaders.get(name),
            placement=placements.get(name),
        )
        for name in group_names(component)
    }
