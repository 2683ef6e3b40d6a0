"""Stores and caches filled with objects, without an API server."""

from collections.abc import Iterable
from typing import Any, TypeVar

from kube_runtime.cache.store import Cache, Store
from kube_runtime.cache.watch import Present, Started, Synced
from kube_runtime.types.meta import Resource

R = TypeVar("R", bound=Resource)


def a_store(type_: type[R], objects: Iterable[Resource] = ()) -> Store[R]:
    """A synced store with those of the objects that have its type."""
    store = Store(type_)
    listed(store, type_, objects)
    return store


def listed(store: Store[R], type_: type[R], objects: Iterable[Resource]) -> None:
    """Feed a store with those of the objects that have its type, as an initial list."""
    store.on_watch_event(Started())
    for resource in objects:
        if isinstance(resource, type_):
            store.on_watch_event(Present(resource))
    store.on_watch_event(Synced())


def a_cache(types: Iterable[type[Resource]], objects: Iterable[Resource] = ()) -> Cache:
    stores: list[Store[Any]] = [a_store(type_, objects) for type_ in types]
    return Cache(stores)
