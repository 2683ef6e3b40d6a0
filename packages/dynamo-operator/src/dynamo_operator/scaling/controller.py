"""Controller of DynamoGraphDeploymentScalingAdapter: copies the number of one service into its graph.

The adapter always takes precedence over the graph's number. The graph is the user's object, so this writes
one field, under a separate field manager, and never into a service that has just been removed.

It is a merge patch and no server-side apply. An apply would have to repeat the numbers of all services each
time, and what one manager has applied stays when another takes the service around it out. What a patch has
changed is taken from its former manager, so that an apply without it keeps it, and it goes with its service.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from structlog.contextvars import bind_contextvars

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.scaling import (
    DynamoGraphDeploymentScalingAdapter,
    DynamoGraphDeploymentScalingAdapterSpec,
)
from dynamo_graphs.status.scaling import (
    ScalingHold,
    ScalingReason,
    acting_status,
    held_status,
    hold,
    replicas_of,
)
from dynamo_operator.reconcile.report import REJECTED_RETRY_SECONDS
from dynamo_operator.reconcile.unreadable import report_unreadable
from dynamo_operator.scaling.read import read_scaling, scaling_watch
from kube_runtime.apply.result import Blocked, Obstructed
from kube_runtime.apply.status_patch import StatusRateLimit, patch_status
from kube_runtime.apply.suppression import Target, WriteSuppression, digest_of
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import Recorder
from kube_runtime.errors import NotFound
from kube_runtime.kind import Key, Object
from kube_runtime.rate_limits import WriteRate
from kube_runtime.times import utc_now
from kube_runtime.types.meta import Resource

FIELD_MANAGER = "dynamo-operator-scaling"
"""Owns the replicas of services with an adapter, in the `managedFields` of their graphs."""


@dataclass(frozen=True, slots=True)
class ScalingController:
    """Has graphs ask for the replicas that their adapters say."""

    client: Client
    writer: Writer
    cache: Cache
    recorder: Recorder
    pace: StatusRateLimit
    write_pace: WriteRate = field(default_factory=WriteRate)
    restraint: WriteSuppression = field(default_factory=WriteSuppression)

    reconciles: ClassVar[type[Resource]] = DynamoGraphDeploymentScalingAdapter
    owns: ClassVar[tuple[type[Resource], ...]] = ()

    @property
    def watches(self) -> tuple[Watches, ...]:
        """The graphs that adapters name: their coming wakes, as any change of them."""
        return (scaling_watch(self.cache),)

    async def reconcile(self, key: Key) -> Result:
        """Bring the graph to the adapter's number, and the adapter's status to what the graph is."""
        type_ = DynamoGraphDeploymentScalingAdapter
        if error := self.cache.broken(type_, key):
            return await report_unreadable(
                *(type_, key, error),
                client=self.client,
                writer=self.writer,
                recorder=self.recorder,
            )
        inputs = read_scaling(key, self.cache)
        if inputs is None:
            return DONE
        found, spec, graph = inputs.adapter, inputs.spec, inputs.graph
        bind_contextvars(graph=spec.dgd_ref.name)
        why = hold(found, spec, graph)
        if why is None and graph is not None:
            return await self._act(found, spec, graph)
        if why is not None:
            stored = await patch_status(self.writer, found, held_status(found, spec, graph, why))
            return Result(written=stored)
        return DONE  # a change of the adapter or of the graph wakes us, the coming of a graph too

    async def _act(
        self,
        found: DynamoGraphDeploymentScalingAdapter,
        spec: DynamoGraphDeploymentScalingAdapterSpec,
        graph: DynamoGraphDeployment,
    ) -> Result:
        before, known = replicas_of(graph, spec.dgd_ref.service_name), found.status.desired_replicas
        # One that is in the graph and not in our status was written by us, just before we were stopped.
        is_scaled = known is not None and known != spec.replicas
        if before != spec.replicas:
            if wait := self.write_pace.wait(found.metadata.uid):
                return Result(wait)
            try:
                graph = await self._write(found, spec, graph)
            except Obstructed as refusal:
                return await self._refused(found, spec, graph, refusal.blocked)
            except NotFound:
                return DONE  # the watch is about to bring it, which wakes us
            self.write_pace.note(found.metadata.uid)
            self._report(found, graph, spec, before)
            is_scaled = True
        status = acting_status(found, spec, graph, utc_now() if is_scaled else None)
        if not is_scaled and (wait := self.pace.wait(found, status)):
            return Result(wait)
        pace = None if is_scaled else self.pace
        return Result(written=await patch_status(self.writer, found, status, pace=pace))

    async def _write(
        self,
        found: DynamoGraphDeploymentScalingAdapter,
        spec: DynamoGraphDeploymentScalingAdapterSpec,
        graph: DynamoGraphDeployment,
    ) -> DynamoGraphDeployment:
        """The graph with the adapter's number. The version keeps us from making a service that is gone.

        Raises:
            Obstructed: refused, now or a moment ago.
        """
        services: Object = {spec.dgd_ref.service_name: {"replicas": spec.replicas}}
        version, generation = graph.metadata.resource_version, graph.metadata.generation
        patch: Object = {
            "metadata": {"resourceVersion": version},
            "spec": {"services": services},
        }
        wish = Target(found.metadata.uid, graph.KIND.name, graph.key)
        digest = digest_of({"services": services, "generation": generation})
        with self.restraint.attempting(wish, digest, graph.metadata.uid):
            return await self.writer.merge_patch(
                *(DynamoGraphDeployment, graph.key, patch),
                uid=graph.metadata.uid,
                field_manager=FIELD_MANAGER,
            )

    def _report(
        self,
        found: DynamoGraphDeploymentScalingAdapter,
        graph: DynamoGraphDeployment,
        spec: DynamoGraphDeploymentScalingAdapterSpec,
        before: int,
    ) -> None:
        """Record a change as events, on the adapter and on the graph, with its author."""
        service = spec.dgd_ref.service_name
        text = f"Scaled service {service} from {before} to {spec.replicas} replicas"
        if found.status.desired_replicas == spec.replicas:
            text += f": {found.KIND.name} {found.metadata.name} owns its number; scale that instead"
        elif who := found.metadata.replicas_set_by:
            text += f", requested by {who}"
        self.recorder.event(found, graph, reason="Scaled", message=text)

    async def _refused(
        self,
        found: DynamoGraphDeploymentScalingAdapter,
        spec: DynamoGraphDeploymentScalingAdapterSpec,
        graph: DynamoGraphDeployment,
        blocked: Blocked,
    ) -> Result:
        """Say that the API server, or an admission webhook, does not take the number."""
        text = f"Failed to update DGD {blocked.message.removeprefix(f'{blocked.kind} ')}"
        why = ScalingHold(ScalingReason.REJECTED, text)
        stored = await patch_status(self.writer, found, held_status(found, spec, graph, why))
        if stored is not found:
            self.recorder.event(found, reason="UpdateFailed", message=text, warning=True)
        return Result(REJECTED_RETRY_SECONDS, stored)
