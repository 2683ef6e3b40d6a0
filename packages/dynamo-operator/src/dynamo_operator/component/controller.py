"""The controller of DynamoComponentDeployment: one component, its workload, the objects around it.

A reconcile reads once (`read.py`), decides (`decide.py`), applies, and computes the status (`status.py`);
the reporter (`shared/report.py`) writes it.
"""

from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from itertools import chain
from typing import ClassVar

import msgspec

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.decide import decide
from dynamo_operator.component.read import PodIndex, component_pod_watch, fact_watches, read_component
from dynamo_operator.component.render import is_surplus_group
from dynamo_operator.component.status import applied_status, reduced
from dynamo_operator.component.validate import component_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import LeaderWorkerSet, ModelService, PodGroup, VirtualService
from dynamo_operator.shared.report import Reporter, ValidationCache, load_for_reconcile
from kube_runtime.apply.applier import Applier, Controlled, Shared, shared_watch
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.controller.controller import Result
from kube_runtime.types.kinds import (
    ConfigMap,
    Deployment,
    Ingress,
    Pod,
    PodDisruptionBudget,
    Service,
    StatefulSet,
)
from kube_runtime.types.meta import Key, Resource


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
        children = (component_pod_watch(self.cache, of=type_) for type_ in (StatefulSet, Pod))
        return (*fact_watches(self.cache), *shared, *children)

    async def reconcile(self, key: Key) -> Result:
        """Apply the objects of a component, and report their state in its status."""
        component = await load_for_reconcile(DynamoComponentDeployment, key, self.cache, self.reporter)
        if isinstance(component, Result):
            return component
        inputs = read_component(component, self.cache, self.pods, self.owns)
        if self.applier.writer.client.stored(component.KIND) != component.KIND:
            inputs = msgspec.structs.replace(inputs, in_v1beta1=True)
        find = partial(component_problems, settings=self.settings)
        problems_of = partial(self.validated.problems_by, find=find)
        decision = decide(component, inputs, self.settings, problems_of)
        if decision.stop:
            return await self.reporter.stop(component, decision.stop)
        applied = await self.applier.apply(
            component,
            Shared(decision.models, self.shares, labels.SHARED_MODEL),
            Controlled(
                chain(decision.around, decision.workloads),
                self.owns,
                decision.spared,
                reduced,
                decided_with=inputs.live,
                is_surplus=partial(is_surplus_group, component),
            ),
            applied=self.reporter.applying(component),
        )
        applied.obstructions += decision.blocked
        status, seconds = applied_status(component, inputs, applied, datetime.now(UTC))
        return await self.reporter.finish(component, status, applied, seconds)
