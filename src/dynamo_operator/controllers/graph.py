"""Controller of DynamoGraphDeployment: one graph, a component for each of its services."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from dynamo_operator.api.component import DynamoComponentDeployment
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.controllers.gather import gather
from dynamo_operator.controllers.report import outcome, report
from dynamo_operator.kube.apply import Applied, Applier, Blocked
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.controller import DONE, Outcome, Watches
from dynamo_operator.kube.events import Recorder
from dynamo_operator.kube.kind import Key, Object
from dynamo_operator.kube.shared import SharedApplier, shared_watch
from dynamo_operator.kube.status import patch_status
from dynamo_operator.kube.types.core import ServiceAccount
from dynamo_operator.kube.types.meta import Resource
from dynamo_operator.kube.types.rbac import Role, RoleBinding
from dynamo_operator.kube.writer import Writer
from dynamo_operator.render.graph import graph_objects, graph_shared_objects
from dynamo_operator.settings import RenderSettings
from dynamo_operator.status.graph import graph_status, refused_status
from dynamo_operator.validation.graph import graph_problems


@dataclass(frozen=True, slots=True)
class GraphController:
    """Turns a DynamoGraphDeployment into its components and the permissions that they need."""

    writer: Writer
    cache: Cache
    applier: Applier
    shared: SharedApplier
    recorder: Recorder
    settings: RenderSettings

    reconciles: ClassVar[type[DynamoGraphDeployment]] = DynamoGraphDeployment
    owns: ClassVar[tuple[type[Resource], ...]] = (
        ServiceAccount,
        Role,
        RoleBinding,
        DynamoComponentDeployment,
    )
    shares: ClassVar[tuple[type[Resource], ...]] = (ServiceAccount, RoleBinding)
    watches: ClassVar[tuple[Watches, ...]] = tuple(
        shared_watch(each, DynamoGraphDeployment.KIND) for each in (ServiceAccount, RoleBinding)
    )

    async def reconcile(self, key: Key) -> Outcome:
        """Make the world what this graph wants, and its status what the world is."""
        graph = self.cache.get(DynamoGraphDeployment, key)
        if graph is None or graph.metadata.deletion_timestamp:
            return DONE  # owner references: the API server deletes the rest
        facts = gather(key.namespace, self.cache)
        if problems := graph_problems(graph, facts, self.settings):
            stored = await patch_status(self.writer, graph, refused_status(graph, problems))
            report(self.recorder, graph, stored, problems=problems)
            return DONE  # a change of the spec or of a watched fact wakes us again
        shared = await self.shared.apply(
            graph, wanted=graph_shared_objects(graph, facts, self.settings), types=self.shares
        )
        wanted = graph_objects(graph, facts, self.settings)
        applied = await self.applier.apply(graph, wanted=wanted, owns=self.owns)
        blocked = (*shared.blocked, *applied.blocked)
        status = _status(graph, wanted, applied, blocked)
        stored = await patch_status(self.writer, graph, status)
        changes = (*shared.changes, *applied.changes)
        report(self.recorder, graph, stored, changes=changes, blocked=blocked)
        return outcome(blocked)


def _status(
    graph: DynamoGraphDeployment,
    wanted: Sequence[Object],
    applied: Applied,
    blocked: Sequence[Blocked],
) -> Object:
    names = {
        each["spec"]["serviceName"]: each["metadata"]["name"]
        for each in wanted
        if each["kind"] == DynamoComponentDeployment.KIND.name
    }
    components = {
        service: (name, applied.get(DynamoComponentDeployment, name))
        for service, name in names.items()
    }
    return graph_status(graph, components, blocked)
