"""Controller of DynamoComponentDeployment: one component, one workload, the objects around it."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import ClassVar

import msgspec

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.optional_apis import LEADER_WORKER_SET, withheld_text
from dynamo_graphs.facts import Facts
from dynamo_graphs.render.component import component_parts, component_shared_objects
from dynamo_graphs.render.orchestrators.leaderworkerset import group_names
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.status.component import (
    component_status,
    expensive_status,
    refused_status,
    unorchestrated_status,
)
from dynamo_graphs.status.diagnosis import Diagnosis, diagnose
from dynamo_graphs.status.groups import (
    NO_ORCHESTRATOR,
    Group,
    groups_readiness,
    groups_replicas,
    reduced,
)
from dynamo_graphs.status.workload import NO_DEPLOYMENT, deployment_readiness, deployment_replicas
from dynamo_graphs.types.istio import VirtualService
from dynamo_graphs.types.leaderworkerset import SET_NAME, LeaderWorkerSet
from dynamo_graphs.types.selected import ModelService
from dynamo_graphs.types.volcano import PodGroup
from dynamo_graphs.validation.component import component_problems
from dynamo_graphs.validation.multinode import lacks_orchestrator
from dynamo_operator.reconcile.adoption import (
    adopted_workloads,
    may_start_to_drain,
    without_new_drains,
)
from dynamo_operator.reconcile.events import earliest, record_events, result_of
from dynamo_operator.reconcile.exposure import component_exposure
from dynamo_operator.reconcile.offload import Offload
from dynamo_operator.reconcile.pods import PodIndex, component_pod_watch
from dynamo_operator.reconcile.preflight import load_for_reconcile
from dynamo_operator.reconcile.read import fact_watches, read_facts
from dynamo_operator.reconcile.validation_cache import ValidationCache
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.ownership import Controlled, Shared, shared_watch
from kube_runtime.apply.result import Applied
from kube_runtime.apply.status_patch import StatusRateLimit, patch_status
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import Recorder
from kube_runtime.kind import Key, Object
from kube_runtime.types.apps import Deployment, StatefulSet
from kube_runtime.types.core import ConfigMap, Pod, Service
from kube_runtime.types.meta import Resource
from kube_runtime.types.networking import Ingress
from kube_runtime.types.policy import PodDisruptionBudget


@dataclass(frozen=True, slots=True)
class ComponentController:
    """Turns a DynamoComponentDeployment into a workload with its Services and Ingress."""

    writer: Writer
    cache: Cache
    applier: Applier
    recorder: Recorder
    pace: StatusRateLimit
    pods: PodIndex
    settings: RenderSettings
    sound: ValidationCache = field(default_factory=ValidationCache)
    heavy: Offload = field(default_factory=Offload)

    reconciles: ClassVar[type[Resource]] = DynamoComponentDeployment
    owns: ClassVar[tuple[type[Resource], ...]] = (
        # Of one kind the last type is written. An earlier operator made Services of models with one owner.
        *(ModelService, Service, Ingress, VirtualService, Deployment),
        *(PodGroup, LeaderWorkerSet),
        *(ConfigMap, PodDisruptionBudget),
    )
    shares: ClassVar[tuple[type[Resource], ...]] = (ModelService,)

    @property
    def watches(self) -> tuple[Watches, ...]:
        """What else is read: what is beside a component, shared objects, leaders of groups."""
        shared = (shared_watch(each, self.reconciles.KIND) for each in self.shares)
        beside = (_leaders_watch(self.cache), component_pod_watch(self.cache))
        return (*fact_watches(self.cache), *shared, *beside)

    async def reconcile(self, key: Key) -> Result:
        """Make the world what this component wants, and its status what the world is."""
        component = await load_for_reconcile(
            DynamoComponentDeployment,
            key,
            cache=self.cache,
            client=self.applier.client,
            writer=self.writer,
            recorder=self.recorder,
        )
        if component is None:
            return DONE
        return await self.heavy.reconciled(component, self._reconcile, self._too_expensive)

    async def _too_expensive(self, component: DynamoComponentDeployment, text: str) -> None:
        stored = await patch_status(self.writer, component, expensive_status(component, text))
        record_events(self.recorder, component, stored, lack=("TooExpensive", text))

    async def _reconcile(self, component: DynamoComponentDeployment) -> Result:
        facts = read_facts(component.metadata.namespace, self.cache)
        find = partial(component_problems, settings=self.settings)
        if problems := await self.sound.problems_by(self.heavy, component, find):
            status = refused_status(component, problems)
            stored = await patch_status(self.writer, component, status)
            record_events(self.recorder, component, stored, problems=problems)
            return DONE  # a change of the spec or of a watched fact wakes us again
        if lacks_orchestrator(component.spec, facts):
            forbidden = withheld_text(facts.withheld, (LEADER_WORKER_SET,))
            status = unorchestrated_status(component, forbidden)
            stored = await patch_status(self.writer, component, status)
            lack = ("WorkloadProviderUnavailable", forbidden or NO_ORCHESTRATOR)
            record_events(self.recorder, component, stored, lack=lack)
            return DONE  # we are woken when it is installed
        models = component_shared_objects(component)
        around, workloads = await self._rendered(component, facts)
        exposure = component_exposure(component, around, self.settings)
        objects = chain(exposure.wanted, workloads)
        applied = exposure.reported(
            await self.applier.apply(
                component,
                Shared(models, self.shares, labels.SHARED_MODEL),
                Controlled(objects, self.owns, exposure.spared, reduced),
            )
        )
        now = datetime.now(UTC)
        diagnosis = diagnose(self._pods(component), nodes=component.spec.nodes, now=now)
        status = _status(component, applied, diagnosis, self.cache)
        if wait := self.pace.wait(component, status):
            record_events(self.recorder, component, component, applied=applied)
            return earliest(Result(wait), diagnosis.requeue_after_seconds)
        stored = await patch_status(self.writer, component, status, pace=self.pace)
        record_events(self.recorder, component, stored, applied=applied)
        return earliest(result_of(applied), diagnosis.requeue_after_seconds)

    async def _rendered(
        self, component: DynamoComponentDeployment, facts: Facts
    ) -> tuple[Sequence[Object], Iterable[Object]]:
        """What is around the workloads, and these. Pods that run keep a template that need not change."""
        parts = partial(self.heavy.do, component, component_parts, component, facts)
        around, workloads = await parts(self.settings)
        kept = adopted_workloads(component, workloads, self.cache)
        if may_start_to_drain(component, self.cache):
            _, undrained = await parts(
                msgspec.structs.replace(self.settings, worker_drain_period_seconds=0)
            )
            kept = without_new_drains(kept, undrained, self.cache)
        return around, kept

    def _pods(self, component: DynamoComponentDeployment) -> tuple[Pod, ...]:
        """The pods of the workloads that serve; a debug copy is not waited for."""
        namespace, name = component.key
        if component.spec.nodes == 1:
            return self.pods.of_workload(namespace, names.workload_name(name))
        groups = group_names(component)
        return tuple(pod for each in groups for pod in self.pods.of_workload(namespace, each))


def _status(
    component: DynamoComponentDeployment,
    applied: Applied,
    diagnosis: Diagnosis,
    cache: Cache,
) -> Object:
    blocked = applied.blocked
    if component.spec.nodes > 1:
        groups = _groups(component, applied, cache)
        replicas = groups_replicas(groups, names.group_name(component.metadata.name, 0))
        readiness = groups_readiness(groups)
        return component_status(component, readiness, replicas, blocked, diagnosis)
    deployment = applied.get(Deployment, names.workload_name(component.metadata.name))
    if deployment is None:
        return component_status(component, NO_DEPLOYMENT, None, blocked)
    readiness, replicas = deployment_readiness(deployment), deployment_replicas(deployment)
    return component_status(component, readiness, replicas, blocked, diagnosis)


def _groups(
    component: DynamoComponentDeployment, applied: Applied, cache: Cache
) -> dict[str, Group]:
    """Every replica that should exist, with what the API server holds of it."""
    sets, placements = applied.by_name(LeaderWorkerSet), applied.by_name(PodGroup)
    namespace = component.metadata.namespace
    return {
        name: Group(
            pods=sets.get(name),
            leaders=cache.get(StatefulSet, Key(namespace, name)),
            placement=placements.get(name),
        )
        for name in group_names(component)
    }


def _leaders_watch(cache: Cache) -> Watches:
    """What wakes a component when the leaders of one of its groups change."""

    def keys(changed: Resource) -> Iterator[Key]:
        namespace = changed.metadata.namespace
        name = changed.metadata.labels.get(SET_NAME, "")
        owner = cache.get(LeaderWorkerSet, Key(namespace, name))
        if owner is not None and owner.metadata.controller is not None:
            yield Key(namespace, owner.metadata.controller.name)

    return Watches(StatefulSet, keys)
