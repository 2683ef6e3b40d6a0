"""Find the pods of a component, and the keys that a changed pod wakes.

A cluster has ten thousand pods, and a reconcile must not scan them to find its ten. So an index finds them
by the labels that name their workload and their service.
"""

from collections import defaultdict
from collections.abc import Iterator

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.annotations import is_on_grove
from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.types.optional_apis import SET_NAME, LeaderWorkerSet
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.cache.store import Change
from kube_runtime.kind import Key, Kind
from kube_runtime.types.apps import Deployment
from kube_runtime.types.core import Pod

SELECTOR = labels.COMPONENT
"""Label selector of the watched pods: those of components."""


class PodIndex:
    """Indexes the cached pods by workload, and by service of a graph."""

    def __init__(self, cache: Cache) -> None:
        self._by_workload: dict[Key, dict[str, Pod]] = defaultdict(dict)
        self._by_service: dict[tuple[Key, str], dict[str, Pod]] = defaultdict(dict)
        cache.subscribe(Pod, self._on_change)

    def of_workload(self, namespace: str, workload: str) -> tuple[Pod, ...]:
        """The pods of a Deployment or a LeaderWorkerSet."""
        return tuple(self._by_workload.get(Key(namespace, workload), {}).values())

    def of_service(self, namespace: str, graph: str, service: str) -> tuple[Pod, ...]:
        """The pods of a graph's service, whatever workload runs them."""
        key = (Key(namespace, names.label_value(graph)), names.label_value(service))
        return tuple(self._by_service.get(key, {}).values())

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
    """Wake a component, of that kind, when one of its pods changes."""

    def keys(pod: Pod) -> Iterator[Key]:
        workload = _workload(pod)
        is_group = SET_NAME in pod.metadata.labels
        live = cache.get(LeaderWorkerSet if is_group else Deployment, workload)
        owner = live.metadata.controller if live else None
        if owner is not None and owner.kind == kind.name:
            yield Key(workload.namespace, owner.name)

    return Watches(Pod, keys)


def graph_pod_watch(cache: Cache) -> Watches:
    """Wake a graph on Grove when one of its pods changes; components wake other graphs."""

    def keys(pod: Pod) -> Iterator[Key]:
        (key, _), namespace = _service(pod), pod.metadata.namespace
        if not key.name:
            return
        named = cache.get(DynamoGraphDeployment, key)
        # A name that is too long for a label is shortened there.
        graphs = [named] if named else list(cache.list(DynamoGraphDeployment, namespace))
        for graph in graphs:
            if names.label_value(graph.metadata.name) == key.name and is_on_grove(graph):
                yield graph.key

    return Watches(Pod, keys)


def _workload(pod: Pod) -> Key:
    """The key of a pod's LeaderWorkerSet or Deployment; the name is "" if no label has it."""
    pod_labels = pod.metadata.labels
    return Key(
        pod.metadata.namespace, pod_labels.get(SET_NAME) or pod_labels.get(labels.SELECTOR, "")
    )


def _service(pod: Pod) -> tuple[Key, str]:
    """The graph and the service of a pod, as its labels name them; "" if they do not."""
    pod_labels = pod.metadata.labels
    graph = Key(pod.metadata.namespace, pod_labels.get(labels.GRAPH, ""))
    return graph, pod_labels.get(labels.COMPONENT, "")
