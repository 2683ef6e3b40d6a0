"""Preview what this version would do to the pods of a cluster, with the functions of its controllers.

The live objects are read once into a cache like theirs; the rest is pure and writes nothing.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from itertools import chain
from typing import Any

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.annotations import is_on_grove
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.crd import defaulted
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.names import grove_names_of
from dynamo_graphs.facts import Facts, NamespaceDefaults
from dynamo_graphs.plan.adoption import Origin, is_of_earlier_operator, with_kept_templates
from dynamo_graphs.plan.graph import GraphInputs, plan_graph
from dynamo_graphs.plan.provider import is_available, with_provider
from dynamo_graphs.plan.templates import WORKLOADS, are_same, units
from dynamo_graphs.render.component import component_objects
from dynamo_graphs.render.graph import graph_objects
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.types.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from dynamo_graphs.types.optional_apis import LeaderWorkerSet, PodGroup, Queue, VirtualService
from dynamo_graphs.types.secrets import PullSecret
from dynamo_graphs.types.selected import PodServiceAccount
from dynamo_graphs.validation.component import component_problems
from dynamo_graphs.validation.graph import graph_problems
from dynamo_graphs.validation.multinode import lacks_orchestrator
from dynamo_operator.graph.read import components_of, service_snapshot
from dynamo_operator.reconcile.adoption import adopted_components, adopted_workloads, set_origin
from dynamo_operator.reconcile.grove import live_templates
from dynamo_operator.reconcile.namespace_defaults import (
    Member,
    component_member,
    grove_members,
    kept_defaults,
    still_kept,
)
from dynamo_operator.reconcile.read import LiveObjects, read_facts
from dynamo_operator.reconcile.transforms import registries_only
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.installation.kinds import Definition
from kube_runtime.apply.drift import content_of
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.store import Store
from kube_runtime.kind import Key, Object, key_of
from kube_runtime.types.apps import Deployment
from kube_runtime.types.core import Pod
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
"""The kinds that the pods of graphs depend on."""

_TYPES: Mapping[str, type[Resource]] = {
    type_.KIND.name: type_ for type_ in (Deployment, LeaderWorkerSet, PodCliqueSet)
}


class Fate(StrEnum):
    """What happens to the pods of one template."""

    SAME = "this version renders what runs"
    KEPT = "this version would render another template, but keeps the one that runs"
    REPLACED = "this version renders another template"


@dataclass(frozen=True, slots=True)
class Foreseen:
    """A pod template of a workload, with the workload as it would be applied, as rendered, and live."""

    fate: Fate
    unit: str
    desired: Object
    rendered: Object
    live: Resource


async def live_cache(reading: Reading, namespace: str) -> tuple[Cache, dict[Key, Origin]]:
    """The live objects of a namespace ("": of all), and the origins of PodCliqueSets of an earlier operator.

    Raises: ApiError, Unreachable.
    """
    present = {definition.metadata.name for definition in await reading.all(Definition)}
    stores = [await _store(reading, type_, namespace, present) for type_ in READ]
    cache = Cache(stores)
    origins = {}
    for clique_set in cache.list(PodCliqueSet):
        owner = clique_set.metadata.controller
        if owner is not None and is_of_earlier_operator(clique_set.metadata.annotations):
            graph = Key(clique_set.metadata.namespace, owner.name)
            bodies = [
                await reading.raw(DynamoGraphDeployment.KIND, graph),
                await reading.raw(PodCliqueSet.KIND, clique_set.key),
            ]
            fields = [(body or {}).get("metadata", {}).get("managedFields", ()) for body in bodies]
            origins[clique_set.key] = set_origin(*fields)
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
    for live in await reading.all(type_, namespace=place, fields=fields):
        store.on_watch_event(
            Present(registries_only(live) if isinstance(live, PullSecret) else live)
        )
    store.on_watch_event(Synced())
    return store


def foreseen(
    cache: Cache, settings: RenderSettings, origins: Mapping[Key, Origin]
) -> Iterator[Foreseen]:
    """What would happen to each live pod template.

    Graphs and components that no controller would touch are left out: invalid ones, and those without a
    provider. `origins` are those of PodCliqueSets of an earlier operator.
    """
    for graph in cache.list(DynamoGraphDeployment):
        for desired, rendered in _of_graph(graph, cache, settings, origins):
            yield from _fates(desired, rendered, cache)
    for component in cache.list(DynamoComponentDeployment):
        if component.metadata.controller is None:
            for desired, rendered in _of_component(component, cache, settings):
                yield from _fates(desired, rendered, cache)


def _fates(desired: Object, rendered: Object, cache: Cache) -> Iterator[Foreseen]:
    kind = desired["kind"]
    live = cache.get(_TYPES[kind], key_of(desired))
    if live is None:
        return
    theirs, ours = units(content_of(live)), units(rendered)
    for name, unit in units(desired).items():
        if name in theirs:
            is_same = are_same(kind, ours[name], theirs[name])
            stays = are_same(kind, unit, theirs[name])
            fate = Fate.SAME if is_same else Fate.KEPT if stays else Fate.REPLACED
            yield Foreseen(fate, name, desired, rendered, live)


_Pairs = Iterator[tuple[Object, Object]]


def _of_graph(
    stored: DynamoGraphDeployment,
    cache: Cache,
    settings: RenderSettings,
    origins: Mapping[Key, Origin],
) -> _Pairs:
    facts = _facts(stored, cache)
    types = (DynamoComponentDeployment, PodCliqueSet)
    owned = cache.owned_by(stored.metadata.uid, types, stored.metadata.namespace)
    inputs = GraphInputs(facts, children=frozenset(child.KIND.name for child in owned))
    graph = with_provider(stored, inputs.facts, inputs.children)
    provider = graph.metadata.annotations[labels.WORKLOAD_PROVIDER]
    if not is_available(provider, facts) or graph_problems(graph, settings):
        return
    inputs = replace(
        inputs,
        services=service_snapshot(graph, cache),
        components=tuple(chain.from_iterable(components_of(graph, cache).values())),
    )
    plan = plan_graph(stored, inputs, settings, datetime.now(UTC))
    if is_on_grove(graph):
        yield from _of_set(plan.step.graph, facts, settings, cache, origins)
        return
    rendered = graph_objects(plan.step.graph, facts, settings, plan.rollout.workers)
    for body in adopted_components(rendered, _live(rendered, cache)):
        if body["kind"] == DynamoComponentDeployment.KIND.name:
            yield from _of_component(_read_back(body, graph), cache, settings)


def _of_set(
    graph: DynamoGraphDeployment,
    facts: Facts,
    settings: RenderSettings,
    cache: Cache,
    origins: Mapping[Key, Origin],
) -> _Pairs:
    name = grove_names_of(graph).set
    present = cache.get(PodCliqueSet, Key(graph.metadata.namespace, name))
    if present is None:
        return
    live, origin = {(present.KIND.name, present.key): present}, origins.get(present.key)

    def pairs(running: Mapping[str, NamespaceDefaults]) -> list[tuple[Object, Object]]:
        rendered = graph_objects(graph, replace(facts, running_defaults=running), settings)
        return [
            (with_kept_templates(body, content_of(present), origin or Origin.OUTDATED), body)
            for body in rendered
            if body["kind"] in WORKLOADS
        ]

    members = grove_members(graph, facts, settings, _assumed_pods(graph.spec.services))
    yield from _as_running(pairs, members, live, facts)


def _of_component(
    component: DynamoComponentDeployment, cache: Cache, settings: RenderSettings
) -> _Pairs:
    facts = read_facts(component.metadata.namespace, cache)
    if component_problems(component, settings) or lacks_orchestrator(component.spec, facts):
        return
    live = _live(component_objects(component, facts, settings), cache)

    def pairs(running: Mapping[str, NamespaceDefaults]) -> list[tuple[Object, Object]]:
        objects = component_objects(component, replace(facts, running_defaults=running), settings)
        rendered = [body for body in objects if body["kind"] in WORKLOADS]
        return list(zip(adopted_workloads(component, rendered, live), rendered, strict=True))

    name = component.metadata.name
    members = component_member(component, facts, settings, _assumed_pods([name])[name])
    yield from _as_running(pairs, members, live, facts)


def _as_running(
    pairs: Callable[[Mapping[str, NamespaceDefaults]], list[tuple[Object, Object]]],
    members: Mapping[str, Member],
    live: LiveObjects,
    facts: Facts,
) -> list[tuple[Object, Object]]:
    """The workloads as applied and as rendered, with what running pods keep from their namespace."""
    kept = kept_defaults(members, live, facts)
    first = pairs(kept)
    still = still_kept(kept, members, [desired for desired, _ in first], live)
    return first if still == kept else pairs(still)


def _assumed_pods(names: Iterable[str]) -> dict[str, tuple[Pod, ...]]:
    """A pod for each: the preview reads none, and one that runs is never restarted for a pull secret."""
    return {name: (Pod(),) for name in names}


def _live(rendered: Sequence[Object], cache: Cache) -> LiveObjects:
    """The live objects with the names of rendered ones. A component that is rendered here has no uid yet."""
    types: Mapping[str, type[Resource]] = {
        **_TYPES,
        DynamoComponentDeployment.KIND.name: DynamoComponentDeployment,
    }
    keys = [(body["kind"], key_of(body)) for body in rendered if body["kind"] in types]
    present = ((kind, key, cache.get(types[kind], key)) for kind, key in keys)
    return {(kind, key): live for kind, key, live in present if live is not None}


def _facts(graph: DynamoGraphDeployment, cache: Cache) -> Facts:
    grove = (PodCliqueSet, PodClique, PodCliqueScalingGroup)
    return replace(
        read_facts(graph.metadata.namespace, cache),
        grove_served=all(cache.serves(type_) for type_ in grove),
        kai_served=cache.serves(Queue),
        live_templates=live_templates(graph, cache),
    )


def _read_back(component: Object, graph: DynamoGraphDeployment) -> DynamoComponentDeployment:
    """A component as its controller reads it after it was applied."""
    stored = msgspec.convert(defaulted(component), DynamoComponentDeployment)
    owner = OwnerReference(
        graph.KIND.name, graph.metadata.name, uid=graph.metadata.uid, controller=True
    )
    annotations = {
        key: value
        for key, value in stored.metadata.annotations.items()
        if key != labels.LAST_APPLIED_GENERATION
    }
    metadata = msgspec.structs.replace(
        stored.metadata, owner_references=(owner,), annotations=annotations
    )
    return msgspec.structs.replace(stored, metadata=metadata)
