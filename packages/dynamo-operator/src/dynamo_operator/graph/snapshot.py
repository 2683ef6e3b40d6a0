"""The services of a graph as they run now: the input of decisions about the next step."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import replace

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.grove_names import LEADER_SUFFIX, gang_names_of
from dynamo_graphs.api.provider import is_on_grove
from dynamo_graphs.plan.observed import Observed, ServiceObserved
from dynamo_graphs.status.components import is_current, is_ready, wanted_replicas
from dynamo_graphs.status.grove import GroveMember, is_settled
from dynamo_graphs.status.pause import is_paused
from dynamo_graphs.types.grove import PodCliqueScalingGroup, PodCliqueSet, PodCliqueSetSpec
from dynamo_operator.reconcile.grove import members
from kube_runtime.apply.result import controls
from kube_runtime.cache.cache import Cache
from kube_runtime.kind import Key


def service_snapshot(graph: DynamoGraphDeployment, cache: Cache) -> Observed:
    """The services that have a workload, by their keys."""
    return _on_grove(graph, cache) if is_on_grove(graph) else _components(graph, cache)


def components_of(
    graph: DynamoGraphDeployment, cache: Cache
) -> Mapping[str, list[DynamoComponentDeployment]]:
    """The components that the graph controls and that are not being deleted, by service."""
    found: dict[str, list[DynamoComponentDeployment]] = defaultdict(list)
    uid, namespace = graph.metadata.uid, graph.metadata.namespace
    for each in cache.owned_by(uid, (DynamoComponentDeployment,), namespace):
        if not isinstance(each, DynamoComponentDeployment) or each.metadata.deletion_timestamp:
            continue
        if controls(graph, each):
            found[each.spec.service_name or ""].append(each)
    return found


def _components(graph: DynamoGraphDeployment, cache: Cache) -> Observed:
    return {key: _component(each) for key, each in components_of(graph, cache).items()}


def _component(components: Iterable[DynamoComponentDeployment]) -> ServiceObserved:
    """A service; it has several components while its workers are replaced."""
    every = list(components)
    restarts = {each.spec.annotations.get(labels.RESTART_AT, "") for each in every}
    counts = [each.status.service for each in every if each.status.service is not None]
    return ServiceObserved(
        exists=True,
        restart=restarts.pop() if len(restarts) == 1 else "",
        is_ready=all(is_ready(each) for each in every),
        wanted=sum(wanted_replicas(each.spec) for each in every),
        replicas=sum(each.replicas for each in counts),
        ready=sum(each.ready_replicas or 0 for each in counts),
        is_paused=any(map(is_paused, every)),
        is_current=all(map(is_current, every)),
    )


def _on_grove(graph: DynamoGraphDeployment, cache: Cache) -> Observed:
    names = gang_names_of(graph)
    clique_set = cache.get(PodCliqueSet, Key(graph.metadata.namespace, names.set))
    if clique_set is None or not controls(graph, clique_set):
        return {}
    template = msgspec.json.decode(clique_set.spec, type=PodCliqueSetSpec).template
    restarts = {each.name: each.annotations.get(labels.RESTART_AT, "") for each in template.cliques}
    found = {}
    for key, member in members(graph, cache).items():
        clique = names.services[key]
        if clique in restarts or f"{clique}{LEADER_SUFFIX}" in restarts:
            id_ = restarts.get(clique, restarts.get(f"{clique}{LEADER_SUFFIX}", ""))
            found[key] = _member(member, id_, clique_set)
    return found


def _member(member: GroveMember, restart: str, clique_set: PodCliqueSet) -> ServiceObserved:
    live = member.live
    if live is None:
        return ServiceObserved(exists=True, restart=restart)
    if isinstance(live, PodCliqueScalingGroup):
        ready = live.status.available_replicas
    else:
        ready = live.status.ready_replicas
    return ServiceObserved(
        exists=True,
        restart=restart,
        # Whether its number is the wanted one is decided later, from this.
        is_ready=is_settled(clique_set, replace(member, wanted=None)),
        wanted=live.spec.replicas or 0,
        replicas=live.status.replicas,
        ready=ready,
    )
