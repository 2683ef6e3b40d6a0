"""The writes of a request: its Job, the ConfigMaps of its results, its graph.

Names may be taken. An existing object is ours by the uid on it, or stays unchanged. Every action is
idempotent: another process may repeat it.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.request import (
    ConfigMapReference,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
)
from dynamo_graphs.plan.request_base import base_config_map, completed_base
from dynamo_graphs.plan.request_graph import config_map, deployed, tracking
from dynamo_graphs.plan.request_output import BadOutput, named_config_maps
from dynamo_graphs.render.profiling import (
    account_objects,
    missing_settings,
    placement,
    profiling_job,
)
from dynamo_graphs.render.profiling_config import BASE_FILE
from dynamo_graphs.settings import RenderSettings
from dynamo_operator.requests.gpu_discovery_rbac import GpuDiscoveryRbac
from dynamo_operator.requests.read import RequestReader, job_key, output_key
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.ownership import Shared, controller_reference
from kube_runtime.apply.result import Obstructed, controls
from kube_runtime.apply.suppression import Target, WriteSuppression, digest_of
from kube_runtime.apply.writer import Writer
from kube_runtime.client.requests import ABSENT
from kube_runtime.errors import Forbidden, Invalid, NotFound
from kube_runtime.kind import Key, Object
from kube_runtime.types.batch import Job, Output
from kube_runtime.types.core import ServiceAccount
from kube_runtime.types.meta import Resource
from kube_runtime.types.rbac import RoleBinding

_REFUSALS = (Forbidden, Invalid, NotFound)
"""NotFound is of the namespace: nothing else is looked up when an object is made."""


class ActionBlocked(Exception):
    """An act that cannot be done now, and why; `is_taken` if another has the name."""

    def __init__(self, text: str, *, is_taken: bool = False) -> None:
        super().__init__(text)
        self.is_taken = is_taken


@dataclass(frozen=True, slots=True)
class RequestActions:
    """Runs the actions of requests."""

    writer: Writer
    facts: RequestReader
    applier: Applier
    settings: RenderSettings
    nodes: GpuDiscoveryRbac
    restraint: WriteSuppression = field(default_factory=WriteSuppression)

    async def start(
        self, request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec
    ) -> Job:
        """Create the Job; results of an earlier one are deleted first, or they would pass for its own.

        Raises:
            ActionBlocked: it cannot be made.
            OperatorError: the API server could not be reached or failed.
        """
        if lacks := missing_settings(spec, self.settings):
            raise ActionBlocked(lacks)
        await self._forget(request)
        await self._account(request, spec)
        base = await self._base(request, spec)
        wanted = await self.facts.heavy.one(
            request, profiling_job, request, spec, self.settings, base
        )
        owners = {"ownerReferences": [controller_reference(request)]}
        body = {**wanted, "metadata": wanted["metadata"] | owners}
        wish = Target(request.metadata.uid, Job.KIND.name, job_key(request))
        try:
            with self.restraint.attempting(wish, digest_of(body), ""):
                return await self.writer.apply(Job, body, force=False, uid=ABSENT)
        except Obstructed as error:
            raise ActionBlocked(str(error)) from error

    async def clear(self, request: DynamoGraphDeploymentRequest, job: Job) -> None:
        """Delete the Job of an earlier spec. The deletion requeues the request."""
        await self.writer.ensure_newest(request)
        await self.writer.delete(Job, job.key, uid=job.metadata.uid)

    async def clear_temporary(self, graphs: Iterable[DynamoGraphDeployment]) -> None:
        """Delete the graphs that a profiler has left: their pods hold GPUs."""
        for each in graphs:
            if not each.metadata.deletion_timestamp:
                await self.writer.delete(DynamoGraphDeployment, each.key, uid=each.metadata.uid)

    async def taken_names(
        self, request: DynamoGraphDeploymentRequest, found: Iterable[Object], namespace: str
    ) -> dict[str, str]:
        """New names for ConfigMaps whose names belong to others, by the old ones."""
        renamed: dict[str, str] = {}
        for each in found:
            name: str = each["metadata"]["name"]
            live = await self.facts.live(Output, Key(namespace, name))
            if live is not None and not _is_own(request, live):
                renamed[name] = names.dns_subdomain(f"{name}-{request.metadata.name}")
        return renamed

    async def config_maps(
        self,
        request: DynamoGraphDeploymentRequest,
        found: Iterable[Object],
        namespace: str,
        graph: DynamoGraphDeployment | None,
    ) -> tuple[str, ...]:
        """Create the ConfigMaps that profiling found, and return the errors.

        The graph, which mounts them, owns them. With `graph` None the user creates it, and they have no
        owner.

        Raises:
            OperatorError: the API server could not be reached or failed.
        """
        problems: list[str] = []
        wanted = tuple(named_config_maps(found))
        if wanted and (refusal := await self.facts.refusal(request, namespace)):
            return (f"Failed to create ConfigMaps from profiling output: {refusal}",)
        for each in wanted:
            name = each["metadata"]["name"]
            try:
                body = config_map(request, each, namespace)
                if graph is not None:
                    body["metadata"]["ownerReferences"] = [_owner(graph)]
                await self._config_map(request, body)
            except (*_REFUSALS, BadOutput, ActionBlocked) as error:
                said = error.message if isinstance(error, _REFUSALS) else str(error)
                text = f"failed to create ConfigMap {name}: {said}"
                problems.append(f"Failed to create ConfigMaps from profiling output: {text}")
        return tuple(problems)

    async def create(
        self,
        request: DynamoGraphDeploymentRequest,
        spec: DynamoGraphDeploymentRequestSpec,
        at: Key,
    ) -> DynamoGraphDeployment:
        """Create the graph.

        Raises:
            ActionBlocked: it is refused.
            Conflict: there is one by now; the caller retries.
            OperatorError: the API server could not be reached or failed.
        """
        if refusal := await self.facts.refusal(request, at.namespace):
            raise ActionBlocked(refusal)
        body = deployed(request, spec, at)
        wish = Target(request.metadata.uid, DynamoGraphDeployment.KIND.name, at)
        try:
            with self.restraint.attempting(wish, digest_of(body), ""):
                return await self.writer.create(DynamoGraphDeployment, body)
        except Obstructed as error:
            raise ActionBlocked(str(error)) from error
        except NotFound as error:
            raise ActionBlocked(error.message) from error

    async def _forget(self, request: DynamoGraphDeploymentRequest) -> None:
        key = output_key(request)
        stale = await self.facts.live(Output, key)
        if stale is None:
            return
        if stale.metadata.labels.get(labels.REQUEST) != names.label_value(request.metadata.name):
            text = (
                f"ConfigMap {key.name} exists and is not from profiling; the operator leaves it "
                "alone: rename or delete it"
            )
            raise ActionBlocked(text, is_taken=True)
        await self.writer.delete(Output, key, uid=stale.metadata.uid)

    async def _base(
        self, request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec
    ) -> ConfigMapReference | None:
        """The ConfigMap of the base graph; None if the user's, if any, is used."""
        namespace, profiling = request.metadata.namespace, spec.profiling_config
        given = profiling.config_map_ref
        live = await self.facts.live(Output, Key(namespace, given.name)) if given else None
        text = live.data.get(given.key) if live is not None and given is not None else None
        if not text:
            return None
        done = await self.facts.heavy.one(
            request, completed_base, text, spec, placement(profiling), more_bytes=len(text)
        )
        if done is None:
            return None
        body = base_config_map(request, BASE_FILE, done)
        ours = ConfigMapReference(body["metadata"]["name"], BASE_FILE)
        body["metadata"]["ownerReferences"] = [controller_reference(request)]
        try:
            await self._config_map(request, body)
        except ActionBlocked as error:
            text = f"ConfigMap {ours.name}: {error}: rename or delete it"
            raise ActionBlocked(text, is_taken=True) from error
        except _REFUSALS as error:
            raise ActionBlocked(f"ConfigMap {ours.name}: {error.message}") from error
        return ours

    async def _account(
        self, request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec
    ) -> None:
        """The ServiceAccount of the Job. A restricted operator may bind nothing: its installation has one."""
        wanted = account_objects(request.metadata.namespace, spec, self.settings)
        if not wanted:
            return
        types: tuple[type[Resource], ...] = (ServiceAccount, RoleBinding)
        applied = await self.applier.apply(request, Shared(wanted, types, labels.SHARED))
        if said := (*(each.message for each in applied.blocked), *applied.contested):
            raise ActionBlocked(f"failed to ensure profiling job RBAC: {'; '.join(said)}")
        await self._nodes(request, spec)

    async def _nodes(
        self, request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec
    ) -> None:
        if not self.nodes.name or not spec.enable_gpu_discovery:
            return
        if problem := await self.nodes.admit(request):
            raise ActionBlocked(problem)

    async def _config_map(self, request: DynamoGraphDeploymentRequest, body: Object) -> None:
        key = Key(body["metadata"]["namespace"], body["metadata"]["name"])
        live = await self.facts.live(Output, key)
        if live is None:
            await self.writer.apply(Output, body, force=False, uid=ABSENT)
        elif _is_own(request, live):
            await self.writer.apply(Output, body, force=True, uid=live.metadata.uid)
        else:
            raise ActionBlocked("it exists and has another owner; the operator leaves it alone")


def _is_own(request: DynamoGraphDeploymentRequest, live: Resource) -> bool:
    """Whether a ConfigMap was made for a request of this name; an earlier one had the same results."""
    return tracking(request).items() <= live.metadata.labels.items() and not (
        live.metadata.controller and not controls(request, live)
    )


def _owner(graph: DynamoGraphDeployment) -> Object:
    return {
        "apiVersion": graph.KIND.api_version,
        "kind": graph.KIND.name,
        "name": graph.metadata.name,
        "uid": graph.metadata.uid,
    }
