"""What reconciles depend on that have to do with scaling adapters, read from the cache once."""

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
    """An adapter with its spec, and the graph that it names, if there is one.

    None means: there is nothing to do. The adapter is gone or going, or its graph is going or cannot be read:
    the last readable spec of a graph is not what its owner wants any more.
    """
    adapter = cache.get(Adapter, key)
    if adapter is None or adapter.spec is None or adapter.metadata.deletion_timestamp:
        return None
    at = Key(key.namespace, adapter.spec.dgd_ref.name)
    graph = cache.get(DynamoGraphDeployment, at)
    is_going = graph is not None and graph.metadata.deletion_timestamp is not None
    if is_going or cache.broken(DynamoGraphDeployment, at):
        return None
    return adapter, adapter.spec, graph


def scaling_watch(cache: Cache) -> Watches:
    """What wakes adapters: any change of the graph that they name, its coming too."""

    def keys(graph: Resource) -> Iterator[Key]:
        for adapter in cache.list(Adapter, graph.metadata.namespace):
            if adapter.spec is not None and adapter.spec.dgd_ref.name == graph.metadata.name:
                yield adapter.key

    return Watches(DynamoGraphDeployment, keys)


@dataclass(frozen=True, slots=True)
class AdapterInputs:
    """`present` are the adapters that a graph controls or whose names it needs.

    `unreadable` cannot be decoded, `refused` were refused by the API server a moment ago; both by name.
    """

    present: Adapters
    unreadable: Mapping[str, DecodeError]
    refused: frozenset[str] = frozenset()


def read_adapters(
    graph: DynamoGraphDeployment, cache: Cache, suppression: WriteSuppression
) -> AdapterInputs:
    """The adapters of a graph as they are now."""
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
        elif suppression.is_refused(Target(uid, type_.KIND.name, key)):
            refused.add(name)
    return AdapterInputs(present, unreadable, frozenset(refused))


def adapter_watch() -> Watches:
    """What wakes a graph when one of its adapters, or one in the way, is changed or deleted."""

    def keys(changed: Adapter) -> Iterator[Key]:
        namespace, controller = changed.metadata.namespace, changed.metadata.controller
        if changed.spec is not None:
            yield Key(namespace, changed.spec.dgd_ref.name)
        if controller is not None and controller.kind == DynamoGraphDeployment.KIND.name:
            yield Key(namespace, controller.name)

    return Watches(Adapter, keys)
