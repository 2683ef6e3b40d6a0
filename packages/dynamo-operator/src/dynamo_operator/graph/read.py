"""Read everything that one reconcile of a graph depends on, once."""

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain

from msgspec.structs import replace

from dynamo_operator import labels, names
from dynamo_operator.component.api import GROUP, DynamoComponentDeployment, has_adapter
from dynamo_operator.component.framework import needs_ssh_keys
from dynamo_operator.component.objects import restart_id
from dynamo_operator.component.read import PodIndex, is_edited, live_objects, read_facts, serves, service_of
from dynamo_operator.component.service import Observed, ServiceObserved
from dynamo_operator.features.decision import AdapterInputs, GraphInputs
from dynamo_operator.features.grove.read import adopted_set, grove_members, live_templates
from dynamo_operator.features.grove.status import GroveMember, is_settled
from dynamo_operator.features.rollouts.revisions import is_managed
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter as Adapter
from dynamo_operator.features.scaling.controller import read_adapters
from dynamo_operator.features.ssh_keys import missing_ssh_keys, ssh_key_copies, ssh_key_types, ssh_keys_target
from dynamo_operator.graph.api import DynamoGraphDeployment, grove_names_of
from dynamo_operator.graph.decide import workload_provider
from dynamo_operator.graph.status import is_current, is_ready
from dynamo_operator.names import LEADER_SUFFIX, is_on_grove, on_provider, workload_name
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared import cluster
from dynamo_operator.takeover.plan import Origin, is_of_earlier_operator, set_origin
from kube_runtime.apply.applier import Applier
from kube_runtime.apply.result import controls
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache, Change
from kube_runtime.client.client import Client
from kube_runtime.errors import NotFound
from kube_runtime.types.kinds import ControllerRevision, PersistentVolumeClaim, Pod
from kube_runtime.types.meta import Key, R, Resource, from_json

_PRESERVED = f"{GROUP}/dgd-spec"
_ENDED = frozenset(("Succeeded", "Failed"))
"""Phases of pods that hold no resources any more, although the objects exist."""


async def read_graph(
    graph: DynamoGraphDeployment,
    cache: Cache,
    pods: PodIndex,
    settings: RenderSettings,
    applier: Applier,
    owns: Iterable[type[Resource]],
) -> GraphInputs:
    """Read the inputs of a graph, which controls the kinds `owns`.

    All is in the cache, but for the origin of an earlier operator's set.

    Raises:
        OperatorError: that origin could not be read.
    """
    suppression = applier.suppression
    live = live_objects(graph, cache, owns)
    namespace, grove_served = graph.metadata.namespace, serves(cache, cluster.GROVE)
    facts = replace(
        read_facts(namespace, cache),
        grove_served=grove_served,
        kai_served=serves(cache, cluster.KAI),
        inference_pools_served=serves(cache, cluster.INFERENCE_POOL),
        kai_queues=frozenset(queue.metadata.name for queue in cache.list(cluster.Queue)),
        claims=cache.derived(
            ("names of claims", namespace),
            (PersistentVolumeClaim,),
            lambda: frozenset(it.metadata.name for it in cache.list(PersistentVolumeClaim, namespace)),
        ),
    )
    if settings.mpi_secret_name and needs_ssh_keys(graph):
        absent = missing_ssh_keys(graph, cache, settings)
        target = ssh_keys_target(Key(namespace, settings.mpi_secret_name))
        refusal = suppression.refusal(target) if absent else None
        text = refusal.message if refusal else ""
        facts = replace(facts, missing_ssh_keys=absent, ssh_keys_refusal=text)
    provider = workload_provider(graph, facts, {kind for kind, _ in live})
    set_name = adopted_set(graph, live) if grove_served else ""
    graph = on_provider(graph, provider, set_name)
    if grove_served:
        facts = replace(facts, live_templates=live_templates(graph, cache))
    grove: dict[str, GroveMember] = {}
    services: Observed = {}
    components: tuple[DynamoComponentDeployment, ...] = ()
    if live:
        services = service_snapshot(graph, cache)
        components = tuple(chain.from_iterable(components_of(graph, cache).values()))
    if is_on_grove(graph):
        grove = grove_members(graph, cache)
    has_adapters = any(map(has_adapter, graph.spec.services.values())) or bool(
        cache.owned_by(graph.metadata.uid, (Adapter,), graph.metadata.namespace)
    )
    # The author wrote the stored version, unless conversion has preserved fields of the other.
    client = applier.writer.client
    is_stored_later = client.stored(graph.KIND) != graph.KIND
    inputs = GraphInputs(
        facts,
        live,
        provider,
        services=services,
        components=components,
        former=tuple(_controlled(graph, ControllerRevision, cache)),
        leaving=leaving_pods(components, pods) if components else {},
        adapters=read_adapters(graph, cache, suppression) if has_adapters else AdapterInputs(),
        members=grove,
        pods={key: pods.of_service(*graph.key, key) for key in grove},
        ssh_keys=ssh_key_copies(graph, cache, settings) if settings.mpi_secret_name else (),
        ssh_key_types=ssh_key_types(cache) if settings.mpi_secret_name else (),
        present_set=set_name,
        in_v1beta1=is_stored_later != (_PRESERVED in graph.metadata.annotations),
    )
    if not grove:
        return inputs
    # Last: what the cache has may be newer after it.
    return replace(inputs, set_origin=await read_set_origin(graph, live, client))


def _controlled(graph: DynamoGraphDeployment, type_: type[R], cache: Cache) -> Iterator[R]:
    for child in cache.owned_by(graph.metadata.uid, (type_,), graph.metadata.namespace):
        is_kept = controls(graph, child) and not child.metadata.deletion_timestamp
        if isinstance(child, type_) and is_kept:
            yield child


def leaving_pods(components: Iterable[DynamoComponentDeployment], pods: PodIndex) -> dict[str, int]:
    """The number of pods that have not ended, terminating ones included, by component.

    Pods of groups are not counted: each group is a workload of its own, named after its replica.
    """
    return {
        name: sum(pod.status.phase not in _ENDED for pod in pods.of_workload(namespace, workload_name(name)))
        for namespace, name in (component.key for component in components)
    }


def service_snapshot(graph: DynamoGraphDeployment, cache: Cache) -> Observed:
    """The observed state of the services that have a workload. `graph` is on its provider."""
    if is_on_grove(graph):
        return _services_on_grove(graph, cache)
    return {key: _observed(parts) for key, parts in components_of(graph, cache).items()}


def components_of(
    graph: DynamoGraphDeployment, cache: Cache
) -> Mapping[str, list[DynamoComponentDeployment]]:
    """The components that the graph controls and that are not being deleted, by service."""
    by_service: dict[str, list[DynamoComponentDeployment]] = defaultdict(list)
    for component in _controlled(graph, DynamoComponentDeployment, cache):
        by_service[component.spec.service_name or ""].append(component)
    return by_service


def _observed(components: Sequence[DynamoComponentDeployment]) -> ServiceObserved:
    """The state of a service; it has several components while its workers are replaced."""
    restarts = {restart_id(component.spec) for component in components}
    counts = [count for component in components if (count := component.status.service) is not None]
    return ServiceObserved(
        exists=True,
        restart=restarts.pop() if len(restarts) == 1 else "",
        is_ready=all(is_ready(component) for component in components),
        desired=sum(component.spec.desired_replicas for component in components),
        replicas=sum(count.replicas for count in counts),
        ready=sum(count.ready_replicas or 0 for count in counts),
        is_paused=any(component.metadata.is_true(labels.PAUSED) for component in components),
        is_current=all(map(is_current, components)),
        has_older=len(components) > 1,
    )


def _services_on_grove(graph: DynamoGraphDeployment, cache: Cache) -> Observed:
    of_grove = grove_names_of(graph)
    clique_set = cache.get(cluster.PodCliqueSet, Key(graph.metadata.namespace, of_grove.set))
    if clique_set is None or not controls(graph, clique_set):
        return {}
    template = from_json(clique_set.spec, cluster.PodCliqueSetSpec).template
    restarts = {clique.name: clique.annotations.get(labels.RESTART_AT, "") for clique in template.cliques}
    services = {}
    for key, member in grove_members(graph, cache).items():
        name = of_grove.services[key]
        first = name if name in restarts else f"{name}{LEADER_SUFFIX}"
        if first in restarts:
            services[key] = _member(member, restarts[first], clique_set)
    return services


def _member(member: GroveMember, restart: str, clique_set: cluster.PodCliqueSet) -> ServiceObserved:
    live = member.live
    if live is None:  # once Grove creates it, it has pods
        return ServiceObserved(restart=restart)
    return ServiceObserved(
        exists=True,
        restart=restart,
        # Later decisions compare the replicas with the wanted number, so it does not count here.
        is_ready=is_settled(clique_set, replace(member, desired=None)),
        desired=live.spec.replicas or 0,
        replicas=live.status.replicas,
        ready=live.status.available_replicas
        if isinstance(live, cluster.PodCliqueScalingGroup)
        else live.status.ready_replicas,
        is_current=(live.status.observed_generation or 0) >= live.metadata.generation,
    )


async def read_set_origin(graph: DynamoGraphDeployment, live: cluster.LiveObjects, client: Client) -> Origin:
    """The origin of an earlier operator's set: the graph and the set are read once, before it is taken over.

    Raises: OperatorError if that fails.
    """
    for running in live.values():
        annotations = running.metadata.annotations
        if isinstance(running, cluster.PodCliqueSet) and is_of_earlier_operator(annotations):
            try:
                bodies = [await client.get_raw(it.KIND, it.key) for it in (graph, running)]
            except NotFound:
                break  # the apply that follows reports it
            return set_origin(*(body["metadata"].get("managedFields", ()) for body in bodies))
    return Origin.OUTDATED


def graph_pod_watch(cache: Cache) -> Watches:
    """Wake a graph on Grove when one of its pods changes; components wake other graphs."""

    def keys(pod: Pod) -> Iterator[Key]:
        (key, _), namespace = service_of(pod), pod.metadata.namespace
        if not key.name:
            return
        named = cache.get(DynamoGraphDeployment, key)
        # A name that is too long for a label is shortened there.
        graphs = [named] if named else list(cache.list(DynamoGraphDeployment, namespace))
        for graph in graphs:
            if names.label_value(graph.metadata.name) == key.name and is_on_grove(graph):
                yield graph.key

    return Watches(Pod, keys)


def pvc_watch(cache: Cache) -> Watches:
    """Wake the graphs that name a PVC when it is created or deleted."""
    keys = cache.referrers(DynamoGraphDeployment, lambda graph: [claim.name for claim in graph.spec.pvcs])
    return Watches(PersistentVolumeClaim, keys)


def kind_watches() -> tuple[Watches, ...]:
    """Wake all graphs when LeaderWorkerSets or PodGroups are installed or removed.

    No object of these kinds wakes a graph; its next reconcile recreates a missing revision.
    """
    types = (cluster.LeaderWorkerSet, cluster.PodGroup, ControllerRevision)
    return tuple(Watches(type_, lambda _: ()) for type_ in types)


def leaving_pod_watch(cache: Cache) -> Watches:
    """Wake a graph when a pod of an old revision is deleted: no status of a component changes then.

    Only the last pods of a component count, so pods of one with desired replicas wake no graph. A pod need
    not have been terminating: when its node is lost it vanishes at once.
    """

    def keys(pod: Pod) -> Iterator[Key]:
        # The Deployment of a component has the component's name.
        key = Key(pod.metadata.namespace, pod.metadata.labels.get(labels.SELECTOR, ""))
        component = cache.get(DynamoComponentDeployment, key)
        owner = component.metadata.controller if component else None
        if component and owner and component.spec.replicas == 0:
            graph = cache.get(DynamoGraphDeployment, Key(pod.metadata.namespace, owner.name))
            if graph and (is_managed(graph) or labels.WORKER_HASH in component.metadata.labels):
                yield graph.key

    return Watches(Pod, keys)


def hastens_graph(cache: Cache) -> Callable[[Change[Resource]], bool]:
    """Whether a change may make a graph ready, or takes more than a new status."""

    def hastens(change: Change[Resource]) -> bool:
        old, new = change.old, change.new
        is_component = isinstance(old, DynamoComponentDeployment) and isinstance(
            new, DynamoComponentDeployment
        )
        if not old or not new or not is_component or is_edited(old, new) or not new.metadata.controller:
            return True
        owner, types = new.metadata.controller.uid, (DynamoComponentDeployment,)
        return all(
            isinstance(it, DynamoComponentDeployment) and is_ready(it)
            for it in cache.owned_by(owner, types, new.metadata.namespace)
        )

    return hastens
