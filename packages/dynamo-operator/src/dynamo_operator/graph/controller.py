"""The controller of DynamoGraphDeployment: one graph, a component for each of its services.

A reconcile reads once (`read.py`), plans (`dynamo_operator.graph.plan`), renders, applies, and reports
(`status.py`). Only the first step reads the cache. Decisions are recorded before anything is applied.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar

import msgspec
from msgspec import structs

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.pods import ServiceView, diagnose
from dynamo_operator.component.read import (
    LiveObjects,
    PodIndex,
    graph_pod_watch,
    live_objects,
    orchestrator_watches,
    pvc_watch,
    read_facts,
)
from dynamo_operator.features.exposure import graph_exposure
from dynamo_operator.features.grove.read import (
    delete_old_provider,
    grove_watches,
    scale,
    with_wanted,
)
from dynamo_operator.features.grove.status import grove_views
from dynamo_operator.features.namespace_defaults import grove_members, kept_defaults, still_kept
from dynamo_operator.features.rollouts.controller import (
    carry_out,
    history_watch,
    keep_history,
    leaving_pod_watch,
)
from dynamo_operator.features.rollouts.plan import Rollout, worker_component_name
from dynamo_operator.features.rollouts.status import rolling_update
from dynamo_operator.features.scaling.controller import adapter_watch, apply_adapters
from dynamo_operator.features.scaling.status import graph_selector
from dynamo_operator.features.ssh_keys import ssh_key_watches
from dynamo_operator.features.takeover.apply import (
    adopted_components,
    adopted_set,
    set_starts_to_drain,
    without_new_drains,
)
from dynamo_operator.graph.api import DynamoGraphDeployment, grove_names_of
from dynamo_operator.graph.plan import GraphPlan, plan_graph, runs_on_withheld_grove
from dynamo_operator.graph.read import GraphSnapshot, read_graph
from dynamo_operator.graph.render import (
    graph_model_objects,
    graph_objects,
    graph_shared_objects,
    pvc_objects,
    retained_pvcs,
)
from dynamo_operator.graph.replicas import graph_scale
from dynamo_operator.graph.status import (
    GraphStatus,
    component_views,
    configuration_warning,
    graph_status,
    graph_stop,
)
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.names import GROVE, is_on_grove, is_paused, recorded
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import (
    Facts,
    InferencePool,
    ModelService,
    PodCliqueSet,
    VirtualService,
)
from dynamo_operator.shared.patches import FINALIZER, patch_metadata
from dynamo_operator.shared.report import Reporter, ValidationCache, load_for_reconcile
from kube_runtime.apply.applier import Applier, Controlled, CreateOnly, Shared, shared_watch
from kube_runtime.apply.result import Applied, merge
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.controller.controller import Result
from kube_runtime.kind import Key, Object
from kube_runtime.times import rfc3339
from kube_runtime.types.kinds import (
    ConfigMap,
    Ingress,
    PersistentVolumeClaim,
    PodDisruptionBudget,
    Role,
    RoleBinding,
    Service,
    ServiceAccount,
)
from kube_runtime.types.meta import Resource


def compute_status(
    graph: DynamoGraphDeployment,
    plan: GraphPlan,
    snapshot: GraphSnapshot,
    applied: Applied,
    now: datetime,
) -> GraphStatus:
    """Compute the status of `graph`: the user's spec with the newest metadata."""
    step, suspended = plan.step, plan.step.suspension.condition
    views = _views(step.graph, plan.rollout, snapshot, applied, now)
    computed = graph_status(step.sized, views, applied.blocked, now=now, suspended=suspended)
    scale = graph_scale(graph, snapshot.inputs.services)
    rollout = rolling_update(graph, plan.rollout, rfc3339(now))
    status = structs.replace(
        computed.status,
        conditions=(
            *computed.status.conditions,
            *configuration_warning(graph, istio_served=snapshot.inputs.facts.istio_served),
            *((suspended,) if suspended else ()),
        ),
        restart=step.restart.status,
        rolling_update=rollout or graph.status.rolling_update,
        replicas=scale.replicas,
        selector=graph_selector(graph, scale.covered),
    )
    return GraphStatus(status, computed.requeue_after_seconds)


def _views(
    graph: DynamoGraphDeployment,
    rollout: Rollout,
    snapshot: GraphSnapshot,
    applied: Applied,
    now: datetime,
) -> Mapping[str, ServiceView]:
    if is_on_grove(graph):
        diagnoses = {
            key: diagnose(snapshot.pods.get(key, ()), nodes=service.nodes, now=now)
            for key, service in graph.spec.services.items()
        }
        clique_set = applied.get(PodCliqueSet, grove_names_of(graph).set)
        return grove_views(graph, clique_set, with_wanted(graph, snapshot.members), diagnoses)
    names = {
        key: worker_component_name(graph, key, rollout.workers)
        for key in sorted(graph.spec.services)
    }
    components = {
        key: (name, applied.get(DynamoComponentDeployment, name)) for key, name in names.items()
    }
    return component_views(graph, components, rollout)


@dataclass(frozen=True, slots=True)
class GraphController:
    """Turns a DynamoGraphDeployment into its components and the permissions that they need."""

    writer: Writer
    cache: Cache
    applier: Applier
    reporter: Reporter
    pods: PodIndex
    settings: RenderSettings
    validated: ValidationCache = field(default_factory=ValidationCache)

    reconciles: ClassVar[type[Resource]] = DynamoGraphDeployment
    owns: ClassVar[tuple[type[Resource], ...]] = (
        ServiceAccount,
        Role,
        RoleBinding,
        ConfigMap,
        InferencePool,
        ModelService,  # before Service: the last type of a kind is the one written
        Service,
        Ingress,
        VirtualService,
        PodDisruptionBudget,
        DynamoComponentDeployment,
        PodCliqueSet,
    )
    shares: ClassVar[tuple[type[Resource], ...]] = (ServiceAccount, RoleBinding)

    @property
    def watches(self) -> tuple[Watches, ...]:
        """The other kinds that a reconcile reads: shared objects, PVCs, what Grove creates for a set."""
        shares: tuple[type[Resource], ...] = (*self.shares, ModelService)
        shared = (shared_watch(type_, self.reconciles.KIND) for type_ in shares)
        return (
            *shared,
            adapter_watch(),
            history_watch(),
            pvc_watch(self.cache),
            *orchestrator_watches(),
            *grove_watches(self.cache),
            *ssh_key_watches(self.cache),
            graph_pod_watch(self.cache),
            leaving_pod_watch(self.cache),
        )

    async def reconcile(self, key: Key) -> Result:
        """Apply the objects of a graph, and report their state in its status."""
        await self._stay_on_grove(key)
        graph = await load_for_reconcile(DynamoGraphDeployment, key, self.cache, self.reporter)
        if isinstance(graph, Result):
            return graph
        suppression = self.applier.suppression
        snapshot = read_graph(graph, self.cache, self.pods, self.settings, suppression, self.owns)
        provided, inputs = snapshot.graph, snapshot.inputs
        find = partial(graph_problems, settings=self.settings)
        problems = self.validated.problems_by(provided, find)
        if stop := graph_stop(provided, inputs.facts, problems):
            return await self.reporter.stopped(provided, stop)
        plan = plan_graph(graph, inputs, self.settings, datetime.now(UTC))
        plan = await self._record(plan)
        applied = await self._apply(plan, snapshot)
        graph, resized = await carry_out(plan.graph, plan.rollout, self.writer)
        applied = merge((applied, resized))
        report = compute_status(graph, plan, snapshot, applied, datetime.now(UTC))
        times = (report.requeue_after_seconds, plan.rollout.wait_seconds)
        return await self.reporter.applied(graph, report.status, applied, *times)

    async def _apply(self, plan: GraphPlan, snapshot: GraphSnapshot) -> Applied:
        """Apply the parts of the plan, each after those that it depends on."""
        graph, settings = plan.step.graph, self.settings
        desired = await self._render(plan, snapshot)
        exposure = graph_exposure(graph, desired, settings)
        accounts = graph_shared_objects(graph, settings)
        spared = {*plan.rollout.spared, *exposure.spared}
        parts = [
            await keep_history(plan.graph, plan.history, self.applier, self.writer),
            await apply_adapters(
                plan.graph,
                plan.adapters,
                snapshot.adapters,
                self.writer,
                self.applier.suppression,
            ),
            await delete_old_provider(graph, snapshot.live.values(), self.writer),
            await self.applier.apply(
                graph,
                CreateOnly(pvc_objects(graph), (PersistentVolumeClaim,), retained_pvcs(graph)),
                Shared(accounts, self.shares, labels.SHARED),
                Shared(snapshot.ssh_keys, snapshot.ssh_key_types, labels.SHARED),
                Shared(graph_model_objects(graph), (ModelService,), labels.SHARED_MODEL),
                Controlled(exposure.desired, self.owns, spared, decided_with=snapshot.live),
            ),
        ]
        if is_on_grove(graph):
            parts.append(await scale(with_wanted(graph, snapshot.members), self.writer))
        return exposure.reported(merge(parts))

    async def _render(self, plan: GraphPlan, snapshot: GraphSnapshot) -> Sequence[Object]:
        """Render the objects to apply. Running pods keep equivalent templates."""
        graph, live, facts = plan.step.graph, snapshot.live, snapshot.inputs.facts
        if not is_on_grove(graph):
            workers = plan.rollout.workers
            rendered = graph_objects(graph, facts, self.settings, workers)
            return adopted_components(rendered, live)
        members = grove_members(graph, facts, self.settings, snapshot.pods)
        kept = kept_defaults(members, live, facts)
        desired = await self._render_set(graph, replace(facts, running_defaults=kept), live)
        still = still_kept(kept, members, desired, live)
        if still == kept:
            return desired
        return await self._render_set(graph, replace(facts, running_defaults=still), live)

    async def _render_set(
        self, graph: DynamoGraphDeployment, facts: Facts, live: LiveObjects
    ) -> Sequence[Object]:
        """Render the objects of a graph on Grove with these facts."""

        desired = tuple(graph_objects(graph, facts, self.settings))
        adopted = await adopted_set(graph, desired, live, self.applier.writer.client)
        if not set_starts_to_drain(adopted, live):
            return adopted
        undrained = msgspec.structs.replace(self.settings, worker_drain_period_seconds=0)
        return tuple(without_new_drains(adopted, graph_objects(graph, facts, undrained), live))

    async def _record(self, plan: GraphPlan) -> GraphPlan:
        """Write the annotations that record the plan's decisions; return the plan for the graph with them."""
        if not plan.record:
            return plan
        written = await patch_metadata(plan.graph, {"annotations": plan.record}, self.writer)
        provider = plan.graph.metadata.annotations[labels.WORKLOAD_PROVIDER]
        return plan.as_written(recorded(written, provider).metadata)

    async def _stay_on_grove(self, key: Key) -> None:
        """Record the provider of a graph that may have a PodCliqueSet which the operator may not read.

        An earlier operator left its finalizer and its status on such a graph. Our first writes remove both,
        so the record comes before them. No request for any other graph. Raises as `patch_metadata`.
        """
        graph = self.cache.get(DynamoGraphDeployment, key)
        if graph is None or labels.WORKLOAD_PROVIDER in graph.metadata.annotations:
            return
        metadata = graph.metadata
        if metadata.deletion_timestamp or is_paused(graph):
            return
        if runs_on_withheld_grove(
            graph,
            read_facts(metadata.namespace, self.cache),
            {kind for kind, _ in live_objects(graph, self.cache, self.owns)},
            has_foreign_finalizer=FINALIZER in metadata.finalizers,
        ):
            record = {labels.WORKLOAD_PROVIDER: GROVE}
            await patch_metadata(graph, {"annotations": record}, self.writer)
