"""Preview what an upgrade to this version, or a migration from another operator, would change: CRDs and pods.

CRDs are applied as dry runs. Pod templates are rendered by the controllers' own functions, and a change is
verified with a dry run, because only the API server adds defaults. The settings are those of the running
operator: effects of changed chart values are not previewed.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import StrEnum
from functools import partial
from itertools import chain
from typing import Any

from msgspec.structs import replace

from dynamo_graphs.ages import listed
from dynamo_graphs.offline import prepared
from dynamo_graphs.reader import Reading
from dynamo_operator import labels
from dynamo_operator.component import decide as components
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.plan import ComponentInputs
from dynamo_operator.component.read import live_objects, read_facts, serves
from dynamo_operator.component.render import component_parts
from dynamo_operator.component.service import component_of
from dynamo_operator.component.validate import component_problems
from dynamo_operator.crds import RESOURCES, custom_resource_definition, defaulted
from dynamo_operator.features.decision import GraphInputs
from dynamo_operator.features.grove.read import adopted_set, live_templates
from dynamo_operator.graph import decide as graphs
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.read import components_of, service_snapshot
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.names import on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared import cluster
from dynamo_operator.shared.templates import WORKLOADS, are_same, units
from dynamo_operator.shared.transforms import registries_only
from dynamo_operator.takeover.plan import Origin, is_of_earlier_operator, set_origin
from dynamoctl.installation.checks import Finding, failed, ok
from kube_runtime.cache.store import Cache, Store
from kube_runtime.cache.watch import Present, Started, Synced
from kube_runtime.crd import CONVERSION_PATH, ConversionWebhook
from kube_runtime.errors import ApiError
from kube_runtime.types.kinds import Definition, Deployment, Pod
from kube_runtime.types.meta import Key, Object, Resource, content_of, key_of

PULL_SECRETS = "type=kubernetes.io/dockerconfigjson"
_OURS: tuple[type[Resource], ...] = (DynamoGraphDeployment, DynamoComponentDeployment)
_OPTIONAL: tuple[type[Resource], ...] = (
    *(cluster.PodCliqueSet, cluster.PodClique, cluster.PodCliqueScalingGroup),
    *(cluster.LeaderWorkerSet, cluster.PodGroup, cluster.Queue, cluster.VirtualService),
    cluster.InferencePool,
)
_BUILT_IN: tuple[type[Resource], ...] = (Deployment, cluster.PullSecret, cluster.PodServiceAccount)
READ = (*_OURS, *_OPTIONAL, *_BUILT_IN)
"""The kinds that the pods of graphs depend on."""

_TYPES: Mapping[str, type[Resource]] = {
    type_.KIND.name: type_ for type_ in (Deployment, cluster.LeaderWorkerSet, cluster.PodCliqueSet)
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


# The live objects are read once into a cache like the controllers'; `foreseen` is pure and writes nothing.
async def live_cache(reading: Reading, namespace: str) -> tuple[Cache, dict[Key, Origin]]:
    """The live objects of a namespace ("": of all), and the origins of PodCliqueSets of an earlier operator.

    Raises: ApiError, Unreachable.
    """
    present = {definition.metadata.name for definition in await reading.all(Definition)}
    stores = [await _store(reading, type_, namespace, present) for type_ in READ]
    cache = Cache(stores)
    origins = {}
    for clique_set in cache.list(cluster.PodCliqueSet):
        owner = clique_set.metadata.controller
        if owner is not None and is_of_earlier_operator(clique_set.metadata.annotations):
            graph = Key(clique_set.metadata.namespace, owner.name)
            bodies = [
                await reading.raw(reading.client.stored(DynamoGraphDeployment.KIND), graph),
                await reading.raw(cluster.PodCliqueSet.KIND, clique_set.key),
            ]
            fields = [(body or {}).get("metadata", {}).get("managedFields", ()) for body in bodies]
            origins[clique_set.key] = set_origin(*fields)
    return cache, origins


async def _store(reading: Reading, type_: type[Resource], namespace: str, present: set[str]) -> Store[Any]:
    store = Store[Any](type_)
    if type_ in _OPTIONAL and str(type_.KIND) not in present:
        store.mark_kind_gone()
        return store
    place = namespace if type_.KIND.namespaced else ""
    fields = PULL_SECRETS if type_ is cluster.PullSecret else ""
    store.on_watch_event(Started())
    for live in await reading.all(type_, namespace=place, fields=fields):
        store.on_watch_event(Present(registries_only(live) if isinstance(live, cluster.PullSecret) else live))
    store.on_watch_event(Synced())
    return store


def foreseen(cache: Cache, settings: RenderSettings, origins: Mapping[Key, Origin]) -> Iterator[Foreseen]:
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


_ASSUMED = (Pod(),)
"""The preview reads no pods, and one that runs is never restarted for a pull secret."""

_Pairs = Iterator[tuple[Object, Object]]


def _of_graph(
    stored: DynamoGraphDeployment, cache: Cache, settings: RenderSettings, origins: Mapping[Key, Origin]
) -> _Pairs:
    facts = replace(
        read_facts(stored.metadata.namespace, cache),
        grove_served=serves(cache, cluster.GROVE),
        kai_served=serves(cache, cluster.KAI),
    )
    owned = (DynamoComponentDeployment, cluster.PodCliqueSet, cluster.InferencePool)
    live = live_objects(stored, cache, owned)
    provider = graphs.workload_provider(stored, facts, {kind for kind, _ in live})
    set_name = adopted_set(stored, live) if facts.grove_served else ""
    graph = on_provider(stored, provider, set_name)
    facts = replace(facts, live_templates=live_templates(graph, cache))
    inputs = GraphInputs(
        replace(prepared(stored, facts, provider), grove_served=facts.grove_served),
        live,
        provider,
        services=service_snapshot(graph, cache),
        components=tuple(chain.from_iterable(components_of(graph, cache).values())),
        pods=dict.fromkeys(graph.spec.services, _ASSUMED),
        present_set=set_name,
        set_origin=next(filter(None, (origins.get(key) for _, key in live)), Origin.OUTDATED),
    )
    find = partial(graph_problems, settings=settings)
    decision = graphs.decide(stored, inputs, settings, datetime.now(UTC), find)
    if decision.stop:
        return
    rendered = {(body["kind"], key_of(body)): body for body in decision.rendered}
    for body in decision.objects:
        if body["kind"] in WORKLOADS:
            yield body, rendered[body["kind"], key_of(body)]
        elif body["kind"] == DynamoComponentDeployment.KIND.name:
            metadata = body["metadata"]
            annotations = {**metadata.get("annotations", {})}
            annotations.pop(labels.LAST_APPLIED_GENERATION, None)
            stored_body = {**body, "metadata": {**metadata, "annotations": annotations}}
            component = component_of(graph, defaulted(stored_body))
            yield from _of_component(component, cache, settings)


def _of_component(component: DynamoComponentDeployment, cache: Cache, settings: RenderSettings) -> _Pairs:
    facts = read_facts(component.metadata.namespace, cache)
    if component_problems(component, settings):
        return
    around, workloads = component_parts(component, facts, settings)
    live = _live([*around, *workloads], cache)
    inputs = ComponentInputs(facts, live, pods=_ASSUMED)
    decision = components.decide(component, inputs, settings, lambda _: ())
    for desired, rendered in zip(decision.workloads, decision.rendered, strict=True):
        if desired["kind"] in WORKLOADS:  # not a PodGroup
            yield desired, rendered


def _live(rendered: Sequence[Object], cache: Cache) -> cluster.LiveObjects:
    """The live objects with the names of rendered ones. A component that is rendered here has no uid yet."""
    types: Mapping[str, type[Resource]] = {
        **_TYPES,
        DynamoComponentDeployment.KIND.name: DynamoComponentDeployment,
    }
    keys = [(body["kind"], key_of(body)) for body in rendered if body["kind"] in types]
    present = ((kind, key, cache.get(types[kind], key)) for kind, key in keys)
    return {(kind, key): live for kind, key, live in present if live is not None}


_NAMED_MOST = 20


async def definitions(reading: Reading) -> Finding:
    """Which CRDs an upgrade changes, and whether the API server accepts them."""
    changed: list[str] = []
    for resource in RESOURCES:
        name = str(resource.KIND)
        live = await reading.raw(Definition.KIND, Key("", name))
        try:
            after = await reading.applied(Definition.KIND, _upgraded(resource, live))
        except ApiError as error:
            return failed(f"the API server refuses {name}: {error.message}")
        if live is None or live["spec"] != after["spec"]:
            changed.append(name)
    return ok(f"changes: {', '.join(changed)}" if changed else "nothing changes")


def _upgraded(resource: type[Resource], live: Object | None) -> Object:
    """The CRD as an upgrade applies it: what is stored stays, and whether a webhook converts."""
    spec: Object = live["spec"] if live else {}
    stored = next((version["name"] for version in spec.get("versions", ()) if version["storage"]), "")
    client: Object = spec.get("conversion", {}).get("webhook", {}).get("clientConfig", {})
    service: Object = client.get("service", {})
    if not client:
        return custom_resource_definition(resource, stored=stored)
    path = service.get("path", CONVERSION_PATH)
    webhook = ConversionWebhook(
        service.get("namespace", ""), service.get("name", ""), path, url=client.get("url", "")
    )
    return custom_resource_definition(resource, webhook, stored)


async def pods(reading: Reading, settings: RenderSettings, namespace: str) -> Finding:
    """The pods of a namespace ("": of all) that this version would replace; there must be none."""
    cache, origins = await live_cache(reading, namespace)
    templates = list(foreseen(cache, settings, origins))
    replaced = [
        template
        for template in templates
        if template.fate is Fate.REPLACED and await _is_changed(reading, template)
    ]
    kept = [template for template in templates if template.fate is Fate.KEPT]
    rest = f"; {len(kept)} keep their template until they are edited: {_names(kept)}" if kept else ""
    if not replaced:
        return ok(f"no pods of {len(templates)} pod templates would be replaced{rest}")
    remedy = "dynamoctl render shows the new templates; see docs/upgrade-from-go.md"
    return failed(f"pods would be replaced: {_names(replaced)}{rest}", remedy)


def _names(templates: list[Foreseen]) -> str:
    names = dict.fromkeys(
        f"{it.live.key}/{it.unit}" if it.desired["kind"] == "PodCliqueSet" else str(it.live.key)
        for it in templates
    )
    return listed([*names], _NAMED_MOST)


async def _is_changed(reading: Reading, template: Foreseen) -> bool:
    """A dry run keeps fields of other managers: it proves nothing for workloads of an earlier operator."""
    if is_of_earlier_operator(template.live.metadata.annotations):
        return True
    before = await reading.raw(template.live.KIND, template.live.key)
    if before is None:
        return False
    after = await reading.applied(template.live.KIND, template.desired)
    return units(before).get(template.unit) != units(after).get(template.unit)
