"""Read the inputs of adapters and of graphs with adapters from the cache."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter as Adapter
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapterSpec as AdapterSpec
from dynamo_graphs.plan.adapters import Adapters, adapter_names
from kube_runtime.apply.suppression import Target, WriteSuppression
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.errors import DecodeError
from kube_runtime.kind import Key
from kube_runtime.types.meta import Resource


def read_scaling(
    key: Key, cache: Cache
) -> tuple[Adapter, AdapterSpec, DynamoGraphDeployment | None] | None:
    """Read an adapter, its spec, and the graph that it names, None if that does not exist.

    Returns None if there is nothing to do: the adapter was deleted, or the graph is being deleted or
    unreadable. The last readable spec of a graph is outdated.
    """
    adapter = cache.get(Adapter, key)
    if adapter is None or adapter.spec is None or adapter.metadata.deletion_timestamp:
        return None
    graph_key = Key(key.namespace, adapter.spec.dgd_ref.name)
    graph = cache.get(DynamoGraphDeployment, graph_key)
    is_going = graph is not None and graph.metadata.deletion_timestamp is not None
    if is_going or cache.broken(DynamoGraphDeployment, graph_key):
        return None
    return adapter, adapter.spec, graph


def scaling_watch(cache: Cache) -> Watches:
    """Wake adapters when the graph that they name changes or is created."""

    def keys(graph: Resource) -> Iterator[Key]:
        for adapter in cache.list(Adapter, graph.metadata.namespace):
            if adapter.spec is not None and adapter.spec.dgd_ref.name == graph.metadata.name:
                yield adapter.key

    return Watches(DynamoGraphDeployment, keys)


@dataclass(frozen=True, slots=True)
class AdapterInputs:
    """The adapters of a graph: `present` are those that it controls or whose names it needs.

    `unreadable` cannot be decoded. `refused` are names whose creation the API server refused a moment ago.
    """

    present: Adapters
    unreadable: Mapping[str, DecodeError]
    refused: frozenset[str] = frozenset()


def read_adapters(
    graph: DynamoGraphDeployment, cache: Cache, suppression: WriteSuppression
) -> AdapterInputs:
    """Read the adapters of a graph."""
    type_, namespace, uid = Adapter, graph.metadata.namespace, graph.metadata.uid
    owned = cache.owned_by(uid, (type_,), namespace)
    present = {adapter.metadata.name: adapter for adapter in owned if isinstance(adapter, type_)}
    unreadable: dict[str, DecodeError] = {}
    refused: set[str] = set()
    for name in adapter_names(graph):
        key = Key(namespace, name)
        if adapter := cache.get(type_, key):
            present[name] = adapter
        elif error := cache.broken(type_, key):
            unreadable[name] = error
        elif suppression.refusal(Target(uid, type_.KIND.name, key)):
            refused.add(name)
    return AdapterInputs(present, unreadable, frozenset(refused))


def adapter_watch() -> Watches:
    """Wake a graph when one of its adapters, or a foreign one with a name that it needs, changes."""

    def keys(changed: Adapter) -> Iterator[Key]:
        namespace, controller = changed.metadata.namespace, changed.metadata.controller
        if changed.spec is not None:
            yield Key(namespace, changed.spec.dgd_ref.name)
        if controller is not None and controller.kind == DynamoGraphDeployment.KIND.name:
            yield Key(namespace, controller.name)

    return Watches(Adapter, keys)
