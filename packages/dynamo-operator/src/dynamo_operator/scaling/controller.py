"""The controller of DynamoGraphDeploymentScalingAdapter: copies the replicas of one service into its graph.

The adapter takes precedence over the graph's number. The graph is the user's object, so the controller
writes one field, under a field manager of its own, and never to a service that was just removed.

It sends a merge patch, not a server-side apply. An apply would have to repeat the replicas of all services
each time, and its field would survive when another manager removes the service around it. A patch takes the
field over from its former manager, so a later apply without the field keeps it, and it is removed with its
service.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from structlog.contextvars import bind_contextvars

from dynamo_graphs.api.deployment_config import base_replicas
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter as Adapter
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapterSpec as AdapterSpec
from dynamo_graphs.status.reasons import ScalingReason
from dynamo_graphs.status.scaling import ScalingHold, acting_status, held_status, hold
from dynamo_operator.reconcile.preflight import report_unreadable
from dynamo_operator.reconcile.report import REJECTED_RETRY_SECONDS, Reporter
from dynamo_operator.scaling.read import read_scaling, scaling_watch
from kube_runtime.apply.result import Blocked, Obstructed
from kube_runtime.apply.status_patch import patch_status
from kube_runtime.apply.suppression import Target, WriteSuppression, digest_of
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.errors import NotFound
from kube_runtime.kind import Key, Object
from kube_runtime.rate_limits import WriteRate
from kube_runtime.times import utc_now
from kube_runtime.types.meta import Resource

FIELD_MANAGER = "dynamo-operator-scaling"
"""Owns the replicas of services with an adapter in the `managedFields` of graphs."""


@dataclass(frozen=True, slots=True)
class ScalingController:
    """Writes the replicas of adapters into their graphs."""

    cache: Cache
    reporter: Reporter
    write_pace: WriteRate = field(default_factory=WriteRate)
    suppression: WriteSuppression = field(default_factory=WriteSuppression)

    reconciles: ClassVar[type[Resource]] = Adapter
    owns: ClassVar[tuple[type[Resource], ...]] = ()

    @property
    def watches(self) -> tuple[Watches, ...]:
        """The graphs that adapters name."""
        return (scaling_watch(self.cache),)

    async def reconcile(self, key: Key) -> Result:
        """Write the adapter's replicas into its graph, and report the state of the service in its status."""
        if error := self.cache.broken(Adapter, key):
            return await report_unreadable(Adapter, key, error, self.reporter)
        inputs = read_scaling(key, self.cache)
        if inputs is None:
            return DONE
        adapter, spec, graph = inputs
        bind_contextvars(graph=spec.dgd_ref.name)
        # A change of the adapter or of the graph, its creation included, ends the hold and wakes us.
        if held := hold(adapter, spec, graph):
            status = held_status(adapter, spec, graph, held)
            return Result(written=await patch_status(self.reporter.writer, adapter, status))
        return await self._act(adapter, spec, graph) if graph is not None else DONE

    async def _act(
        self, adapter: Adapter, spec: AdapterSpec, graph: DynamoGraphDeployment
    ) -> Result:
        before = base_replicas(graph, spec.dgd_ref.service_name)
        reported = adapter.status.desired_replicas
        # A number in the graph that our status lacks was written just before the process was stopped.
        is_scaled = reported is not None and reported != spec.replicas
        if before != spec.replicas:
            if wait := self.write_pace.wait(adapter.metadata.uid):
                return Result(wait)
            try:
                graph = await self._write(adapter, spec, graph)
            except Obstructed as refusal:
                return await self._refused(adapter, spec, graph, refusal.blocked)
            except NotFound:
                return DONE  # the watch delivers the deletion, which wakes us
            self.write_pace.record(adapter.metadata.uid)
            self._report(adapter, graph, spec, before)
            is_scaled = True
        status = acting_status(adapter, spec, graph, utc_now() if is_scaled else None)
        if not is_scaled and (wait := self.reporter.limit.wait(adapter, status)):
            return Result(wait)
        pace = None if is_scaled else self.reporter.limit
        return Result(written=await patch_status(self.reporter.writer, adapter, status, limit=pace))

    async def _write(
        self, adapter: Adapter, spec: AdapterSpec, graph: DynamoGraphDeployment
    ) -> DynamoGraphDeployment:
        """Write the replicas into the graph. With its resourceVersion no removed service is recreated.

        Raises:
            Obstructed: the API server refuses the write, or refused it a moment ago.
        """
        services: Object = {spec.dgd_ref.service_name: {"replicas": spec.replicas}}
        version = {"resourceVersion": graph.metadata.resource_version}
        patch: Object = {"metadata": version, "spec": {"services": services}}
        target = Target(adapter.metadata.uid, graph.KIND.name, graph.key)
        digest = digest_of({"services": services, "generation": graph.metadata.generation})
        with self.suppression.suppressing_repeats(target, digest, graph.metadata.uid):
            return await self.reporter.writer.merge_patch(
                DynamoGraphDeployment,
                graph.key,
                patch,
                uid=graph.metadata.uid,
                field_manager=FIELD_MANAGER,
            )

    def _report(
        self, adapter: Adapter, graph: DynamoGraphDeployment, spec: AdapterSpec, before: int
    ) -> None:
        """Record an Event on the adapter and on the graph, with the author of the change."""
        service = spec.dgd_ref.service_name
        text = f"Scaled service {service} from {before} to {spec.replicas} replicas"
        if adapter.status.desired_replicas == spec.replicas:
            name = f"{adapter.KIND.name} {adapter.metadata.name}"
            text += f": {name} owns its number; scale that instead"
        elif author := adapter.metadata.replicas_set_by:
            text += f", requested by {author}"
        self.reporter.recorder.event(adapter, graph, reason="Scaled", message=text)

    async def _refused(
        self, adapter: Adapter, spec: AdapterSpec, graph: DynamoGraphDeployment, blocked: Blocked
    ) -> Result:
        """Report that the API server, or an admission webhook, refuses the number."""
        text = f"Failed to update DGD {blocked.message.removeprefix(f'{blocked.kind} ')}"
        held = ScalingHold(ScalingReason.REJECTED, text)
        stored = await patch_status(
            self.reporter.writer, adapter, held_status(adapter, spec, graph, held)
        )
        if stored is not adapter:
            self.reporter.recorder.event(adapter, reason="UpdateFailed", message=text, warning=True)
        return Result(REJECTED_RETRY_SECONDS, stored)
