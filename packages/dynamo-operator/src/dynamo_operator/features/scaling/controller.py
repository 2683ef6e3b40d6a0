"""The controller of DynamoGraphDeploymentScalingAdapter: copies the replicas of one service into its graph.

The graph is the user's object, so the controller writes one field, under a field manager of its own, and
never to a service that was just removed.

It sends a merge patch, not a server-side apply. An apply would have to repeat the replicas of all services
each time, and its field would survive when another manager removes the service around it. A patch takes the
field over from its former manager, so a later apply without the field keeps it, and it is removed with its
service.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import ClassVar

import msgspec
from structlog.contextvars import bind_contextvars

from dynamo_operator.features.decision import AdapterInputs, AdapterPlan
from dynamo_operator.features.scaling.api import FIELD_MANAGER
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter as Adapter
from dynamo_operator.features.scaling.decide import ScalingDecision, ScalingInputs, after_failure, decide
from dynamo_operator.features.scaling.feature import adapter_names
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.report import Reporter, report_unreadable
from kube_runtime.apply import result
from kube_runtime.apply.status import patch_status
from kube_runtime.apply.suppression import Target, WriteSuppression, digest_of
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.errors import DecodeError, NotFound, Refused, ServerFailure
from kube_runtime.times import Since
from kube_runtime.types.meta import Key, Object, Resource, controller_reference, key_of


def read_adapters(graph: DynamoGraphDeployment, cache: Cache, suppression: WriteSuppression) -> AdapterInputs:
    """Read the adapters of a graph."""
    namespace, uid = graph.metadata.namespace, graph.metadata.uid
    owned = cache.owned_by(uid, (Adapter,), namespace)
    present = {adapter.metadata.name: adapter for adapter in owned if isinstance(adapter, Adapter)}
    unreadable: dict[str, DecodeError] = {}
    refused: set[str] = set()
    for name in adapter_names(graph):
        key = Key(namespace, name)
        if adapter := cache.get(Adapter, key):
            present[name] = adapter
        elif error := cache.broken(Adapter, key):
            unreadable[name] = error
        elif suppression.refusal(Target(uid, Adapter.KIND.name, key)):
            refused.add(name)
    return AdapterInputs(present, unreadable, frozenset(refused))


def adapter_watch() -> Watches:
    """Wake a graph when one of its adapters, or a foreign one with a name that it needs, changes."""

    def keys(changed: Adapter) -> Iterator[Key]:
        namespace, controller = changed.metadata.namespace, changed.metadata.controller
        if changed.spec is not None:
            yield Key(namespace, changed.spec.dgd_ref.name)
        if controller is not None and controller.kind == DynamoGraphDeployment.KIND.name:
            yield Key(namespace, controller.name)

    return Watches(Adapter, keys)


WRITE_SECONDS = 1.0
"""Seconds between two writes of the replicas of one adapter."""


@dataclass(frozen=True, slots=True)
class ScalingController:
    """Writes the replicas of adapters into their graphs."""

    cache: Cache
    reporter: Reporter
    last_writes: Since = field(default_factory=partial(Since, WRITE_SECONDS))
    suppression: WriteSuppression = field(default_factory=WriteSuppression)

    reconciles: ClassVar[type[Resource]] = Adapter
    owns: ClassVar[tuple[type[Resource], ...]] = ()

    @property
    def watches(self) -> tuple[Watches, ...]:
        """Wake adapters when the graph that they name changes or is created."""
        keys = self.cache.referrers(
            Adapter, lambda adapter: (adapter.spec.dgd_ref.name,) if adapter.spec else ()
        )
        return (Watches(DynamoGraphDeployment, keys),)

    async def reconcile(self, key: Key) -> Result:
        """Write the adapter's replicas into its graph, and report the state of the service in its status."""
        if error := self.cache.broken(Adapter, key):
            return await report_unreadable(Adapter, key, error, self.reporter)
        adapter = self.cache.get(Adapter, key)
        if adapter is None or adapter.spec is None or adapter.metadata.deletion_timestamp:
            return DONE
        bind_contextvars(graph=adapter.spec.dgd_ref.name)
        graph_key = Key(key.namespace, adapter.spec.dgd_ref.name)
        graph = self.cache.get(DynamoGraphDeployment, graph_key)
        is_going = graph is not None and graph.metadata.deletion_timestamp is not None
        is_broken = self.cache.broken(DynamoGraphDeployment, graph_key) is not None
        inputs = ScalingInputs(graph, is_going or is_broken)
        decision = decide(adapter, inputs, datetime.now(UTC))
        if inputs.graph is not None and decision.replicas is not None:
            if wait := self.last_writes.left(adapter.metadata.uid, WRITE_SECONDS):
                return Result(wait)
            try:
                await self._scale(adapter, inputs.graph, decision)
            except (result.Obstructed, NotFound) as failure:
                decision = after_failure(adapter, inputs, failure)
        return await self._report(adapter, decision)

    async def _scale(self, adapter: Adapter, graph: DynamoGraphDeployment, decision: ScalingDecision) -> None:
        services: Object = {decision.service: {"replicas": decision.replicas}}
        target = Target(adapter.metadata.uid, graph.KIND.name, graph.key)
        digest = digest_of({"services": services, "generation": graph.metadata.generation})
        with self.suppression.suppressing_repeats(target, digest, graph.metadata.uid):
            # Of exactly this state, so that no removed service is recreated.
            path = ("spec", "services", decision.service, "replicas")
            await self.reporter.writer.set_field(graph, path, decision.replicas, field_manager=FIELD_MANAGER)
        self.last_writes.record(adapter.metadata.uid)
        self.reporter.recorder.event(adapter, graph, reason="Scaled", message=decision.event)

    async def _report(self, adapter: Adapter, decision: ScalingDecision) -> Result:
        if decision.status is None:
            return DONE
        limit = self.reporter.limit if decision.may_wait else None
        if limit and (wait := limit.wait(adapter, decision.status)):
            return Result(wait)
        stored = await patch_status(self.reporter.writer, adapter, decision.status, limit=limit)
        if decision.is_refused and stored is not adapter:
            text = decision.event
            self.reporter.recorder.event(adapter, reason="UpdateFailed", message=text, warning=True)
        return Result(decision.requeue_after_seconds, stored)


@dataclass(frozen=True, slots=True)
class _Orphaned(result.Change):
    service: str = ""

    @property
    def reason(self) -> str:
        return "AdapterDeleted"

    @property
    def message(self) -> str:
        return f"Deleted orphaned scaling adapter {self.name} for removed service {self.service}"


# `spec.replicas` belongs to the client that scales: it is set when the adapter is created and never
# written again. So the Applier cannot write adapters: server-side apply removes a field that was
# applied once and then left out.
async def apply_adapters(
    graph: DynamoGraphDeployment,
    plan: AdapterPlan,
    inputs: AdapterInputs,
    writer: Writer,
    suppression: WriteSuppression,
    applied: result.Applied,
) -> None:
    """Create missing adapters, correct our fields of the others, and delete orphans.

    Raises:
        Conflict: another client has created or changed one; the caller retries at once.
        OperatorError: the API server could not be reached or failed.
    """
    owners = {"ownerReferences": [controller_reference(graph, writer.client.stored(graph.KIND))]}
    desired = [{**body, "metadata": body["metadata"] | owners} for body in plan.desired]
    attempt = partial(_attempt, graph, inputs, writer, suppression)
    await result.apply_each(desired, (Adapter,), attempt, applied)
    if plan.orphans:
        await writer.ensure_newest(graph)
    for adapter in plan.orphans:
        try:
            await writer.delete(adapter)
        except (Refused, ServerFailure) as error:
            applied.refused(adapter.KIND.name, adapter.metadata.name, error)
        else:
            applied.record(_deletion(graph, adapter))


async def _attempt(
    graph: DynamoGraphDeployment,
    inputs: AdapterInputs,
    writer: Writer,
    suppression: WriteSuppression,
    attempt: result.Attempt,
) -> None:
    desired, kind = attempt.desired, Adapter.KIND.name
    key = key_of(desired)
    live = inputs.present.get(key.name)
    if live is None and (error := inputs.unreadable.get(key.name)):
        text = f"cannot read {kind} {key.name}: {error.message}"
        raise result.Obstructed(result.Blocked(result.Obstacle.REJECTED, kind, key.name, text))
    if live is None:
        target = Target(graph.metadata.uid, kind, key)
        with suppression.suppressing_repeats(target, digest_of(desired), ""):
            attempt.present = await writer.create(Adapter, desired)
        attempt.verb, attempt.cause = result.Verb.CREATE, result.Cause.ABSENT
    elif not result.controls(graph, live):
        raise result.Obstructed(result.name_conflict(live, graph))
    elif live.metadata.deletion_timestamp:
        return  # its deletion wakes the graph, which recreates it
    elif patch := _correction(live, desired):
        attempt.present = live
        attempt.present = await writer.merge_patch(Adapter, live.key, patch, uid=live.metadata.uid)
        attempt.verb, attempt.cause = result.Verb.UPDATE, result.Cause.INPUTS
    else:
        attempt.present = live


def _correction(live: Adapter, desired: Object) -> Object:
    patch: Object = {}
    ours: Mapping[str, str] = desired["metadata"]["labels"]
    if not ours.items() <= live.metadata.labels.items():
        patch["metadata"] = {"labels": ours}
    if live.spec is None:
        patch["spec"] = desired["spec"]
    elif msgspec.to_builtins(live.spec.dgd_ref) != desired["spec"]["dgdRef"]:
        patch["spec"] = {"dgdRef": desired["spec"]["dgdRef"]}
    return patch


def _deletion(graph: DynamoGraphDeployment, adapter: Adapter) -> result.Change:
    kind, name = adapter.KIND.name, adapter.metadata.name
    service = adapter.spec.dgd_ref.service_name if adapter.spec else ""
    if not service or service in graph.spec.services:
        return result.Change(result.Verb.DELETE, kind, name, result.Cause.UNWANTED)
    return _Orphaned(result.Verb.DELETE, kind, name, result.Cause.UNWANTED, service)
