"""The controller of DynamoNimDeployment: one service of a graph, its Deployment, the objects around it.

A reconcile has the steps of today's components (`dynamo_operator/component/controller.py`): it reads once,
renders, applies, and reports.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar

from dynamo_graphs.api import names
from dynamo_graphs.facts import Facts
from dynamo_graphs.plan.templates import DEPLOYMENT_UNIT
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.status.diagnosis import diagnose
from dynamo_graphs.status.stop import Stop, too_expensive
from dynamo_graphs.status.workload import NO_DEPLOYMENT, deployment_readiness
from dynamo_graphs.types.optional_apis import VirtualService
from dynamo_legacy.api.nim import DynamoNimSpec
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from dynamo_legacy.render import claims, nim_namespace_defaults, nim_objects
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.status.nim import (
    claimless_status,
    imageless_status,
    nim_status,
    refusal,
    stopped_status,
)
from dynamo_legacy.translate import as_component, claim_name
from dynamo_legacy.validation import nim_problems
from dynamo_operator.legacy.nim.read import NimInputs, nim_watches, read_nim
from dynamo_operator.reconcile.exposure import component_exposure
from dynamo_operator.reconcile.namespace_defaults import Member, kept_defaults, still_kept
from dynamo_operator.reconcile.offload import Offload, ValidationCache
from dynamo_operator.reconcile.pods import PodIndex
from dynamo_operator.reconcile.preflight import load_for_reconcile
from dynamo_operator.reconcile.report import NOTHING, Reporter
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.ownership import Controlled, CreateOnly
from kube_runtime.apply.result import Applied
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.controller.controller import Result
from kube_runtime.kind import Key, Object
from kube_runtime.types.apps import Deployment
from kube_runtime.types.autoscaling import HorizontalPodAutoscaler
from kube_runtime.types.core import PersistentVolumeClaim, Service
from kube_runtime.types.meta import Resource
from kube_runtime.types.networking import Ingress


@dataclass(frozen=True, slots=True)
class NimController:
    """Turns a DynamoNimDeployment into a Deployment with its Service, autoscaler, PVC and Ingress."""

    cache: Cache
    applier: Applier
    reporter: Reporter
    pods: PodIndex
    settings: RenderSettings
    legacy: LegacySettings
    offload: Offload
    validated: ValidationCache = field(default_factory=ValidationCache)

    reconciles: ClassVar[type[Resource]] = DynamoNimDeployment
    owns: ClassVar[tuple[type[Resource], ...]] = (
        Service,
        Ingress,
        VirtualService,
        HorizontalPodAutoscaler,
        Deployment,
    )

    @property
    def watches(self) -> tuple[Watches, ...]:
        """The other kinds that a reconcile reads: images, builds, PVCs, labelled ServiceAccounts, pods."""
        return nim_watches(self.cache)

    async def reconcile(self, key: Key) -> Result:
        """Apply the objects of a component, and report their state in its status."""
        nim = await load_for_reconcile(DynamoNimDeployment, key, self.cache, self.reporter)
        if isinstance(nim, Result):
            return nim
        return await self.offload.reconciled(nim, self._reconcile, self._too_expensive)

    async def _too_expensive(self, nim: DynamoNimDeployment, text: str) -> None:
        await self.reporter.stopped(nim, too_expensive(stopped_status(nim, (text,)), text))

    async def _reconcile(self, nim: DynamoNimDeployment) -> Result:
        inputs = read_nim(nim, self.cache, self.pods, self.owns)
        find = partial(nim_problems, settings=self.settings, legacy=self.legacy)
        if problems := await self.validated.problems_by(self.offload, nim, find):
            return await self.reporter.stopped(nim, refusal(nim, problems))
        if inputs.image is None:
            status = imageless_status(nim, inputs.request)
            return await self.reporter.applied(nim, status, NOTHING)
        if stop := _without_claim(nim, inputs):
            return await self.reporter.stopped(nim, stop)
        applied = await self._apply(nim, inputs, inputs.image.spec)
        deployment = applied.get(Deployment, names.workload_name(nim.metadata.name))
        readiness = deployment_readiness(deployment) if deployment else NO_DEPLOYMENT
        diagnosis = diagnose(inputs.pods, nodes=1, now=datetime.now(UTC))
        status = nim_status(nim, inputs.request, readiness, applied.blocked, diagnosis)
        return await self.reporter.applied(nim, status, applied, diagnosis.requeue_after_seconds)

    async def _apply(
        self, nim: DynamoNimDeployment, inputs: NimInputs, image: DynamoNimSpec
    ) -> Applied:
        """Apply the PVC of a component, and everything that it controls."""
        around, workloads = await self._render(nim, inputs, image)
        component = as_component(nim, image, self.settings, self.legacy)
        exposure = component_exposure(component, around, self.settings)
        objects = (*exposure.desired, *workloads)
        return exposure.reported(
            await self.applier.apply(
                nim,
                CreateOnly(claims(nim), (PersistentVolumeClaim,)),
                Controlled(objects, self.owns, exposure.spared, decided_with=inputs.live),
            )
        )

    async def _render(
        self, nim: DynamoNimDeployment, inputs: NimInputs, image: DynamoNimSpec
    ) -> tuple[Sequence[Object], Sequence[Object]]:
        """Render the objects around the Deployment, and it; running pods keep their ServiceAccount."""

        async def render(facts: Facts) -> tuple[Sequence[Object], Sequence[Object]]:
            around, workloads = await self.offload.do(
                *(nim, nim_objects, nim, image, facts),
                *(self.settings, self.legacy, inputs.live_replicas),
            )
            return around, workloads

        now = nim_namespace_defaults(inputs.facts)
        members = {nim.metadata.name: Member(DEPLOYMENT_UNIT, now, inputs.pods)}
        if kept := kept_defaults(members, inputs.live, inputs.facts):
            around, workloads = await render(replace(inputs.facts, running_defaults=kept))
            if still_kept(kept, members, workloads, inputs.live):
                return around, workloads
        return await render(inputs.facts)


def _without_claim(nim: DynamoNimDeployment, inputs: NimInputs) -> Stop | None:
    """Stop if the PVC is missing and the component does not create it; None otherwise."""
    pvc = nim.spec.pvc
    if pvc is None or pvc.create or inputs.has_claim:
        return None
    text = f"PersistentVolumeClaim {claim_name(nim)} not found (spec.pvc.create is not true)"
    status = claimless_status(nim, inputs.request, text)
    return Stop(status, "PersistentVolumeClaimMissing", [text])
