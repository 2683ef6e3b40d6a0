"""The controller of DynamoDeployment: a tag becomes a graph, and the graph one component for each service.

A reconcile reads once (`read.py`), resolves the graph (`resolve.py`), renders, applies, and reports.
"""

from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

from dynamo_graphs.settings import RenderSettings
from dynamo_legacy import names
from dynamo_legacy.api.deployment import DynamoDeployment
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from dynamo_legacy.api.nim_request import DynamoNimRequest
from dynamo_legacy.generate import components, unknown_services
from dynamo_legacy.graph_config import graph_config_map
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.status.conditions import MESSAGE_LIMIT, DeploymentReason, State
from dynamo_legacy.status.deployment import deployment_status, unresolved_status, urls
from dynamo_legacy.types import GraphConfigMap, object_of
from dynamo_legacy.validation import deployment_problems, shared_size_problem
from dynamo_operator.legacy.deployment.read import (
    DeploymentInputs,
    deployment_watches,
    read_deployment,
)
from dynamo_operator.legacy.deployment.resolve import Resolution, Resolver
from dynamo_operator.reconcile.offload import Offload, ValidationCache
from dynamo_operator.reconcile.preflight import load_for_reconcile
from dynamo_operator.reconcile.report import NOTHING, Reporter
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.ownership import Controlled, Shared, shared_watch
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.controller.controller import Result
from kube_runtime.kind import Key, Object
from kube_runtime.text import fitted
from kube_runtime.types.meta import Resource

_MARKER = (names.SHARED_BY, "true")
_SHARED: tuple[type[Resource], ...] = (DynamoNimRequest, GraphConfigMap)


@dataclass(frozen=True, slots=True)
class DeploymentController:
    """Turns a DynamoDeployment into a build and a component for each service."""

    cache: Cache
    applier: Applier
    reporter: Reporter
    resolver: Resolver
    settings: RenderSettings
    legacy: LegacySettings
    offload: Offload
    validated: ValidationCache = field(default_factory=ValidationCache)

    reconciles: ClassVar[type[Resource]] = DynamoDeployment
    owns: ClassVar[tuple[type[Resource], ...]] = (DynamoNimDeployment,)

    @property
    def watches(self) -> tuple[Watches, ...]:
        """The other kinds that a reconcile reads: images, builds and configurations."""
        shared = (shared_watch(type_, self.reconciles.KIND) for type_ in _SHARED)
        return (*deployment_watches(self.cache), *shared)

    async def reconcile(self, key: Key) -> Result:
        """Apply the components of a deployment, and report their state in its status."""
        deployment = await load_for_reconcile(DynamoDeployment, key, self.cache, self.reporter)
        if isinstance(deployment, Result):
            return deployment
        return await self.offload.reconciled(deployment, self._reconcile, self._too_expensive)

    async def _too_expensive(self, deployment: DynamoDeployment, text: str) -> None:
        await self._stopped(deployment, DeploymentReason.UNDEFINED, text)

    async def _reconcile(self, deployment: DynamoDeployment) -> Result:
        find = partial(deployment_problems, settings=self.settings, legacy=self.legacy)
        if problems := await self.validated.problems_by(self.offload, deployment, find):
            is_tag = any(problem.path == "spec.dynamoNim" for problem in problems)
            reason = DeploymentReason.NO_CONFIG if is_tag else DeploymentReason.NOT_GENERATED
            text = fitted([str(problem) for problem in problems], MESSAGE_LIMIT)
            return await self._stopped(deployment, reason, text)
        inputs = read_deployment(deployment, self.cache)
        resolution = await self.resolver.resolve(deployment, inputs)
        if resolution.graph is None:
            return await self._unresolved(deployment, inputs, resolution)
        if text := shared_size_problem(deployment, resolution.graph, self.settings):
            return await self._stopped(deployment, DeploymentReason.NOT_GENERATED, text)
        try:
            desired = await self.offload.do(
                deployment,
                components,
                deployment,
                resolution.graph,
                more_bytes=len(resolution.text),
            )
        except ValueError as error:
            return await self._stopped(deployment, DeploymentReason.NOT_GENERATED, str(error))
        applied = await self.applier.apply(
            deployment,
            self._shared(deployment, inputs, resolution),
            Controlled(desired, self.owns, decided_with=inputs.live),
        )
        children = applied.by_name(DynamoNimDeployment)
        status = deployment_status(
            deployment,
            children.values(),
            applied.blocked,
            [
                url
                for component in children.values()
                for url in urls(component, self.settings, self.legacy)
            ],
            unknown_services(deployment, resolution.graph),
        )
        return await self.reporter.applied(deployment, status, applied)

    async def _stopped(
        self, deployment: DynamoDeployment, reason: DeploymentReason, text: str
    ) -> Result:
        status = unresolved_status(deployment, State.FAILED, reason, text)
        return await self.reporter.applied(deployment, status, NOTHING)

    async def _unresolved(
        self, deployment: DynamoDeployment, inputs: DeploymentInputs, resolution: Resolution
    ) -> Result:
        """End a reconcile without a graph. A build may provide it; running components stay."""
        applied = NOTHING
        if not self.legacy.endpoint:
            applied = await self.applier.apply(
                deployment, self._shared(deployment, inputs, resolution)
            )
        reason = DeploymentReason.NO_CONFIG
        status = unresolved_status(deployment, resolution.state, reason, resolution.problem)
        return await self.reporter.applied(
            deployment, status, applied, resolution.requeue_after_seconds
        )

    def _shared(
        self, deployment: DynamoDeployment, inputs: DeploymentInputs, resolution: Resolution
    ) -> Shared:
        """The objects that all deployments of a tag share: the build, and the configuration from the store.

        A build that a user created, and an image without a build, are left alone.
        """
        namespace = deployment.metadata.namespace
        objects: list[Object] = []
        if not _is_written_by_hand(inputs):
            metadata = {"name": inputs.nim_name, "namespace": namespace}
            body = {"bentoTag": deployment.spec.dynamo_nim}
            objects.append(object_of(DynamoNimRequest, metadata, spec=body))
        if resolution.to_keep:
            key = Key(namespace, inputs.config_name)
            objects.append(graph_config_map(key, inputs.nim_name, resolution.text))
        return Shared(objects, _SHARED, _MARKER)


def _is_written_by_hand(inputs: DeploymentInputs) -> bool:
    """Whether a user created the build, or the image without a build."""
    if inputs.request is not None:
        return names.SHARED_BY not in inputs.request.metadata.labels
    if inputs.image is None:
        return False
    controller = inputs.image.metadata.controller
    return controller is None or controller.kind != DynamoNimRequest.KIND.name
