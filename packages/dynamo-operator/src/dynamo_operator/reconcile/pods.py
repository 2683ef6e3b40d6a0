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
from dynamo_graphs.api.annotations import is_on_grove
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.plan.model_endpoints import READ_LABELS, restarts
from dynamo_graphs.status.pods import READ_CONDITIONS, READY, is_over, is_ready
from dynamo_graphs.types.grove import REPLICA_INDEX
from dynamo_graphs.types.optional_apis import SET_NAME, LeaderWorkerSet
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Change
from kube_runtime.kind import Key, Kind
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
        labels={name: sys.intern(old.labels[name]) for name in read if name in old.labels},
    )
    return Pod(metadata, PodSpec(sys.intern(pod.spec.node_name)), _reduced_status(pod))


_IS_READY = PodStatus(conditions=(Condition(READY, "True"),))


def _reduced_status(pod: Pod) -> PodStatus:
    if is_over(pod):
        return PodStatus(phase=sys.intern(pod.status.phase))
    if is_ready(pod):
        return _serving_status(pod) if labels.BASE_MODEL_HASH in pod.metadata.labels else _IS_READY
    conditions = (
        condition for condition in pod.status.conditions if condition.type in READ_CONDITIONS
    )
    addresses = pod.status.pod_ips if labels.BASE_MODEL_HASH in pod.metadata.labels else ()
    return replace(pod.status, phase="", conditions=tuple(conditions), pod_ips=addresses)


def _serving_status(pod: Pod) -> PodStatus:
    """What models read of a ready pod: where it is, and whether its process is still the same."""
    counted = ContainerStatus(restart_count=restarts(pod))
    status = replace(_IS_READY, pod_ips=pod.status.pod_ips)
    return replace(status, container_statuses=(counted,)) if counted.restart_count else status


class PodIndex:
    """Finds the pods of a workload, and those of a graph's service. It follows the cache."""

    def __init__(self, cache: Cache) -> None:
        self._by_workload: dict[Key, dict[str, Pod]] = defaultdict(dict)
        self._by_service: dict[tuple[Key, str], dict[str, Pod]] = defaultdict(dict)
        cache.subscribe(Pod, self._on_change)

    def of_workload(self, namespace: str, workload: str) -> tuple[Pod, ...]:
        """The pods of a Deployment or a LeaderWorkerSet."""
        return tuple(self._by_workload.get(Key(namespace, workload), {}).values())

    def of_service(self, namespace: str, graph: str, service: str) -> tuple[Pod, ...]:
        """The pods of a graph's service, whatever runs them."""
        place = (Key(namespace, names.label_value(graph)), names.label_value(service))
        return tuple(self._by_service.get(place, {}).values())

    def _on_change(self, change: Change[Pod]) -> None:
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


def component_pod_watch(cache: Cache, kind: Kind = DynamoComponentDeployment.KIND) -> Watches:
    """What wakes a component, of that kind, when one of its pods changes."""

    def keys(pod: Pod) -> Iterator[Key]:
        workload = _workload(pod)
        is_group = SET_NAME in pod.metadata.labels
        live = cache.get(LeaderWorkerSet if is_group else Deployment, workload)
        owner = live.metadata.controller if live else None
        if owner is not None and owner.kind == kind.name:
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
        graphs = [named] if named else list(cache.list(DynamoGraphDeployment, namespace))
        for graph in graphs:
            if names.label_value(graph.metadata.name) == place.name and is_on_grove(graph):
                yield graph.key

    return Watches(Pod, keys)


def _workload(pod: Pod) -> Key:
    """The LeaderWorkerSet or the Deployment of a pod; its name is "" if no label has it."""
    pod_labels = pod.metadata.labels
    return Key(
        pod.metadata.namespace, pod_labels.get(SET_NAME) or pod_labels.get(labels.SELECTOR, "")
    )


def _service(pod: Pod) -> tuple[Key, str]:
    """The label of a pod's graph, which is "" without one, and that of its service."""
    pod_labels = pod.metadata.labels
    graph = Key(pod.metadata.namespace, pod_labels.get(labels.GRAPH, ""))
    return graph, pod_labels.get(labels.COMPONENT, "")
