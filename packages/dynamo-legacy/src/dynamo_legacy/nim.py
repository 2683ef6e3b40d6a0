"""The controller of DynamoNimDeployment."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar

from msgspec.structs import replace

from dynamo_legacy.api import DynamoNim, DynamoNimDeployment, DynamoNimRequest, DynamoNimSpec
from dynamo_legacy.names import HorizontalPodAutoscaler, ServicePodAccount
from dynamo_legacy.render import claims, nim_namespace_defaults, nim_objects
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.status import claimless_status, imageless_status, nim_status, refusal
from dynamo_legacy.translate import as_component, claim_name
from dynamo_legacy.validation import nim_problems
from dynamo_operator import names
from dynamo_operator.component.diagnosis import diagnose
from dynamo_operator.component.exposure import component_exposure
from dynamo_operator.component.namespace_defaults import ComponentUnit, facts_of_running_pods
from dynamo_operator.component.read import PodIndex, component_pod_watch, live_objects, read_facts
from dynamo_operator.component.status import NO_DEPLOYMENT, deployment_readiness
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts, LiveObjects, PodServiceAccount, VirtualService
from dynamo_operator.shared.conditions import Stop
from dynamo_operator.shared.report import Reporter, ValidationCache, load_for_reconcile
from dynamo_operator.shared.templates import DEPLOYMENT_UNIT
from kube_runtime.apply.applier import Applier, Controlled, CreateOnly
from kube_runtime.apply.result import Applied
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.controller.controller import Result
from kube_runtime.types.kinds import Deployment, DeploymentSpec, Ingress, PersistentVolumeClaim, Pod, Service
from kube_runtime.types.meta import Key, Object, Resource, from_json


@dataclass(frozen=True, slots=True)
class NimInputs:
    """The inputs of one reconcile.

    `image` and `request` are the DynamoNim and the DynamoNimRequest that the component names. `live` are
    the objects that it owns, `live_replicas` the replicas of its Deployment. `has_claim`: its PVC exists.
    `pods` are those of its Deployment.
    """

    facts: Facts
    image: DynamoNim | None
    request: DynamoNimRequest | None
    live: LiveObjects = field(default_factory=dict)
    live_replicas: int | None = None
    has_claim: bool = False
    pods: tuple[Pod, ...] = ()


def read_nim(
    nim: DynamoNimDeployment, cache: Cache, pods: PodIndex, owns: Iterable[type[Resource]]
) -> NimInputs:
    """Read the inputs of a component, which controls the kinds `owns`."""
    namespace, name = nim.key
    named = Key(namespace, nim.spec.dynamo_nim)
    workload = names.workload_name(name)
    live = live_objects(nim, cache, owns)
    deployment = live.get((Deployment.KIND.name, Key(namespace, workload)))
    replicas = None
    if isinstance(deployment, Deployment):
        replicas = from_json(deployment.spec, DeploymentSpec).replicas
    facts = read_facts(namespace, cache)
    marked = (account.metadata.name for account in cache.list(ServicePodAccount, namespace))
    service_account = min(marked, default=facts.component_service_account)
    return NimInputs(
        facts=replace(facts, component_service_account=service_account),
        image=cache.get(DynamoNim, named),
        request=cache.get(DynamoNimRequest, named),
        live=live,
        live_replicas=replicas,
        has_claim=cache.get(PersistentVolumeClaim, Key(namespace, claim_name(nim))) is not None,
        pods=pods.of_workload(namespace, workload),
    )


def nim_watches(cache: Cache) -> tuple[Watches, ...]:
    """Wake components when their image, build, PVC or pods, or labelled ServiceAccounts, change."""

    def of_image(changed: Resource) -> Iterator[Key]:
        for nim in cache.list(DynamoNimDeployment, changed.metadata.namespace):
            if nim.spec.dynamo_nim == changed.metadata.name:
                yield nim.key

    def of_claim(changed: Resource) -> Iterator[Key]:
        for nim in cache.list(DynamoNimDeployment, changed.metadata.namespace):
            if nim.spec.pvc is not None and claim_name(nim) == changed.metadata.name:
                yield nim.key

    def of_namespace(changed: Resource) -> Iterator[Key]:
        yield from (nim.key for nim in cache.list(DynamoNimDeployment, changed.metadata.namespace))

    return (
        Watches(DynamoNim, of_image),
        Watches(DynamoNimRequest, of_image),
        Watches(PersistentVolumeClaim, of_claim),
        Watches(PodServiceAccount, of_namespace),
        Watches(ServicePodAccount, of_namespace),
        component_pod_watch(cache, DynamoNimDeployment.KIND),
    )


# A reconcile has the steps of today's components (`dynamo_operator/component/controller.py`): it
# reads once, renders, applies, and reports.
@dataclass(frozen=True, slots=True)
class NimController:
    """Turns a DynamoNimDeployment into a Deployment with its Service, autoscaler, PVC and Ingress."""

    cache: Cache
    applier: Applier
    reporter: Reporter
    pods: PodIndex
    settings: RenderSettings
    legacy: LegacySettings
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
        inputs = read_nim(nim, self.cache, self.pods, self.owns)
        find = partial(nim_problems, settings=self.settings, legacy=self.legacy)
        if problems := self.validated.problems_by(nim, find):
            return await self.reporter.stop(nim, refusal(nim, problems))
        if inputs.image is None:
            status = imageless_status(nim, inputs.request)
            return await self.reporter.finish(nim, status, Applied())
        if stop := _without_claim(nim, inputs):
            return await self.reporter.stop(nim, stop)
        applied = await self._apply(nim, inputs, inputs.image.spec)
        deployment = applied.get(Deployment, names.workload_name(nim.metadata.name))
        readiness = deployment_readiness(deployment) if deployment else NO_DEPLOYMENT
        diagnosis = diagnose(inputs.pods, nodes=1, now=datetime.now(UTC))
        status = nim_status(nim, inputs.request, readiness, applied.blocked, diagnosis)
        return await self.reporter.finish(nim, status, applied, diagnosis.requeue_after_seconds)

    async def _apply(self, nim: DynamoNimDeployment, inputs: NimInputs, image: DynamoNimSpec) -> Applied:
        around, workloads = self._render(nim, inputs, image)
        component = as_component(nim, image, self.settings, self.legacy)
        exposure = component_exposure(component, around, self.settings)
        objects = (*exposure.desired, *workloads)
        applied = await self.applier.apply(
            nim,
            CreateOnly(claims(nim), (PersistentVolumeClaim,)),
            Controlled(objects, self.owns, exposure.spared, decided_with=inputs.live),
            applied=self.reporter.applying(nim),
        )
        applied.obstructions += exposure.blocked
        return applied

    def _render(
        self, nim: DynamoNimDeployment, inputs: NimInputs, image: DynamoNimSpec
    ) -> tuple[Sequence[Object], Iterable[Object]]:
        """Render the objects around the Deployment, and it; running pods keep their ServiceAccount."""

        def render(facts: Facts) -> tuple[Sequence[Object], Iterable[Object]]:
            return nim_objects(nim, image, facts, self.settings, self.legacy, inputs.live_replicas)

        now = nim_namespace_defaults(inputs.facts)
        units = {nim.metadata.name: ComponentUnit(DEPLOYMENT_UNIT, now, inputs.pods)}
        facts = facts_of_running_pods(inputs.facts, units, inputs.live, lambda facts: render(facts)[1])
        return render(facts)


def _without_claim(nim: DynamoNimDeployment, inputs: NimInputs) -> Stop | None:
    pvc = nim.spec.pvc
    if pvc is None or pvc.create or inputs.has_claim:
        return None
    text = f"PersistentVolumeClaim {claim_name(nim)} not found (spec.pvc.create is not true)"
    status = claimless_status(nim, inputs.request, text)
    return Stop(status, "PersistentVolumeClaimMissing", [text])
