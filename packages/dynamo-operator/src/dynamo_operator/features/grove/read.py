"""Graphs on Grove: read what Grove created for a PodCliqueSet, and scale it.

Grove keeps the replicas of live objects apart from the set's template. So the operator scales only the live
object, through its scale subresource, and only if the number differs. The template keeps its first number.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

import msgspec

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.grove.status import GroveMember
from dynamo_operator.graph.api import DynamoGraphDeployment, grove_names_of
from dynamo_operator.names import is_on_grove, kai_queue
from dynamo_operator.shared.cluster import (
    LiveTemplate,
    PodClique,
    PodCliqueScale,
    PodCliqueScalingGroup,
    PodCliqueScalingGroupScale,
    PodCliqueSet,
    PodCliqueSetSpec,
    PullSecret,
    Queue,
)
from dynamo_operator.shared.patches import patch_replicas
from kube_runtime.apply.result import Applied, Cause, Change, Verb, controls, merge, stopped
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Cache
from kube_runtime.errors import Refused, ServerFailure
from kube_runtime.kind import Key
from kube_runtime.types.meta import Resource

_INDEX = "-0-"
"""Separates the name of a set from that of a child: our sets have one replica, number 0."""


def members(graph: DynamoGraphDeployment, cache: Cache) -> dict[str, GroveMember]:
    """The services of a graph on Grove by key, each with the live object that runs it."""
    names = grove_names_of(graph)
    by_service = {}
    for key, service in graph.spec.services.items():
        name = names.child(key)
        is_group = bool(service.multinode and service.multinode.node_count > 1)
        child_key = Key(graph.metadata.namespace, name)
        live = (
            cache.get(PodCliqueScalingGroup, child_key)
            if is_group
            else cache.get(PodClique, child_key)
        )
        by_service[key] = GroveMember(name, is_group, live, service.replicas)
    return by_service


def with_wanted(
    graph: DynamoGraphDeployment, by_service: Mapping[str, GroveMember]
) -> dict[str, GroveMember]:
    """The same members with the replicas that `graph` requests."""
    services = graph.spec.services
    return {
        key: replace(member, desired=services[key].replicas) for key, member in by_service.items()
    }


def live_templates(graph: DynamoGraphDeployment, cache: Cache) -> dict[str, LiveTemplate]:
    """The values in the template of a graph's set that rendering must keep, by clique and group, in order."""
    names = grove_names_of(graph)
    present = cache.get(PodCliqueSet, Key(graph.metadata.namespace, names.set))
    if present is None or present.metadata.deletion_timestamp:
        return {}
    template = msgspec.json.decode(present.spec, type=PodCliqueSetSpec).template
    live = {names.services[key] for key, member in members(graph, cache).items() if member.live}
    cliques = {
        clique.name: LiveTemplate(
            clique.spec.replicas if clique.name in live else None,
            clique.spec.min_available,
            clique.annotations.get(labels.RESTART_AT, ""),
            clique.spec.pod_spec.scheduler_name,
        )
        for clique in template.cliques
    }
    groups = {
        group.name: LiveTemplate(group.replicas if group.name in live else None)
        for group in template.pod_clique_scaling_groups
    }
    return cliques | groups


async def scale(by_service: Mapping[str, GroveMember], writer: Writer) -> Applied:
    """Scale live cliques and scaling groups whose replicas differ from the graph's."""
    parts = []
    for member in by_service.values():
        live, replicas = member.live, member.desired
        if live is None or live.metadata.deletion_timestamp:
            continue
        if replicas is not None and replicas != live.spec.replicas:
            type_ = PodCliqueScalingGroupScale if member.is_group else PodCliqueScale
            parts.append(await patch_replicas(live, replicas, writer, Cause.SPEC, type_=type_))
    return merge(parts)


async def delete_old_provider(
    graph: DynamoGraphDeployment, live: Iterable[Resource], writer: Writer
) -> Applied:
    """Delete the workloads of the previous provider of a graph.

    Before the apply, not among its deletions: these objects hold the names that the apply needs.
    """
    type_ = DynamoComponentDeployment if is_on_grove(graph) else PodCliqueSet
    leftover = [
        child
        for child in live
        if isinstance(child, type_)
        and controls(graph, child)
        and not child.metadata.deletion_timestamp
    ]
    if leftover:
        await writer.ensure_newest(graph)
    parts = list[Applied]()
    for child in leftover:
        kind, name = type_.KIND.name, child.metadata.name
        try:
            await writer.delete(child)
        except (Refused, ServerFailure) as error:
            parts.append(stopped(kind, name, error))
        else:
            parts.append(Applied(changes=(Change(Verb.DELETE, kind, name, Cause.PROVIDER),)))
    return merge(parts)


def grove_watches(cache: Cache) -> tuple[Watches, ...]:
    """Wake graphs on Grove when a child of their set, their queue or a pull secret changes."""

    def of_child(changed: Resource) -> Iterator[Key]:
        # Grove owns the child, so our set is found by the start of the child's name.
        namespace, name = changed.key
        end = name.find(_INDEX)
        while end >= 0:
            clique_set = cache.get(PodCliqueSet, Key(namespace, name[:end]))
            if clique_set is not None and clique_set.metadata.controller is not None:
                yield Key(namespace, clique_set.metadata.controller.name)
            end = name.find(_INDEX, end + 1)

    def in_queue(changed: Resource) -> Iterator[Key]:
        if not cache.serves(PodCliqueSet):
            return
        for graph in cache.list(DynamoGraphDeployment):
            is_unrecorded = labels.WORKLOAD_PROVIDER not in graph.metadata.annotations
            if (is_unrecorded or is_on_grove(graph)) and kai_queue(graph) == changed.metadata.name:
                yield graph.key

    def beside(changed: Resource) -> Iterator[Key]:
        graphs = cache.list(DynamoGraphDeployment, changed.metadata.namespace)
        return (graph.key for graph in graphs if is_on_grove(graph))

    return (
        Watches(PodClique, of_child),
        Watches(PodCliqueScalingGroup, of_child),
        Watches(Queue, in_queue),
        Watches(PullSecret, beside),
    )
