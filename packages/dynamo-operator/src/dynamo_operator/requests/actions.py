"""The writes of a request: its Job, the ConfigMaps of its results, its graph.

Names may be taken. An existing object is ours by the uid on it, or stays unchanged. Every action is
idempotent: another process may repeat it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.request import (
    ConfigMapReference,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
)
from dynamo_graphs.plan.request import Destination, RequestFacts
from dynamo_graphs.plan.request_graph import (
    base_config_map,
    completed_base,
    config_map,
    deployed,
    is_own_config_map,
)
from dynamo_graphs.plan.request_output import BadOutput, named_config_maps
from dynamo_graphs.render.profiling import (
    account_objects,
    missing_settings,
    placement,
    profiling_job,
)
from dynamo_graphs.render.profiling_config import BASE_FILE
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.profiling import Output
from dynamo_operator.requests.gpu_discovery_rbac import GpuDiscoveryRbac
from dynamo_operator.requests.read import RequestReader, job_key, target_of
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.ownership import Shared, controller_reference
from kube_runtime.apply.result import Obstructed
from kube_runtime.apply.suppression import Target, WriteSuppression, digest_of
from kube_runtime.apply.writer import Writer
from kube_runtime.client.requests import ABSENT
from kube_runtime.errors import NotFound, Refused
from kube_runtime.kind import Key, Object
from kube_runtime.types.batch import Job
from kube_runtime.types.core import ServiceAccount
from kube_runtime.types.meta import Resource
from kube_runtime.types.rbac import RoleBinding


class ActionBlocked(Exception):
    """The action cannot run now; the message has the cause. `is_taken`: another object has the name."""

    def __init__(self, text: str, *, is_taken: bool = False) -> None:
        super().__init__(text)
        self.is_taken = is_taken


@dataclass(frozen=True, slots=True)
class RequestActions:
    """Runs the actions of requests."""

    writer: Writer
    reader: RequestReader
    applier: Applier
    settings: RenderSettings
    gpu_rbac: GpuDiscoveryRbac
    suppression: WriteSuppression = field(default_factory=WriteSuppression)

    async def start(
        self,
        request: DynamoGraphDeploymentRequest,
        spec: DynamoGraphDeploymentRequestSpec,
        facts: RequestFacts,
    ) -> Job:
        """Create the Job. First delete the results of an earlier one, which would pass for its own.

        Raises:
            ActionBlocked: it cannot be created.
            OperatorError: the API server could not be reached or failed.
        """
        if missing := missing_settings(spec, self.settings):
            raise ActionBlocked(missing)
        if (stale := facts.output) is not None:
            await self.writer.delete(stale)
        await self._ensure_account(request, spec)
        base = await self._base(request, spec, facts.config_maps)
        desired = await self.reader.offload.one(
            request, profiling_job, request, spec, self.settings, base
        )
        owners = {"ownerReferences": [controller_reference(request)]}
        body = {**desired, "metadata": desired["metadata"] | owners}
        target = Target(request.metadata.uid, Job.KIND.name, job_key(request))
        try:
            with self.suppression.suppressing_repeats(target, digest_of(body), ""):
                return await self.writer.apply(Job, body, force=False, uid=ABSENT)
        except Obstructed as error:
            raise ActionBlocked(str(error)) from error
        except NotFound as error:
            raise ActionBlocked(error.message) from error

    async def clear(self, request: DynamoGraphDeploymentRequest, job: Job) -> None:
        """Delete the Job of an earlier spec. Its deletion requeues the request."""
        await self.writer.ensure_newest(request)
        await self.writer.delete(job)

    async def clear_temporary(self, graphs: Iterable[DynamoGraphDeployment]) -> None:
        """Delete the graphs that a profiler left behind: their pods hold GPUs."""
        for graph in graphs:
            if not graph.metadata.deletion_timestamp:
                await self.writer.delete(graph)

    async def config_maps(
        self,
        request: DynamoGraphDeploymentRequest,
        manifests: Iterable[Object],
        destination: Destination,
        graph: DynamoGraphDeployment | None,
    ) -> tuple[str, ...]:
        """Create the ConfigMaps that profiling found, and return the errors.

        The graph, which mounts them, owns them. With `graph` None the user creates it, and they have no
        owner.

        Raises:
            OperatorError: the API server could not be reached or failed.
        """
        problems: list[str] = []
        desired = tuple(named_config_maps(manifests))
        if desired and destination.refusal:
            return (f"Failed to create ConfigMaps from profiling output: {destination.refusal}",)
        for manifest in desired:
            name = manifest["metadata"]["name"]
            try:
                body = config_map(request, manifest, destination.namespace)
                if graph is not None:
                    body["metadata"]["ownerReferences"] = [_owner(graph)]
                await self._config_map(request, body, destination.config_maps)
            except (Refused, BadOutput, ActionBlocked) as error:
                cause = error.message if isinstance(error, Refused) else str(error)
                text = f"failed to create ConfigMap {name}: {cause}"
                problems.append(f"Failed to create ConfigMaps from profiling output: {text}")
        return tuple(problems)

    async def create(
        self,
        request: DynamoGraphDeploymentRequest,
        spec: DynamoGraphDeploymentRequestSpec,
        destination: Destination,
    ) -> DynamoGraphDeployment:
        """Create the graph.

        Raises:
            ActionBlocked: it is refused.
            Conflict: it exists by now; the caller retries.
            OperatorError: the API server could not be reached or failed.
        """
        if destination.refusal:
            raise ActionBlocked(destination.refusal)
        graph_key = Key(destination.namespace, target_of(request).name)
        body = deployed(request, spec, graph_key)
        target = Target(request.metadata.uid, DynamoGraphDeployment.KIND.name, graph_key)
        try:
            with self.suppression.suppressing_repeats(target, digest_of(body), ""):
                return await self.writer.create(DynamoGraphDeployment, body)
        except Obstructed as error:
            raise ActionBlocked(str(error)) from error
        except NotFound as error:
            raise ActionBlocked(error.message) from error

    async def _base(
        self,
        request: DynamoGraphDeploymentRequest,
        spec: DynamoGraphDeploymentRequestSpec,
        present: Mapping[str, Output],
    ) -> ConfigMapReference | None:
        """Write the completed base graph to a ConfigMap; None if the user's ConfigMap, or none, is used."""
        profiling = spec.profiling_config
        reference = profiling.config_map_ref
        live = present.get(reference.name) if reference else None
        text = live.data.get(reference.key) if live is not None and reference is not None else None
        if not text:
            return None
        completed = await self.reader.offload.one(
            request, completed_base, text, spec, placement(profiling), more_bytes=len(text)
        )
        if completed is None:
            return None
        body = base_config_map(request, BASE_FILE, completed)
        completed_reference = ConfigMapReference(body["metadata"]["name"], BASE_FILE)
        body["metadata"]["ownerReferences"] = [controller_reference(request)]
        try:
            await self._config_map(request, body, present)
        except ActionBlocked as error:
            text = f"ConfigMap {completed_reference.name}: {error}: rename or delete it"
            raise ActionBlocked(text, is_taken=True) from error
        except Refused as error:
            raise ActionBlocked(f"ConfigMap {completed_reference.name}: {error.message}") from error
        return completed_reference

    async def _ensure_account(
        self, request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec
    ) -> None:
        """Ensure the Job's ServiceAccount; the installation of a restricted operator provides it instead."""
        desired = account_objects(request.metadata.namespace, spec, self.settings)
        if not desired:
            return
        types: tuple[type[Resource], ...] = (ServiceAccount, RoleBinding)
        applied = await self.applier.apply(request, Shared(desired, types, labels.SHARED))
        if applied.failure is not None:
            raise applied.failure
        causes = [*(blocked.message for blocked in applied.blocked), *applied.contested]
        if causes:
            raise ActionBlocked(f"failed to ensure profiling job RBAC: {'; '.join(causes)}")
        reads_nodes = self.gpu_rbac.name and spec.enable_gpu_discovery
        if reads_nodes and (problem := await self.gpu_rbac.admit(request)):
            raise ActionBlocked(problem)

    async def _config_map(
        self, request: DynamoGraphDeploymentRequest, body: Object, present: Mapping[str, Output]
    ) -> None:
        live = present.get(body["metadata"]["name"])
        if live is None:
            await self.writer.apply(Output, body, force=False, uid=ABSENT)
        elif is_own_config_map(request, live):
            await self.writer.apply(Output, body, force=True, uid=live.metadata.uid)
        else:
            raise ActionBlocked("it exists and has another owner; the operator leaves it alone")


def _owner(graph: DynamoGraphDeployment) -> Object:
    return {
        "apiVersion": graph.KIND.api_version,
        "kind": graph.KIND.name,
        "name": graph.metadata.name,
        "uid": graph.metadata.uid,
    }
