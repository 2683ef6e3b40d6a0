"""A graph on Grove, after its PodCliqueSet is applied: the sizes of what Grove created, and status.

Grove keeps the sizes of live objects apart from the set's template. So the operator writes another size to
the live object alone, through its scale subresource, and only when it differs from the watched one. The
template keeps its first size.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.grove_names import gang_names_of
from dynamo_graphs.api.provider import is_on_grove, kai_queue
from dynamo_graphs.facts import LiveTemplate
from dynamo_graphs.status.grove import GroveMember
from dynamo_graphs.types.grove import (
    PodClique,
    PodCliqueScale,
    PodCliqueScalingGroup,
    PodCliqueScalingGroupScale,
    PodCliqueSet,
    PodCliqueSetSpec,
)
from dynamo_graphs.types.kai import Queue
from kube_runtime.apply.result import Applied, Blocked, Cause, Change, Verb, controls, rejected
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.errors import Forbidden, Invalid, NotFound
from kube_runtime.kind import Key
from kube_runtime.types.meta import Resource

_INDEX = "-0-"
"""Between the name of a set and that of what is under it: our sets have one replica, number 0."""


def members(graph: DynamoGraphDeployment, cache: Cache) -> dict[str, GroveMember]:
    """The services of a graph on Grove by their keys, each with what Grove runs it by."""
    names = gang_names_of(graph)
    found = {}
    for key, service in graph.spec.services.items():
        name = names.child(key)
        is_group = bool(service.multinode and service.multinode.node_count > 1)
        at = Key(graph.metadata.namespace, name)
        live = cache.get(PodCliqueScalingGroup, at) if is_group else cache.get(PodClique, at)
        found[key] = GroveMember(name, is_group, live, service.replicas)
    return found


def with_wanted(
    graph: DynamoGraphDeployment, found: Mapping[str, GroveMember]
) -> dict[str, GroveMember]:
    """The same services with the replicas that this state of the graph wants."""
    services = graph.spec.services
    return {key: replace(member, wanted=services[key].replicas) for key, member in found.items()}


def live_templates(graph: DynamoGraphDeployment, cache: Cache) -> dict[str, LiveTemplate]:
    """What is in use of the template of a graph's set: by the names of cliques and groups."""
    names = gang_names_of(graph)
    present = cache.get(PodCliqueSet, Key(graph.metadata.namespace, names.set))
    if present is None or present.metadata.deletion_timestamp:
        return {}
    template = msgspec.json.decode(present.spec, type=PodCliqueSetSpec).template
    live = {names.services[key] for key, each in members(graph, cache).items() if each.live}
    cliques = {
        each.name: LiveTemplate(
            each.spec.replicas if each.name in live else None,
            each.spec.min_available,
            each.annotations.get(labels.RESTART_AT, ""),
            each.spec.pod_spec.scheduler_name,
        )
        for each in template.cliques
    }
    groups = {
        each.name: LiveTemplate(each.replicas)
        for each in template.pod_clique_scaling_groups
        if each.name in live
    }
    return cliques | groups


async def scale(
    graph: DynamoGraphDeployment, found: Mapping[str, GroveMember], writer: Writer
) -> Applied:
    """Give live cliques and scaling groups the size that the graph says, where it is another."""
    changes: list[Change] = []
    blocked: list[Blocked] = []
    for member in found.values():
        live = member.live
        if live is None or live.metadata.deletion_timestamp:
            continue
        if member.wanted is None or member.wanted == live.spec.replicas:
            continue
        type_ = PodCliqueScalingGroupScale if member.is_group else PodCliqueScale
        kind = type_.KIND.name
        key = Key(graph.metadata.namespace, member.name)
        try:
            await writer.merge_patch(
                type_,
                key,
                {"spec": {"replicas": member.wanted}},
                subresource="scale",
                uid=live.metadata.uid,
            )
        except NotFound:
            continue  # its removal wakes us
        except (Invalid, Forbidden) as error:
            blocked.append(rejected(kind, f"{member.name}/scale", error))
        else:
            cause = f"{Cause.SPEC}: {member.wanted} replicas"
            changes.append(Change(Verb.SCALE, kind, member.name, cause))
    return Applied((), tuple(changes), tuple(blocked))


async def delete_old_provider(
    graph: DynamoGraphDeployment, live: Iterable[Resource], writer: Writer
) -> Applied:
    """Delete what another provider created for a graph whose recorded provider was changed.

    First, and not with what is merely unwanted: what it made has the names that are needed now.
    """
    type_ = DynamoComponentDeployment if is_on_grove(graph) else PodCliqueSet
    changes: list[Change] = []
    left = [
        child
        for child in live
        if isinstance(child, type_)
        and controls(graph, child)
        and not child.metadata.deletion_timestamp
    ]
    if left:
        await writer.ensure_newest(graph)
    for each in left:
        await writer.delete(type_, each.key, uid=each.metadata.uid)
        name = each.metadata.name
        changes.append(Change(Verb.DELETE, type_.KIND.name, name, Cause.PROVIDER))
    return Applied((), tuple(changes), ())


def grove_watches(cache: Cache) -> tuple[Watches, ...]:
    """What else wakes graphs on Grove: what Grove makes of their sets, and the queues that they wait in."""
    return (
        Watches(PodClique, _graph_of_child(cache)),
        Watches(PodCliqueScalingGroup, _graph_of_child(cache)),
        Watches(Queue, _graphs_in_queue(cache)),
    )


def _graph_of_child(cache: Cache) -> Callable[[Resource], Iterator[Key]]:
    """The graph whose set has a name that the child's begins with; Grove owns it, so we go by that."""

    def keys(changed: Resource) -> Iterator[Key]:
        namespace, name = changed.key
        end = name.find(_INDEX)
        while end >= 0:
            found = cache.get(PodCliqueSet, Key(namespace, name[:end]))
            if found is not None and found.metadata.controller is not None:
                yield Key(namespace, found.metadata.controller.name)
            end = name.find(_INDEX, end + 1)

    return keys


def _graphs_in_queue(cache: Cache) -> Callable[[Resource], Iterator[Key]]:
    def keys(changed: Resource) -> Iterator[Key]:
        if not cache.serves(PodCliqueSet):
            return
        for graph in cache.list(DynamoGraphDeployment):
            is_unrecorded = labels.WORKLOAD_PROVIDER not in graph.metadata.annotations
            if (is_unrecorded or is_on_grove(graph)) and kai_queue(graph) == changed.metadata.name:
                yield graph.key

    return keys
