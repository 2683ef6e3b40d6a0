"""The scaling adapters of a graph, for its controller: create them, reconcile them, read their replicas.

The operator must never own an adapter's replicas. An adapter starts with the replicas that the service has,
and from then on `spec.replicas` belongs to the client that scales: nothing here writes it again.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import msgspec

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.roles import has_adapter
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.render.scaling import adapter_object
from dynamo_graphs.status.scaling import adapter_replicas, replicas_of
from dynamo_operator.graph.snapshot import service_snapshot
from kube_runtime.apply.ownership import controller_reference
from kube_runtime.apply.result import (
    Applied,
    Attempt,
    Blocked,
    Change,
    Obstacle,
    Obstructed,
    Verb,
    controls,
    each_applied,
    merge,
    name_conflict,
    rejected,
)
from kube_runtime.apply.suppression import Target, WriteSuppression, digest_of
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.errors import Forbidden, Invalid
from kube_runtime.kind import Key, Object, key_of
from kube_runtime.types.meta import Resource, condition


@dataclass(frozen=True, slots=True)
class Adapters:
    """What was done about a graph's adapters, and the replicas that they want, by service."""

    applied: Applied
    replicas: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class _Orphaned(Change):
    """The deletion of the adapter of a service that is not in the graph any more."""

    service: str = ""

    @property
    def reason(self) -> str:
        return "AdapterDeleted"

    @property
    def message(self) -> str:
        return f"Deleted orphaned scaling adapter {self.name} for removed service {self.service}"


async def keep_adapters(
    graph: DynamoGraphDeployment, cache: Cache, writer: Writer, restraint: WriteSuppression
) -> Adapters:
    """Make what is missing and delete what is not wanted any more.

    A service whose adapter is paused, or could not be made, is not in the result: its own number counts.

    Raises:
        Conflict: another client created or changed one a moment ago; the caller retries at once.
        OperatorError: the API server could not be reached or failed.
    """
    if graph.metadata.deletion_timestamp:
        return Adapters(Applied(), {})
    wanted = {each["metadata"]["name"]: each for each in _wanted(graph, cache)}
    types = (DynamoGraphDeploymentScalingAdapter,)
    made = await each_applied(
        tuple(wanted.values()), types, partial(_attempt, graph, cache, writer, restraint)
    )
    orphans = [each for each in _made_by(graph, cache) if each.metadata.name not in wanted]
    if orphans:
        await writer.ensure_newest(graph)
    changes, blocked = list[Change](), list[Blocked]()
    for adapter in orphans:
        try:
            await writer.delete(*types, adapter.key, uid=adapter.metadata.uid)
        except (Invalid, Forbidden) as error:
            blocked.append(rejected(adapter.KIND.name, adapter.metadata.name, error))
        else:
            changes.append(_deletion(graph, adapter))
    applied = merge((made, Applied((), tuple(changes), tuple(blocked))))
    return Adapters(applied, dict(_numbers(graph, made.objects)))


def adapter_watch() -> Watches:
    """What wakes a graph when one of its adapters, or one in the way, is changed or deleted."""

    def keys(changed: DynamoGraphDeploymentScalingAdapter) -> Iterator[Key]:
        namespace, controller = changed.metadata.namespace, changed.metadata.controller
        if changed.spec is not None:
            yield Key(namespace, changed.spec.dgd_ref.name)
        if controller is not None and controller.kind == DynamoGraphDeployment.KIND.name:
            yield Key(namespace, controller.name)

    return Watches(DynamoGraphDeploymentScalingAdapter, keys)


def _made_by(
    graph: DynamoGraphDeployment, cache: Cache
) -> Iterator[DynamoGraphDeploymentScalingAdapter]:
    """The adapters that the graph controls and that are not being deleted."""
    uid, namespace = graph.metadata.uid, graph.metadata.namespace
    for each in cache.owned_by(uid, (DynamoGraphDeploymentScalingAdapter,), namespace):
        is_ours = controls(graph, each) and not each.metadata.deletion_timestamp
        if is_ours and isinstance(each, DynamoGraphDeploymentScalingAdapter):
            yield each


def _numbers(
    graph: DynamoGraphDeployment, adapters: Iterable[Resource]
) -> Iterator[tuple[str, int]]:
    for each in adapters:
        if isinstance(each, DynamoGraphDeploymentScalingAdapter) and each.spec is not None:
            key = each.spec.dgd_ref.service_name
            said = adapter_replicas(each, replicas_of(graph, key))
            if said is not None:
                yield key, said


def _wanted(graph: DynamoGraphDeployment, cache: Cache) -> Iterator[Object]:
    """The desired adapter of each service that has one enabled."""
    owners = {"ownerReferences": [controller_reference(graph)]}
    for key, service in sorted(graph.spec.services.items()):
        if has_adapter(service):
            found = adapter_object(graph, key, _first_number(graph, key, cache))
            yield {**found, "metadata": found["metadata"] | owners}


def _first_number(graph: DynamoGraphDeployment, key: str, cache: Cache) -> int:
    """What the service has, so that nothing changes by making the adapter.

    The graph's factor does not count for services with an adapter; a service that has grown by it stays so.
    """
    live = service_snapshot(graph, cache).get(key)
    is_suspended = condition(graph.status.conditions, "Suspended")
    if live is None or not live.exists or (is_suspended and is_suspended.status != "False"):
        return replicas_of(graph, key)
    return live.wanted


async def _attempt(
    graph: DynamoGraphDeployment,
    cache: Cache,
    writer: Writer,
    restraint: WriteSuppression,
    attempt: Attempt,
) -> None:
    wanted, type_ = attempt.wanted, DynamoGraphDeploymentScalingAdapter
    key = key_of(wanted)
    live = cache.get(type_, key)
    if live is None and (unreadable := cache.broken(type_, key)):
        text = f"cannot read {type_.KIND.name} {key.name}: {unreadable.message}"
        raise Obstructed(Blocked(Obstacle.REJECTED, type_.KIND.name, key.name, text))
    if live is None:
        wish = Target(graph.metadata.uid, type_.KIND.name, key)
        with restraint.attempting(wish, digest_of(wanted), ""):
            attempt.present = await writer.create(type_, wanted)
        attempt.verb = Verb.CREATE
    elif not controls(graph, live):
        raise Obstructed(name_conflict(live, graph))
    elif live.metadata.deletion_timestamp:
        return  # its removal wakes the graph, which then recreates it
    elif patch := _correction(live, wanted):
        attempt.present = await writer.merge_patch(type_, live.key, patch, uid=live.metadata.uid)
        attempt.verb = Verb.UPDATE
    else:
        attempt.present = live


def _correction(live: DynamoGraphDeploymentScalingAdapter, wanted: Object) -> Object:
    """The patch of what is ours in an adapter, its labels and whom it scales; empty when all is right."""
    patch: Object = {}
    ours: Mapping[str, str] = wanted["metadata"]["labels"]
    if not ours.items() <= live.metadata.labels.items():
        patch["metadata"] = {"labels": ours}
    if live.spec is None:
        patch["spec"] = wanted["spec"]
    elif msgspec.to_builtins(live.spec.dgd_ref) != wanted["spec"]["dgdRef"]:
        patch["spec"] = {"dgdRef": wanted["spec"]["dgdRef"]}
    return patch


def _deletion(graph: DynamoGraphDeployment, adapter: DynamoGraphDeploymentScalingAdapter) -> Change:
    kind, name = adapter.KIND.name, adapter.metadata.name
    service = adapter.spec.dgd_ref.service_name if adapter.spec else ""
    if not service or service in graph.spec.services:
        return Change(Verb.DELETE, kind, name)
    return _Orphaned(Verb.DELETE, kind, name, service)
