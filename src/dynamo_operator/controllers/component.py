"""Controller of DynamoComponentDeployment: one component, one workload, the objects around it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dynamo_operator.api import names
from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.controllers.gather import fact_watches, gather
from dynamo_operator.controllers.report import outcome, report
from dynamo_operator.kube.apply import Applied, Applier
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.controller import DONE, Again, Outcome, Watches
from dynamo_operator.kube.events import Recorder
from dynamo_operator.kube.kind import Key, Object
from dynamo_operator.kube.shared import SharedApplier, shared_watch
from dynamo_operator.kube.status import StatusPace, patch_status
from dynamo_operator.kube.types.apps import Deployment
from dynamo_operator.kube.types.core import Service
from dynamo_operator.kube.types.istio import VirtualService
from dynamo_operator.kube.types.leaderworkerset import LeaderWorkerSet
from dynamo_operator.kube.types.meta import Resource
from dynamo_operator.kube.types.networking import Ingress
from dynamo_operator.kube.types.volcano import PodGroup
from dynamo_operator.kube.writer import Writer
from dynamo_operator.render.component import component_objects, component_shared_objects
from dynamo_operator.settings import RenderSettings
from dynamo_operator.status.component import (
    component_status,
    refused_status,
    unorchestrated_status,
)
from dynamo_operator.status.groups import (
    NO_ORCHESTRATOR,
    Group,
    groups_readiness,
    groups_replicas,
)
from dynamo_operator.status.workload import NO_DEPLOYMENT, deployment_readiness, deployment_replicas
from dynamo_operator.validation.component import component_problems
from dynamo_operator.validation.multinode import lacks_orchestrator


@dataclass(frozen=True, slots=True)
class ComponentController:
    """Turns a DynamoComponentDeployment into a workload with its Services and Ingress."""

    writer: Writer
    cache: Cache
    applier: Applier
    shared: SharedApplier
    recorder: Recorder
    pace: StatusPace
    settings: RenderSettings

    reconciles: ClassVar[type[DynamoComponentDeployment]] = DynamoComponentDeployment
    owns: ClassVar[tuple[type[Resource], ...]] = (
        *(Service, Ingress, VirtualService, Deployment),
        *(PodGroup, LeaderWorkerSet),
    )
    shares: ClassVar[tuple[type[Resource], ...]] = (Service,)

    @property
    def watches(self) -> tuple[Watches, ...]:
        """What else is read: pull secrets and service accounts of the namespace, shared objects."""
        shared = (shared_watch(each, self.reconciles.KIND) for each in self.shares)
        return (*fact_watches(self.cache), *shared)

    async def reconcile(self, key: Key) -> Outcome:
        """Make the world what this component wants, and its status what the world is."""
        component = self.cache.get(DynamoComponentDeployment, key)
        if component is None or component.metadata.deletion_timestamp:
            return DONE  # owner references: the API server deletes the rest
        facts = gather(key.namespace, self.cache)
        if problems := component_problems(component, facts, self.settings):
            status = refused_status(component, problems)
            stored = await patch_status(self.writer, component, status)
            report(self.recorder, component, stored, problems=problems)
            return DONE  # a change of the spec or of a watched fact wakes us again
        if lacks_orchestrator(component.spec, facts):
            status = unorchestrated_status(component)
            stored = await patch_status(self.writer, component, status)
            lack = ("WorkloadProviderUnavailable", NO_ORCHESTRATOR)
            report(self.recorder, component, stored, lack=lack)
            return DONE  # we are woken when it is installed
        shared = await self.shared.apply(
            component,
            wanted=component_shared_objects(component, facts, self.settings),
            types=self.shares,
        )
        wanted = component_objects(component, facts, self.settings)
        applied = await self.applier.apply(component, wanted=wanted, owns=self.owns)
        blocked = (*shared.blocked, *applied.blocked)
        changes = (*shared.changes, *applied.changes)
        status = _status(component, wanted, applied, shared)
        if wait := self.pace.wait(component, status):
            report(self.recorder, component, component, changes=changes)
            return Again(wait)
        stored = await patch_status(self.writer, component, status)
        report(self.recorder, component, stored, changes=changes, blocked=blocked)
        return outcome(blocked)


def _status(
    component: DynamoComponentDeployment,
    wanted: Sequence[Object],
    applied: Applied,
    shared: Applied,
) -> Object:
    blocked = (*shared.blocked, *applied.blocked)
    if component.spec.nodes > 1:
        groups = _groups(wanted, applied)
        replicas = groups_replicas(groups, names.group_name(component.metadata.name, 0))
        return component_status(component, groups_readiness(groups), replicas, blocked)
    deployment = applied.get(Deployment, names.workload_name(component.metadata.name))
    if deployment is None:
        return component_status(component, NO_DEPLOYMENT, None, blocked)
    readiness = deployment_readiness(deployment)
    return component_status(component, readiness, deployment_replicas(deployment), blocked)


def _groups(wanted: Sequence[Object], applied: Applied) -> dict[str, Group]:
    """Every replica that should exist, with what the API server holds of it."""
    found = [
        each["metadata"]["name"] for each in wanted if each["kind"] == LeaderWorkerSet.KIND.name
    ]
    return {
        name: Group(applied.get(LeaderWorkerSet, name), applied.get(PodGroup, name))
        for name in found
    }
