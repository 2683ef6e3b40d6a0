"""The controller of DynamoDeployment."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar, Final

from dynamo_legacy import names, render
from dynamo_legacy.api import DynamoDeployment, DynamoNim, DynamoNimDeployment, DynamoNimRequest
from dynamo_legacy.fetch import ArchiveStore, StoreError
from dynamo_legacy.names import DYNAMO_TAG, GRAPH_CONFIG, GRAPH_CONFIG_KEY, GraphConfigMap, object_of
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.status import (
    MESSAGE_LIMIT,
    NIM_AVAILABLE,
    DeploymentReason,
    State,
    deployment_status,
    unresolved_status,
    urls,
)
from dynamo_legacy.validation import deployment_problems, shared_size_problem
from dynamo_operator.component.read import live_objects
from dynamo_operator.documents import LARGE_TEXT, ONE_AT_A_TIME
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import LiveObjects
from dynamo_operator.shared.report import Reporter, ValidationCache, load_for_reconcile
from kube_runtime.apply.applier import Applier, Controlled, Shared, shared_watch
from kube_runtime.apply.result import Applied, Blocked, Obstacle
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.controller.controller import Result
from kube_runtime.types.meta import Key, Object, Resource, condition, fitted, from_json


@dataclass(frozen=True, slots=True)
class DeploymentInputs:
    """The inputs of one reconcile.

    `nim_name` is the object name of its tag. `image` and `request` are the DynamoNim and the
    DynamoNimRequest of that name. `config` is the configuration in the ConfigMap `config_name`; None if
    that does not exist. `is_config_kept`: the operator has written it. `rival` is another deployment, whose
    tag has the same object name and is the one that `request` builds. `live` are the components that the
    deployment owns.
    """

    nim_name: str
    config_name: str
    config: str | None = None
    is_config_kept: bool = False
    image: DynamoNim | None = None
    request: DynamoNimRequest | None = None
    rival: DynamoDeployment | None = None
    live: LiveObjects = field(default_factory=dict)


def read_deployment(deployment: DynamoDeployment, cache: Cache) -> DeploymentInputs:
    """Read the inputs of a deployment with a valid tag."""
    namespace = deployment.metadata.namespace
    nim_name = names.nim_name(deployment.spec.dynamo_nim)
    config_name = deployment.metadata.annotations.get(names.GRAPH_CONFIG) or nim_name
    config = cache.get(GraphConfigMap, Key(namespace, config_name))
    data = from_json(config.data, dict[str, str]) if config else {}
    request = cache.get(DynamoNimRequest, Key(namespace, nim_name))
    built = request.spec.bento_tag if request else ""
    others = cache.list(DynamoDeployment, namespace) if built not in ("", deployment.spec.dynamo_nim) else ()
    return DeploymentInputs(
        nim_name,
        config_name,
        data.get(names.GRAPH_CONFIG_KEY, "") if config else None,
        config is not None and names.SHARED_BY in config.metadata.labels,
        cache.get(DynamoNim, Key(namespace, nim_name)),
        request,
        next((other for other in others if other.spec.dynamo_nim == built), None),
        live_objects(deployment, cache, (DynamoNimDeployment,)),
    )


def deployment_watches(cache: Cache) -> tuple[Watches, ...]:
    """Wake deployments when an image, a build or a configuration that they name changes."""

    def of_tag(changed: Resource) -> Iterator[Key]:
        for deployment in cache.list(DynamoDeployment, changed.metadata.namespace):
            if changed.metadata.name in _names(deployment):
                yield deployment.key

    return tuple(Watches(type_, of_tag) for type_ in (DynamoNim, DynamoNimRequest, GraphConfigMap))


def _names(deployment: DynamoDeployment) -> tuple[str, ...]:
    try:
        nim_name = names.nim_name(deployment.spec.dynamo_nim)
    except ValueError:
        return ()
    return nim_name, deployment.metadata.annotations.get(names.GRAPH_CONFIG, "")


RETRY_SECONDS: Final = 60.0
"""Seconds until a store without the graph is queried again."""


@dataclass(frozen=True, slots=True)
class Resolution:
    """The graph of a tag, or why there is none.

    If `graph` is None, `problem` is the cause, `state` says whether waiting may help, and
    `requeue_after_seconds` when to retry, None for never. `text` is the configuration that `graph` was parsed
    from. `to_keep`: the text is stored in a ConfigMap of the deployments of that tag.
    """

    graph: render.GraphConfig | None = None
    text: str = ""
    to_keep: bool = False
    state: State = State.FAILED
    problem: str = ""
    requeue_after_seconds: float | None = None


async def resolve(
    deployment: DynamoDeployment, inputs: DeploymentInputs, store: ArchiveStore | None
) -> Resolution:
    """Resolve the graph of a deployment: the first source that has one counts. `store` may be missing."""
    if inputs.config is not None:
        return await _parsed(inputs.config, to_keep=inputs.is_config_kept)
    if GRAPH_CONFIG in deployment.metadata.annotations:
        return Resolution(problem=_no_config_map(inputs), state=State.PENDING)
    if store is not None:
        try:
            text = await store.graph_config(deployment.spec.dynamo_nim)
        except StoreError as error:
            return Resolution(problem=str(error), requeue_after_seconds=RETRY_SECONDS)
        return await _parsed(text, to_keep=True)
    if deployment.spec.services and inputs.image is not None:
        tag = deployment.metadata.annotations.get(DYNAMO_TAG, "")
        return Resolution(render.services_only(deployment, tag))
    return _waiting(inputs)


async def _parsed(text: str, *, to_keep: bool) -> Resolution:
    if not text:
        return Resolution(problem=f"the configuration has no key {GRAPH_CONFIG_KEY}")
    try:
        if len(text) <= LARGE_TEXT:
            graph = render.parse_graph_config(text)
        else:
            loop = asyncio.get_running_loop()
            graph = await loop.run_in_executor(ONE_AT_A_TIME, render.parse_graph_config, text)
    except render.GraphConfigError as error:
        return Resolution(problem=str(error))
    return Resolution(graph, text, to_keep=to_keep)


# A build writes its graph as a ConfigMap too, so a deployment that waits for a build waits for
# that. If there is no graph, the message says what was tried.
def _waiting(inputs: DeploymentInputs) -> Resolution:
    built = condition(inputs.request.status.conditions, NIM_AVAILABLE) if inputs.request else None
    if built is not None and built.status == "False":
        text = f"DynamoNimRequest {inputs.nim_name}: {built.message}"
        return Resolution(problem=f"{_no_config_map(inputs)}; {text}")
    text = (
        f"{_no_config_map(inputs)}; no store of archives is configured (YATAI_ENDPOINT); waiting for "
        f"DynamoNimRequest {inputs.nim_name}"
    )
    return Resolution(problem=text, state=State.PENDING)


def _no_config_map(inputs: DeploymentInputs) -> str:
    return f"ConfigMap {inputs.config_name} with the label {GRAPH_CONFIG} not found"


_MARKER = (names.SHARED_BY, "true")
_SHARED: tuple[type[Resource], ...] = (DynamoNimRequest, GraphConfigMap)


# A reconcile reads once, resolves the graph, renders, applies, and reports.
@dataclass(frozen=True, slots=True)
class DeploymentController:
    """Turns a DynamoDeployment into a build and a component for each service."""

    cache: Cache
    applier: Applier
    reporter: Reporter
    store: ArchiveStore | None
    settings: RenderSettings
    legacy: LegacySettings
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
        find = partial(deployment_problems, settings=self.settings, legacy=self.legacy)
        if problems := self.validated.problems_by(deployment, find):
            is_tag = any(problem.path == "spec.dynamoNim" for problem in problems)
            reason = DeploymentReason.NO_CONFIG if is_tag else DeploymentReason.NOT_GENERATED
            text = fitted([str(problem) for problem in problems], MESSAGE_LIMIT)
            return await self._stopped(deployment, reason, text)
        inputs = read_deployment(deployment, self.cache)
        if inputs.rival is not None:
            return await self._in_conflict(deployment, inputs, inputs.rival)
        resolution = await resolve(deployment, inputs, self.store)
        if resolution.graph is None:
            return await self._unresolved(deployment, inputs, resolution)
        if text := shared_size_problem(deployment, resolution.graph, self.settings):
            return await self._stopped(deployment, DeploymentReason.NOT_GENERATED, text)
        try:
            desired = tuple(render.components(deployment, resolution.graph))
        except ValueError as error:
            return await self._stopped(deployment, DeploymentReason.NOT_GENERATED, str(error))
        applied = await self.applier.apply(
            deployment,
            self._shared(deployment, inputs, resolution),
            Controlled(desired, self.owns, decided_with=inputs.live),
            applied=self.reporter.applying(deployment),
        )
        children = applied.by_name(DynamoNimDeployment)
        status = deployment_status(
            deployment,
            children.values(),
            applied.blocked,
            [url for component in children.values() for url in urls(component, self.settings, self.legacy)],
            render.unknown_services(deployment, resolution.graph),
        )
        return await self.reporter.finish(deployment, status, applied)

    async def _stopped(self, deployment: DynamoDeployment, reason: DeploymentReason, text: str) -> Result:
        status = unresolved_status(deployment, State.FAILED, reason, text)
        return await self.reporter.finish(deployment, status, Applied())

    async def _in_conflict(
        self, deployment: DynamoDeployment, inputs: DeploymentInputs, rival: DynamoDeployment
    ) -> Result:
        """End a reconcile without a build: each would replace that of the other. Running components stay."""
        kind, applied = DynamoNimRequest.KIND.name, self.reporter.applying(deployment)
        text = (
            f'{kind} {inputs.nim_name} builds "{rival.spec.dynamo_nim}" of '
            f'DynamoDeployment {rival.metadata.name}, and "{deployment.spec.dynamo_nim}" has the same name: '
            "choose another tag"
        )
        applied.obstructions.append(Blocked(Obstacle.NAME_CONFLICT, kind, inputs.nim_name, text))
        status = unresolved_status(deployment, State.FAILED, DeploymentReason.REQUEST_NOT_SYNCED, text)
        return await self.reporter.finish(deployment, status, applied)

    async def _unresolved(
        self, deployment: DynamoDeployment, inputs: DeploymentInputs, resolution: Resolution
    ) -> Result:
        """End a reconcile without a graph. A build may provide it; running components stay."""
        applied = self.reporter.applying(deployment)
        if not self.legacy.endpoint:
            shared = self._shared(deployment, inputs, resolution)
            await self.applier.apply(deployment, shared, applied=applied)
        reason = DeploymentReason.NO_CONFIG
        status = unresolved_status(deployment, resolution.state, reason, resolution.problem)
        return await self.reporter.finish(deployment, status, applied, resolution.requeue_after_seconds)

    def _shared(
        self, deployment: DynamoDeployment, inputs: DeploymentInputs, resolution: Resolution
    ) -> Shared:
        """The build, and the configuration from the store; a build or an image of a user is left alone."""
        namespace = deployment.metadata.namespace
        objects: list[Object] = []
        if not _is_written_by_hand(inputs):
            metadata = {"name": inputs.nim_name, "namespace": namespace}
            body = {"bentoTag": deployment.spec.dynamo_nim}
            objects.append(object_of(DynamoNimRequest, metadata, spec=body))
        if resolution.to_keep:
            key = Key(namespace, inputs.config_name)
            objects.append(render.graph_config_map(key, inputs.nim_name, resolution.text))
        return Shared(objects, _SHARED, _MARKER)


def _is_written_by_hand(inputs: DeploymentInputs) -> bool:
    if inputs.request is not None:
        return names.SHARED_BY not in inputs.request.metadata.labels
    if inputs.image is None:
        return False
    controller = inputs.image.metadata.controller
    return controller is None or controller.kind != DynamoNimRequest.KIND.name
