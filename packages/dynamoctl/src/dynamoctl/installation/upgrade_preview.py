"""Foresee what this version would do to the pods of a cluster, by the functions that its controllers use.

What runs is read once into a cache like theirs. Nothing is written, and everything but the reading is pure.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain
from typing import Any

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.defaults import defaulted
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.provider import is_on_grove
from dynamo_graphs.facts import Facts
from dynamo_graphs.plan.adoption import Origin, is_of_earlier_operator, with_kept_templates
from dynamo_graphs.plan.graph import GraphInputs, plan_graph, with_provider
from dynamo_graphs.plan.templates import WORKLOADS, are_same, units
from dynamo_graphs.render.component import component_objects
from dynamo_graphs.render.graph import graph_objects
from dynamo_graphs.render.provider import is_available
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_graphs.types.istio import VirtualService
from dynamo_graphs.types.kai import Queue
from dynamo_graphs.types.leaderworkerset import LeaderWorkerSet
from dynamo_graphs.types.selected import PodServiceAccount
from dynamo_graphs.types.volcano import PodGroup
from dynamo_graphs.validation.component import component_problems
from dynamo_graphs.validation.graph import graph_problems
from dynamo_graphs.validation.multinode import lacks_orchestrator
from dynamo_operator.graph.read import components_of, service_snapshot
from dynamo_operator.reconcile.adoption import adopted_components, adopted_workloads, set_origin
from dynamo_operator.reconcile.grove import live_templates
from dynamo_operator.reconcile.read import LiveObjects, read_facts, registries_only
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.installation.inventory import Definition
from kube_runtime.apply.drift import content_of
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.store import Store
from kube_runtime.kind import Key, Object, key_of
from kube_runtime.types.apps import Deployment
from kube_runtime.types.core import PullSecret
from kube_runtime.types.meta import OwnerReference, Resource
from kube_runtime.watch.events import Present, Started, Synced

PULL_SECRETS = "type=kubernetes.io/dockerconfigjson"
_OURS: tuple[type[Resource], ...] = (DynamoGraphDeployment, DynamoComponentDeployment)
_OPTIONAL: tuple[type[Resource], ...] = (
    *(PodCliqueSet, PodClique, PodCliqueScalingGroup),
    *(LeaderWorkerSet, PodGroup, Queue, VirtualService),
)
_BUILT_IN: tuple[type[Resource], ...] = (Deployment, PullSecret, PodServiceAccount)
READ = (*_OURS, *_OPTIONAL, *_BUILT_IN)
"""What the pods of graphs depend on."""

_TYPES: Mapping[str, type[Resource]] = {
    each.KIND.name: each for each in (Deployment, LeaderWorkerSet, PodCliqueSet)
}


class Fate(StrEnum):
    """What becomes of the pods of one template."""

    SAME = "this version renders what runs"
    KEPT = "this version would render another template, but keeps the one that runs"
    REPLACED = "this version renders another template"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A unit of pods of a workload, with the workload as it would be applied and as it is rendered."""

    fate: Fate
    unit: str
    wanted: Object
    rendered: Object
    live: Resource


async def cluster(reading: Reading, namespace: str) -> tuple[Cache, dict[Key, Origin]]:
    """What runs in a namespace, "" for all, and which sets of Grove are made from their graphs as they are.

    Raises: ApiError, Unreachable.
    """
    present = {each.metadata.name for each in await reading.all(Definition)}
    stores = [await _store(reading, each, namespace, present) for each in READ]
    cache = Cache(stores)
    origins = {}
    for each in cache.list(PodCliqueSet):
        owner = each.metadata.controller
        if owner is not None and is_of_earlier_operator(each.metadata.annotations):
            graph = Key(each.metadata.namespace, owner.name)
            bodies = [
                await reading.raw(DynamoGraphDeployment.KIND, graph),
                await reading.raw(PodCliqueSet.KIND, each.key),
            ]
            fields = [(body or {}).get("metadata", {}).get("managedFields", ()) for body in bodies]
            origins[each.key] = set_origin(*fields)
    return cache, origins


async def _store(
    reading: Reading, type_: type[Resource], namespace: str, present: set[str]
) -> Store[Any]:
    store = Store[Any](type_)
    if type_ in _OPTIONAL and str(type_.KIND) not in present:
        store.mark_kind_gone()
        return store
    place = namespace if type_.KIND.namespaced else ""
    fields = PULL_SECRETS if type_ is PullSecret else ""
    store.on_watch_event(Started())
    for each in await reading.all(type_, namespace=place, fields=fields):
        store.on_watch_event(
            Present(registries_only(each) if isinstance(each, PullSecret) else each)
        )
    store.on_watch_event(Synced())
    return store


def foreseen(
    cache: Cache, settings: RenderSettings, origins: Mapping[Key, Origin]
) -> Iterator[Foreseen]:
    """What would become of each unit of pods that runs.

    What no controller would touch is left out: graphs and components with problems, or without a provider.
    `origins` are those of the sets of Grove; one that is missing is not of an earlier operator.
    """
    for graph in cache.list(DynamoGraphDeployment):
        for wanted, rendered in _of_graph(graph, cache, settings, origins):
            yield from _fates(wanted, rendered, cache)
    for component in cache.list(DynamoComponentDeployment):
        if component.metadata.controller is None:
            for wanted, rendered in _of_component(component, cache, settings):
                yield from _fates(wanted, rendered, cache)


def _fates(wanted: Object, rendered: Object, cache: Cache) -> Iterator[Foreseen]:
    kind = wanted["kind"]
    live = cache.get(_TYPES[kind], key_of(wanted))
    if live is None:
        return
    theirs, ours = units(content_of(live)), units(rendered)
    for name, unit in units(wanted).items():
        if name in theirs:
            is_same = are_same(kind, ours[name], theirs[name])
            stays = are_same(kind, unit, theirs[name])
            fate = Fate.SAME if is_same else Fate.KEPT if stays else Fate.REPLACED
            yield Foreseen(fate, name, wanted, rendered, live)


_Pairs = Iterator[tuple[Object, Object]]


def _of_graph(
    found: DynamoGraphDeployment,
    cache: Cache,
    settings: RenderSettings,
    origins: Mapping[Key, Origin],
) -> _Pairs:
    facts = _facts(found, cache)
    types = (DynamoComponentDeployment, PodCliqueSet)
    owned = cache.owned_by(found.metadata.uid, types, found.metadata.namespace)
    inputs = GraphInputs(facts, children=frozenset(child.KIND.name for child in owned))
    graph = with_provider(found, inputs)
    provider = graph.metadata.annotations[labels.WORKLOAD_PROVIDER]
    if not is_available(provider, facts) or graph_problems(graph, settings):
        return
    inputs = replace(
        inputs,
        services=service_snapshot(graph, cache),
        components=tuple(chain.from_iterable(components_of(graph, cache).values())),
    )
    plan = plan_graph(found, inputs, settings, datetime.now(UTC))
    rendered = graph_objects(plan.step.graph, facts, settings, plan.rollout.workers)
    if is_on_grove(graph):
        yield from _of_set(rendered, cache, origins)
        return
    for each in adopted_components(rendered, _live(rendered, cache)):
        if each["kind"] == DynamoComponentDeployment.KIND.name:
            yield from _of_component(_read_back(each, graph), cache, settings)


def _of_set(rendered: Sequence[Object], cache: Cache, origins: Mapping[Key, Origin]) -> _Pairs:
    for each in rendered:
        live = cache.get(PodCliqueSet, key_of(each)) if each["kind"] in WORKLOADS else None
        if live is not None:
            origin = origins.get(live.key, Origin.OUTDATED)
            yield with_kept_templates(each, content_of(live), origin), each


def _of_component(
    component: DynamoComponentDeployment, cache: Cache, settings: RenderSettings
) -> _Pairs:
    facts = read_facts(component.metadata.namespace, cache)
    if component_problems(component, settings) or lacks_orchestrator(component.spec, facts):
        return
    rendered = tuple(component_objects(component, facts, settings))
    wanted = tuple(adopted_workloads(component, rendered, _live(rendered, cache)))
    pairs = zip(wanted, rendered, strict=True)
    yield from (pair for pair in pairs if pair[0]["kind"] in WORKLOADS)


def _live(rendered: Sequence[Object], cache: Cache) -> LiveObjects:
    """What runs under the names of rendered objects. A component that is rendered here has no uid yet."""
    types: Mapping[str, type[Resource]] = {
        **_TYPES,
        DynamoComponentDeployment.KIND.name: DynamoComponentDeployment,
    }
    keys = [(each["kind"], key_of(each)) for each in rendered if each["kind"] in types]
    present = ((kind, key, cache.get(types[kind], key)) for kind, key in keys)
    return {(kind, key): live for kind, key, live in present if live is not None}


def _facts(graph: DynamoGraphDeployment, cache: Cache) -> Facts:
    grove = (PodCliqueSet, PodClique, PodCliqueScalingGroup)
    return replace(
        read_facts(graph.metadata.namespace, cache),
        grove_served=all(cache.serves(each) for each in grove),
        kai_served=cache.serves(Queue),
        gang=live_templates(graph, cache),
    )


def _read_back(component: Object, graph: DynamoGraphDeployment) -> DynamoComponentDeployment:
    """A component as its controller reads it after it was applied."""
    found = msgspec.convert(defaulted(component), DynamoComponentDeployment)
    owner = OwnerReference(
        graph.KIND.name, graph.metadata.name, uid=graph.metadata.uid, controller=True
    )
    annotations = {
        key: value
        for key, value in found.metadata.annotations.items()
        if key != labels.LAST_APPLIED_GENERATION
    }
    metadata = msgspec.structs.replace(
        found.metadata, owner_references=(owner,), annotations=annotations
    )
    return msgspec.structs.replace(found, metadata=metadata)
