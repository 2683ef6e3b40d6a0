"""The controller of DynamoComponentDeployment: one component, its workload, the objects around it.

A reconcile reads once (`read.py`), renders, applies, and reports (`status.py`). Only the first step reads the
cache, and only apply and report write.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import ClassVar

import msgspec

from dynamo_operator import labels, names
from dynamo_operator.component.api import DynamoComponentDeployment, DynamoComponentDeploymentStatus
from dynamo_operator.component.pods import (
    NO_DEPLOYMENT,
    Diagnosis,
    deployment_readiness,
    deployment_replicas,
    diagnose,
)
from dynamo_operator.component.read import (
    ComponentInputs,
    LiveObjects,
    PodIndex,
    component_pod_watch,
    fact_watches,
    read_component,
)
from dynamo_operator.component.render import component_parts, component_shared_objects, group_names
from dynamo_operator.component.status import (
    Group,
    component_status,
    component_stop,
    groups_readiness,
    groups_replicas,
    reduced,
)
from dynamo_operator.component.validate import component_problems
from dynamo_operator.features.exposure import component_exposure
from dynamo_operator.features.namespace_defaults import component_member, kept_defaults, still_kept
from dynamo_operator.features.takeover.apply import (
    adopted_workloads,
    may_start_to_drain,
    without_new_drains,
)
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import (
    SET_NAME,
    Facts,
    LeaderWorkerSet,
    ModelService,
    PodGroup,
    VirtualService,
)
from dynamo_operator.shared.report import Reporter, ValidationCache, load_for_reconcile
from kube_runtime.apply.applier import Applier, Controlled, Shared, shared_watch
from kube_runtime.apply.result import Applied
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.controller.controller import Result
from kube_runtime.kind import Key, Object
from kube_runtime.types.kinds import (
    ConfigMap,
    Deployment,
    Ingress,
    PodDisruptionBudget,
    Service,
    StatefulSet,
)
from kube_runtime.types.meta import Resource


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


@dataclass(frozen=True, slots=True)
class ComponentController:
    """Turns a DynamoComponentDeployment into a workload with its Services and Ingress."""

    cache: Cache
    applier: Applier
    reporter: Reporter
    pods: PodIndex
    settings: RenderSettings
    validated: ValidationCache = field(default_factory=ValidationCache)

    reconciles: ClassVar[type[Resource]] = DynamoComponentDeployment
    owns: ClassVar[tuple[type[Resource], ...]] = (
        # The last type of a kind is the one written. An earlier operator gave Services of models one owner.
        ModelService,
        Service,
        Ingress,
        VirtualService,
        Deployment,
        PodGroup,
        LeaderWorkerSet,
        ConfigMap,
        PodDisruptionBudget,
    )
    shares: ClassVar[tuple[type[Resource], ...]] = (ModelService,)

    @property
    def watches(self) -> tuple[Watches, ...]:
        """The other kinds that a reconcile reads: facts, shared objects, leaders of groups, pods."""
        shared = (shared_watch(type_, self.reconciles.KIND) for type_ in self.shares)
        children = (_leaders_watch(self.cache), component_pod_watch(self.cache))
        return (*fact_watches(self.cache), *shared, *children)

    async def reconcile(self, key: Key) -> Result:
        """Apply the objects of a component, and report their state in its status."""
        component = await load_for_reconcile(
            DynamoComponentDeployment, key, self.cache, self.reporter
        )
        if isinstance(component, Result):
            return component
        inputs = read_component(component, self.cache, self.pods, self.owns)
        find = partial(component_problems, settings=self.settings)
        problems = self.validated.problems_by(component, find)
        if stop := component_stop(component, problems, inputs.facts):
            return await self.reporter.stopped(component, stop)
        applied = await self._apply(component, inputs)
        now = datetime.now(UTC)
        diagnosis = diagnose(inputs.pods, nodes=component.spec.nodes, now=now)
        status = applied_status(component, inputs, applied, diagnosis)
        return await self.reporter.applied(
            component, status, applied, diagnosis.requeue_after_seconds
        )

    async def _apply(
        self, component: DynamoComponentDeployment, inputs: ComponentInputs
    ) -> Applied:
        """Apply the Service of the component's model, and everything that the component controls."""
        models = component_shared_objects(component)
        around, workloads = self._render(component, inputs)
        exposure = component_exposure(component, around, self.settings)
        objects = chain(exposure.desired, workloads)
        return exposure.reported(
            await self.applier.apply(
                component,
                Shared(models, self.shares, labels.SHARED_MODEL),
                Controlled(objects, self.owns, exposure.spared, reduced, inputs.live),
            )
        )

    def _render(
        self, component: DynamoComponentDeployment, inputs: ComponentInputs
    ) -> tuple[Sequence[Object], Iterable[Object]]:
        """Render the objects around the workloads, and these; running pods keep equivalent templates."""
        live = inputs.live
        members = component_member(component, inputs.facts, self.settings, inputs.pods)
        if kept := kept_defaults(members, live, inputs.facts):
            facts = replace(inputs.facts, running_defaults=kept)
            around, workloads = self._rendered(component, facts, live)
            if still_kept(kept, members, workloads(), live):
                return around, workloads()
        around, workloads = self._rendered(component, inputs.facts, live)
        return around, workloads()

    def _rendered(
        self, component: DynamoComponentDeployment, facts: Facts, live: LiveObjects
    ) -> tuple[Sequence[Object], Callable[[], Iterator[Object]]]:
        """Render with these facts. The workloads, which may be a thousand, are made at each call."""
        parts = partial(component_parts, component, facts)
        around, workloads = parts(self.settings)
        adopted = partial(adopted_workloads, component, workloads, live)
        if not may_start_to_drain(component, live):
            return around, adopted
        undrained_settings = msgspec.structs.replace(self.settings, worker_drain_period_seconds=0)
        _, undrained = parts(undrained_settings)
        return around, lambda: without_new_drains(adopted(), undrained, live)


def _leaders_watch(cache: Cache) -> Watches:
    """Wake a component when the leaders of one of its groups change."""

    def keys(changed: Resource) -> Iterator[Key]:
        namespace = changed.metadata.namespace
        name = changed.metadata.labels.get(SET_NAME, "")
        owner = cache.get(LeaderWorkerSet, Key(namespace, name))
        if owner is not None and owner.metadata.controller is not None:
            yield Key(namespace, owner.metadata.controller.name)

    return Watches(StatefulSet, keys)
