"""Graphs on Grove: read what Grove created for a PodCliqueSet."""

from collections.abc import Iterator

from dynamo_operator import labels
from dynamo_operator.features.grove.status import GroveMember
from dynamo_operator.graph.api import DynamoGraphDeployment, grove_names_of
from dynamo_operator.names import is_on_grove, kai_queue
from dynamo_operator.shared import cluster
from kube_runtime.apply.result import controls
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.types.meta import Key, Resource, from_json

_INDEX = "-0-"
"""Separates the name of a set from that of a child: our sets have one replica, number 0."""


def grove_members(graph: DynamoGraphDeployment, cache: Cache) -> dict[str, GroveMember]:
    """The services of a graph on Grove by key, each with the live object that runs it."""
    names = grove_names_of(graph)
    by_service = {}
    for key, service in graph.spec.services.items():
        name, is_group = names.child(key), service.nodes > 1
        child = Key(graph.metadata.namespace, name)
        live = (
            cache.get(cluster.PodCliqueScalingGroup, child)
            if is_group
            else cache.get(cluster.PodClique, child)
        )
        by_service[key] = GroveMember(name, is_group, live, service.replicas)
    return by_service


def adopted_set(graph: DynamoGraphDeployment, live: cluster.LiveObjects) -> str:
    """The name of the set that the graph controls, if another operator has chosen it; else ""."""
    own = grove_names_of(graph).set
    present = [
        running.metadata.name
        for running in live.values()
        if isinstance(running, cluster.PodCliqueSet) and controls(graph, running)
    ]
    return "" if own in present else min(present, default="")


def live_templates(graph: DynamoGraphDeployment, cache: Cache) -> dict[str, cluster.LiveTemplate]:
    """The values in the template of a graph's set that rendering must keep, by clique and group, in order.

    The name "" is that of the whole set. There is none without a live set.
    """
    names = grove_names_of(graph)
    present = cache.get(cluster.PodCliqueSet, Key(graph.metadata.namespace, names.set))
    if present is None or present.metadata.deletion_timestamp:
        return {}
    template = from_json(present.spec, cluster.PodCliqueSetSpec).template
    live = {names.services[key] for key, member in grove_members(graph, cache).items() if member.live}
    cliques = {
        clique.name: cluster.LiveTemplate(
            clique.spec.replicas if clique.name in live else None,
            clique.spec.min_available,
            clique.annotations.get(labels.RESTART_AT, ""),
            clique.spec.pod_spec.scheduler_name,
            clique.topology_constraint,
        )
        for clique in template.cliques
    }
    groups = {
        group.name: cluster.LiveTemplate(
            group.replicas if group.name in live else None,
            group.min_available,
            topology=group.topology_constraint,
        )
        for group in template.pod_clique_scaling_groups
    }
    return {"": cluster.LiveTemplate(topology=template.topology_constraint)} | cliques | groups


def grove_watches(cache: Cache) -> tuple[Watches, ...]:
    """Wake graphs on Grove when a child of their set, their queue or a pull secret changes."""

    def of_child(changed: Resource) -> Iterator[Key]:
        # Grove owns the child, so our set is found by the start of the child's name.
        namespace, name = changed.key
        end = name.find(_INDEX)
        while end >= 0:
            clique_set = cache.get(cluster.PodCliqueSet, Key(namespace, name[:end]))
            if clique_set is not None and clique_set.metadata.controller is not None:
                yield Key(namespace, clique_set.metadata.controller.name)
            end = name.find(_INDEX, end + 1)

    def graphs(namespace: str = "") -> Iterator[DynamoGraphDeployment]:
        # The provider of a new graph is recorded by a reconcile that may have read before the change.
        if cache.serves(cluster.PodCliqueSet):
            for graph in cache.list(DynamoGraphDeployment, namespace):
                if labels.WORKLOAD_PROVIDER not in graph.metadata.annotations or is_on_grove(graph):
                    yield graph

    def in_queue(changed: Resource) -> Iterator[Key]:
        return (graph.key for graph in graphs() if kai_queue(graph) == changed.metadata.name)

    def beside(changed: Resource) -> Iterator[Key]:
        return (graph.key for graph in graphs(changed.metadata.namespace))

    return (
        Watches(cluster.PodClique, of_child),
        Watches(cluster.PodCliqueScalingGroup, of_child),
        Watches(cluster.Queue, in_queue),
        Watches(cluster.PullSecret, beside),
    )
