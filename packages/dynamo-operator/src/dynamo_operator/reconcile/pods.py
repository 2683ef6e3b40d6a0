"""The pods of components: what is cached of them, how they are found, and which keys they wake.

A cluster has ten thousand pods, each with kilobytes that nothing here reads, and a reconcile must not scan
all of them to find its ten. So a pod is reduced before it is stored, one that is ready to almost nothing,
and pods are indexed by what their labels say of their workload.
"""

import sys
from collections import defaultdict
from collections.abc import Iterator

from msgspec.structs import replace

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.provider import is_on_grove
from dynamo_graphs.plan.model_pods import READ_LABELS, restarts
from dynamo_graphs.status.pods import READ_CONDITIONS, READY, is_over, is_ready
from dynamo_graphs.types.grove import REPLICA_INDEX
from dynamo_graphs.types.leaderworkerset import SET_NAME, LeaderWorkerSet
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Change
from kube_runtime.kind import Key
from kube_runtime.types.apps import Deployment
from kube_runtime.types.core import ContainerStatus, Pod, PodSpec, PodStatus
from kube_runtime.types.meta import Condition, Metadata

SELECTOR = labels.COMPONENT
"""Which pods are watched, as a label selector: those of components."""

_READ_LABELS = (labels.COMPONENT, labels.GRAPH, labels.SELECTOR, SET_NAME, REPLICA_INDEX)


def reduced(pod: Pod) -> Pod:
    """The pod with what is read of it and nothing else; texts that many pods share are kept once."""
    old = pod.metadata
    read = (*_READ_LABELS, *(READ_LABELS if labels.BASE_MODEL_HASH in old.labels else ()))
    metadata = Metadata(
        name=old.name,
        namespace=sys.intern(old.namespace),
        uid=old.uid,
        resource_version=old.resource_version,
        deletion_timestamp=old.deletion_timestamp,
        labels={each: sys.intern(old.labels[each]) for each in read if each in old.labels},
    )
    return Pod(metadata, PodSpec(sys.intern(pod.spec.node_name)), _reduced_status(pod))


_IS_READY = PodStatus(conditions=(Condition(READY, "True"),))


def _reduced_status(pod: Pod) -> PodStatus:
    if is_over(pod):
        return PodStatus(phase=sys.intern(pod.status.phase))
    if is_ready(pod):
        return _serving_status(pod) if labels.BASE_MODEL_HASH in pod.metadata.labels else _IS_READY
    conditions = (each for each in pod.status.conditions if each.type in READ_CONDITIONS)
    addresses = pod.status.pod_ips if labels.BASE_MODEL_HASH in pod.metadata.labels else ()
    return replace(pod.status, phase="", conditions=tuple(conditions), pod_ips=addresses)


def _serving_status(pod: Pod) -> PodStatus:
    """What models read of a ready pod: where it is, and whether its process is still the same."""
    counted = ContainerStatus(restart_count=restarts(pod))
    found = replace(_IS_READY, pod_ips=pod.status.pod_ips)
    return replace(found, container_statuses=(counted,)) if counted.restart_count else found


class PodIndex:
    """Finds the pods of a workload, and those of a graph's service. It follows the cache."""

    def __init__(self, cache: Cache) -> None:
        self._by_workload: dict[Key, dict[str, Pod]] = defaultdict(dict)
        self._by_service: dict[tuple[Key, str], dict[str, Pod]] = defaultdict(dict)
        cache.subscribe(Pod, self._heard)

    def of_workload(self, namespace: str, workload: str) -> tuple[Pod, ...]:
        """The pods of a Deployment or a LeaderWorkerSet."""
        return tuple(self._by_workload.get(Key(namespace, workload), {}).values())

    def of_service(self, namespace: str, graph: str, service: str) -> tuple[Pod, ...]:
        """The pods of a graph's service, whatever runs them."""
        place = (Key(namespace, names.label_value(graph)), names.label_value(service))
        return tuple(self._by_service.get(place, {}).values())

    def _heard(self, change: Change[Pod]) -> None:
        if change.old is not None:
            self._drop(change.old)
        if change.new is not None:
            name = change.new.metadata.name
            self._by_workload[_workload(change.new)][name] = change.new
            self._by_service[_service(change.new)][name] = change.new

    def _drop(self, pod: Pod) -> None:
        name, workload, service = pod.metadata.name, _workload(pod), _service(pod)
        del self._by_workload[workload][name]
        del self._by_service[service][name]
        if not self._by_workload[workload]:
            del self._by_workload[workload]
        if not self._by_service[service]:
            del self._by_service[service]


def component_pod_watch(cache: Cache) -> Watches:
    """What wakes a component when one of its pods changes."""

    def keys(pod: Pod) -> Iterator[Key]:
        workload = _workload(pod)
        is_group = SET_NAME in pod.metadata.labels
        found = cache.get(LeaderWorkerSet if is_group else Deployment, workload)
        owner = found.metadata.controller if found else None
        if owner is not None and owner.kind == DynamoComponentDeployment.KIND.name:
            yield Key(workload.namespace, owner.name)

    return Watches(Pod, keys)


def graph_pod_watch(cache: Cache) -> Watches:
    """What wakes a graph on Grove when one of its pods changes; others are woken by their components."""

    def keys(pod: Pod) -> Iterator[Key]:
        (place, _), namespace = _service(pod), pod.metadata.namespace
        if not place.name:
            return
        named = cache.get(DynamoGraphDeployment, place)
        # The label has a shortened name if the graph's is too long for it.
        found = [named] if named else list(cache.list(DynamoGraphDeployment, namespace))
        for graph in found:
            if names.label_value(graph.metadata.name) == place.name and is_on_grove(graph):
                yield graph.key

    return Watches(Pod, keys)


def _workload(pod: Pod) -> Key:
    """The LeaderWorkerSet or the Deployment of a pod; its name is "" if no label has it."""
    found = pod.metadata.labels
    return Key(pod.metadata.namespace, found.get(SET_NAME) or found.get(labels.SELECTOR, ""))


def _service(pod: Pod) -> tuple[Key, str]:
    """The label of a pod's graph, which is "" without one, and that of its service."""
    found = pod.metadata.labels
    graph = Key(pod.metadata.namespace, found.get(labels.GRAPH, ""))
    return graph, found.get(labels.COMPONENT, "")
