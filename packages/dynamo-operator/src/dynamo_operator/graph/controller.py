"""Controller of DynamoGraphDeployment: one graph, a component for each of its services."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import ClassVar

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.optional_apis import GROVE, withheld_text
from dynamo_graphs.api.provider import GROVE as GROVE_PROVIDER
from dynamo_graphs.api.provider import is_on_grove, recorded
from dynamo_graphs.facts import Facts
from dynamo_graphs.plan.rollout_plan import Rollout
from dynamo_graphs.plan.step import next_step
from dynamo_graphs.render.graph import graph_model_objects, graph_objects, graph_shared_objects
from dynamo_graphs.render.provider import has_begun, is_available, to_record, workload_provider
from dynamo_graphs.render.pvcs import pvc_objects, retained_pvcs
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.status.graph import (
    GraphState,
    refused_status,
    stopped_status,
    unavailable_status,
)
from dynamo_graphs.status.prerequisites import lacking_status, missing
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.types.grove import PodCliqueSet
from dynamo_graphs.types.inference import InferencePool
from dynamo_graphs.types.istio import VirtualService
from dynamo_graphs.types.selected import ModelService
from dynamo_graphs.validation.graph import graph_problems
from dynamo_operator.graph.snapshot import service_snapshot
from dynamo_operator.graph.status import compute_status
from dynamo_operator.graph.stay_on_grove import stay_on_grove
from dynamo_operator.reconcile.adoption import (
    adopted_components,
    adopted_set,
    set_starts_to_drain,
    without_new_drains,
)
from dynamo_operator.reconcile.events import earliest, record_events, result_of
from dynamo_operator.reconcile.exposure import graph_exposure
from dynamo_operator.reconcile.grove import grove_watches, members, old_provider_left, scale
from dynamo_operator.reconcile.offload import Offload
from dynamo_operator.reconcile.pods import PodIndex, graph_pod_watch
from dynamo_operator.reconcile.preflight import load_for_reconcile
from dynamo_operator.reconcile.read import orchestrator_watches, pvc_watch, read_facts_for_graph
from dynamo_operator.reconcile.ssh_keys import ssh_key_copies, ssh_key_types, ssh_key_watches
from dynamo_operator.reconcile.validation_cache import ValidationCache
from dynamo_operator.rollout.revisions import (
    carry_out,
    leaving_pod_watch,
    next_rollout,
    observed_revisions,
)
from dynamo_operator.scaling.adapters import adapter_watch, keep_adapters
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.ownership import Controlled, CreateOnly, Shared, shared_watch
from kube_runtime.apply.result import Applied, merge
from kube_runtime.apply.status_patch import StatusRateLimit, patch_status
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import Recorder
from kube_runtime.kind import Key, Object
from kube_runtime.types.core import ConfigMap, PersistentVolumeClaim, Service, ServiceAccount
from kube_runtime.types.meta import Resource
from kube_runtime.types.networking import Ingress
from kube_runtime.types.policy import PodDisruptionBudget
from kube_runtime.types.rbac import Role, RoleBinding


@dataclass(frozen=True, slots=True)
class GraphController:
    """Turns a DynamoGraphDeployment into its components and the permissions that they need.

    `written` gets the graph before and after its status was updated; both may be the same.
    """

    writer: Writer
    cache: Cache
    applier: Applier
    recorder: Recorder
    pace: StatusRateLimit
    pods: PodIndex
    settings: RenderSettings
    written: Callable[[DynamoGraphDeployment, DynamoGraphDeployment], None] = lambda _, __: None
    sound: ValidationCache = field(default_factory=ValidationCache)
    heavy: Offload = field(default_factory=Offload)

    reconciles: ClassVar[type[Resource]] = DynamoGraphDeployment
    owns: ClassVar[tuple[type[Resource], ...]] = (
        ServiceAccount,
        Role,
        RoleBinding,
        ConfigMap,
        InferencePool,
        ModelService,  # before Service: of one kind the last type is written
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
        """What else is read: shared objects, PVCs, what Grove creates for a set."""
        shares: tuple[type[Resource], ...] = (*self.shares, ModelService)
        shared = (shared_watch(each, self.reconciles.KIND) for each in shares)
        return (
            *shared,
            adapter_watch(),
            pvc_watch(self.cache),
            *orchestrator_watches(),
            *grove_watches(self.cache),
            *ssh_key_watches(self.cache),
            graph_pod_watch(self.cache),
            leaving_pod_watch(self.cache),
        )

    async def reconcile(self, key: Key) -> Result:
        """Make the world what this graph wants, and its status what the world is."""
        await stay_on_grove(key, self.cache, self.writer, self.owns)
        found = await load_for_reconcile(
            DynamoGraphDeployment,
            key,
            cache=self.cache,
            client=self.applier.client,
            writer=self.writer,
            recorder=self.recorder,
        )
        if found is None:
            return DONE
        return await self.heavy.reconciled(found, self._reconcile, self._too_expensive)

    async def _too_expensive(self, found: DynamoGraphDeployment, text: str) -> None:
        status = stopped_status(found, GraphState.FAILED, GraphReason.TOO_EXPENSIVE, text)
        stored = await patch_status(self.writer, found, status)
        record_events(self.recorder, found, stored, lack=("TooExpensive", text))

    async def _reconcile(self, found: DynamoGraphDeployment) -> Result:
        facts = read_facts_for_graph(found, self.cache, self.settings)
        graph = await self._possible(found, facts)
        if graph is None:
            return DONE  # a change of the spec, or of what is missing, wakes us
        adapters = await keep_adapters(graph, self.cache, self.writer, self.applier.suppression)
        workers = observed_revisions(graph, self.cache, self.settings)
        step = next_step(
            graph,
            service_snapshot(graph, self.cache),
            adapters.replicas,
            is_rolling_out=workers.is_rolling_out,
        )
        rollout = next_rollout(step.sized, workers, self.pods)
        made = await self._applied(step.graph, rollout, facts)
        graph, resized = await carry_out(graph, rollout, self.writer)
        applied = merge((adapters.applied, made, resized))
        state = compute_status(graph, step, rollout, applied, cache=self.cache, pods=self.pods)
        if wait := self.pace.wait(graph, state.status):
            record_events(self.recorder, graph, graph, applied=applied)
            return earliest(Result(wait), state.requeue_after_seconds, rollout.wait_seconds)
        stored = await patch_status(self.writer, graph, state.status, pace=self.pace)
        self.written(graph, stored)
        record_events(self.recorder, graph, stored, applied=applied)
        return earliest(result_of(applied), state.requeue_after_seconds, rollout.wait_seconds)

    async def _possible(
        self, found: DynamoGraphDeployment, facts: Facts
    ) -> DynamoGraphDeployment | None:
        """The graph with its recorded provider, if there is one; else its status reports why not."""
        owned = self.cache.owned_by(found.metadata.uid, self.owns, found.metadata.namespace)
        children = {each.KIND.name for each in owned}
        chosen = workload_provider(found, facts, children)
        if not is_available(chosen, facts):
            forbidden = withheld_text(facts.withheld, (GROVE,)) if chosen == GROVE_PROVIDER else ""
            status = unavailable_status(found, chosen, forbidden)
            stored = await patch_status(self.writer, found, status)
            text = f'workload provider "{chosen}" is not available'
            text = f"{text}: {forbidden}" if forbidden else text
            record_events(self.recorder, found, stored, lack=("WorkloadProviderUnavailable", text))
            return None
        graph = recorded(found, chosen)
        find = partial(graph_problems, settings=self.settings)
        if problems := await self.sound.problems_by(self.heavy, graph, find):
            stored = await patch_status(self.writer, graph, refused_status(graph, problems))
            record_events(self.recorder, graph, stored, problems=problems)
            return None
        if lacks := missing(graph, facts):
            stored = await patch_status(self.writer, graph, lacking_status(graph, lacks))
            text = "; ".join(each.message for each in lacks)
            record_events(self.recorder, graph, stored, lack=("PrerequisiteMissing", text))
            return None
        is_new = not has_begun(found, children)
        record = to_record(found, chosen, facts, self.settings, is_new=is_new)
        return await self._recorded(graph, record)

    async def _applied(
        self, graph: DynamoGraphDeployment, rollout: Rollout, facts: Facts
    ) -> Applied:
        """Everything that the graph wants, in the order in which its parts need each other."""
        settings = self.settings
        exposure = graph_exposure(graph, await self._wanted(graph, rollout, facts), settings)
        pvcs = CreateOnly(pvc_objects(graph), (PersistentVolumeClaim,), retained_pvcs(graph))
        accounts = graph_shared_objects(graph, facts, settings)
        ssh_keys = ssh_key_copies(graph, self.cache, settings)
        models = graph_model_objects(graph)
        spared = {*rollout.spared, *exposure.spared}
        parts = [
            await old_provider_left(graph, self.cache, self.writer),
            await self.applier.apply(
                graph,
                pvcs,
                Shared(accounts, self.shares, labels.SHARED),
                Shared(ssh_keys, ssh_key_types(self.cache), labels.SHARED),
                Shared(models, (ModelService,), labels.SHARED_MODEL),
                Controlled(exposure.wanted, self.owns, spared),
            ),
        ]
        if is_on_grove(graph):
            parts.append(await scale(graph, members(graph, self.cache), self.writer))
        return exposure.reported(merge(parts))

    async def _wanted(
        self, graph: DynamoGraphDeployment, rollout: Rollout, facts: Facts
    ) -> Sequence[Object]:
        """The objects to apply. Pods that run keep their template where it need not change."""

        async def rendered(settings: RenderSettings) -> Sequence[Object]:
            return await self.heavy.do(
                graph, graph_objects, graph, facts, settings, rollout.workers
            )

        found = await rendered(self.settings)
        if not is_on_grove(graph):
            return adopted_components(found, self.cache)
        kept = await adopted_set(graph, found, self.cache, self.applier.client)
        if not set_starts_to_drain(kept, self.cache):
            return kept
        undrained = msgspec.structs.replace(self.settings, worker_drain_period_seconds=0)
        return tuple(without_new_drains(kept, await rendered(undrained), self.cache))

    async def _recorded(
        self, graph: DynamoGraphDeployment, record: Mapping[str, str]
    ) -> DynamoGraphDeployment:
        """The graph, which has its provider in memory, with these annotations written on it as well."""
        if not record:
            return graph
        metadata = graph.metadata
        patch = {"annotations": record, "resourceVersion": metadata.resource_version}
        written = await self.writer.merge_patch(
            DynamoGraphDeployment, graph.key, {"metadata": patch}, uid=metadata.uid
        )
        return recorded(written, metadata.annotations[labels.WORKLOAD_PROVIDER])
