"""The controller of DynamoGraphDeployment: one graph, a component for each of its services.

A reconcile reads once (`read.py`), decides (`decide.py`), applies, and computes the status (`status.py`);
the reporter (`shared/report.py`) writes it. What must last is recorded on the graph before
anything is applied.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.read import PodIndex
from dynamo_operator.features.decision import Decision, Delete, Patch, Write
from dynamo_operator.features.grove.read import grove_watches
from dynamo_operator.features.scaling.controller import adapter_watch, apply_adapters
from dynamo_operator.features.scaling.feature import ADAPTERS
from dynamo_operator.features.ssh_keys import ssh_key_watches
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decide import decide
from dynamo_operator.graph.read import graph_pod_watch, kind_watches, leaving_pod_watch, pvc_watch, read_graph
from dynamo_operator.graph.status import applied_status
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.labels import FINALIZER
from dynamo_operator.names import on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import InferencePool, ModelService, PodCliqueSet, VirtualService
from dynamo_operator.shared.patches import other_finalizers, patch_metadata
from dynamo_operator.shared.report import Reporter, ValidationCache, load_for_reconcile
from kube_runtime.apply.applier import Applier, Controlled, CreateOnly, Shared, shared_watch
from kube_runtime.apply.result import Applied
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.controller.controller import Result
from kube_runtime.errors import NotFound, Refused, ServerFailure
from kube_runtime.types import kinds
from kube_runtime.types.meta import Key, Object, Resource


@dataclass(frozen=True, slots=True)
class GraphController:
    """Turns a DynamoGraphDeployment into its components, or a PodCliqueSet, and what these need.

    `control_graphs` (`process/operator.py`) makes it, and says how often its status is written and what may
    wake it early.
    """

    writer: Writer
    cache: Cache
    applier: Applier
    reporter: Reporter
    pods: PodIndex
    settings: RenderSettings
    validated: ValidationCache = field(default_factory=ValidationCache)

    reconciles: ClassVar[type[Resource]] = DynamoGraphDeployment
    owns: ClassVar[tuple[type[Resource], ...]] = (
        kinds.ServiceAccount,
        kinds.Role,
        kinds.RoleBinding,
        kinds.ConfigMap,
        InferencePool,
        ModelService,  # before Service: the last type of a kind is the one written
        kinds.Service,
        kinds.Ingress,
        VirtualService,
        kinds.PodDisruptionBudget,
        DynamoComponentDeployment,
        PodCliqueSet,
    )
    keeps: ClassVar[tuple[type[Resource], ...]] = (kinds.ControllerRevision,)
    shares: ClassVar[tuple[type[Resource], ...]] = (kinds.ServiceAccount, kinds.RoleBinding)

    @property
    def watches(self) -> tuple[Watches, ...]:
        """The other kinds that a reconcile reads: shared objects, PVCs, what Grove creates for a set."""
        shares: tuple[type[Resource], ...] = (*self.shares, ModelService)
        shared = (shared_watch(type_, self.reconciles.KIND) for type_ in shares)
        return (
            *shared,
            adapter_watch(),
            pvc_watch(self.cache),
            *kind_watches(),
            *grove_watches(self.cache),
            *ssh_key_watches(self.cache),
            graph_pod_watch(self.cache),
            leaving_pod_watch(self.cache),
        )

    async def reconcile(self, key: Key) -> Result:
        """Apply the objects of a graph, and report their state in its status."""
        stored = await load_for_reconcile(
            DynamoGraphDeployment, key, self.cache, self.reporter, keep_finalizer=True
        )
        if isinstance(stored, Result):
            return stored
        settings = self.settings
        inputs = await read_graph(stored, self.cache, self.pods, settings, self.applier, self.owns)
        find = partial(graph_problems, settings=settings)
        problems_of = partial(self.validated.problems_by, find=find)
        decision = decide(stored, inputs, settings, datetime.now(UTC), problems_of)
        # The same write removes the finalizer of an earlier operator: together they are the evidence for what
        # is recorded.
        change: Object = {"annotations": decision.record} if decision.record else {}
        if FINALIZER in decision.graph.metadata.finalizers:
            change["finalizers"] = other_finalizers(decision.graph)
        if change:
            decision = await self._patched(decision, change)
        if decision.stop:
            return await self.reporter.stop(decision.graph, decision.stop)
        applied = await self._apply(decision)
        if decision.closing:
            decision = await self._patched(decision, {"annotations": decision.closing})
        computed = applied_status(decision, applied, datetime.now(UTC))
        seconds = computed.requeue_after_seconds
        return await self.reporter.finish(decision.graph, computed.status, applied, seconds)

    async def _patched(self, decision: Decision, change: Object) -> Decision:
        # With resourceVersion: the response must not contain a newer spec than the one that was decided on.
        inputs = decision.inputs
        written = await patch_metadata(decision.graph, change, self.writer)
        return decision.as_written(on_provider(written, inputs.provider, inputs.present_set).metadata)

    async def _apply(self, decision: Decision) -> Applied:
        graph, inputs = decision.graph, decision.inputs
        applied = self.reporter.applying(graph)
        if decision.history.created is not None:
            revision = CreateOnly((decision.history.created,), self.keeps)
            await self.applier.apply(graph, revision, applied=applied)
        if decision.before:
            await _carry_out(graph, decision.before, self.writer, applied)
        if ADAPTERS in decision.features:
            suppression, adapters = self.applier.suppression, inputs.adapters
            await apply_adapters(graph, decision.adapters, adapters, self.writer, suppression, applied)
        accounts = Shared(decision.accounts, (*self.shares, *inputs.ssh_key_types), labels.SHARED)
        retained = frozenset(claim.name for claim in graph.spec.pvcs if claim.retain)
        await self.applier.apply(
            graph,
            CreateOnly(decision.claims, (kinds.PersistentVolumeClaim,), retained),
            accounts,
            Shared(decision.models, (ModelService,), labels.SHARED_MODEL),
            Controlled(decision.objects, self.owns, decision.spared, decided_with=inputs.live),
            applied=applied,
        )
        applied.obstructions += decision.blocked
        if decision.after:
            await _carry_out(graph, decision.after, self.writer, applied)
        return applied


async def _carry_out(owner: Resource, writes: Iterable[Write], writer: Writer, applied: Applied) -> None:
    """Write one after the other; a refusal is in the result and stops none.

    Raises:
        Conflict: the owner or an object has changed; the caller retries at once.
        OperatorError: the API server could not be reached.
    """
    is_checked = False
    for write in writes:
        live, change = write.live, write.change
        try:
            if isinstance(write, Patch):
                uid, subresource = live.metadata.uid, write.subresource
                await writer.merge_patch(write.type_, live.key, write.body, subresource=subresource, uid=uid)
            else:
                if write.checks_owner and not is_checked:
                    await writer.ensure_newest(owner)
                    is_checked = True
                await writer.delete(live)
        except NotFound:
            if isinstance(write, Delete):
                raise  # the owner is gone
        except (Refused, ServerFailure) as error:
            part = write.subresource if isinstance(write, Patch) else ""
            name = f"{change.name}/{part}" if part else change.name
            applied.refused(change.kind, name, error)
        else:
            applied.record(change)
