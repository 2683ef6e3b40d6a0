"""Stores and caches that have listed some objects, without any API server."""

from collections.abc import Iterable
from typing import Any, TypeVar

from kube_runtime.cache.cache import Cache
from kube_runtime.cache.store import Store
from kube_runtime.types.meta import Resource
from kube_runtime.watch.events import Present, Started, Synced

R = TypeVar("R", bound=Resource)


def a_store(type_: type[R], objects: Iterable[Resource] = ()) -> Store[R]:
    """A store that has listed those of the objects that are of its type."""
    store = Store(type_)
    listed(store, type_, objects)
    return store


def listed(store: Store[R], type_: type[R], objects: Iterable[Resource]) -> None:
    """Store those of the objects that are of the store's type, as a first list."""
    store.on_watch_event(Started())
    for each in objects:
        if isinstance(each, type_):
            store.on_watch_event(Present(each))
    store.on_watch_event(Synced())


def a_cache(types: Iterable[type[Resource]], objects: Iterable[Resource] = ()) -> Cache:
    """A cache of these types with these objects."""
    stores: list[Store[Any]] = [a_store(each, objects) for each in types]
    return Cache(stores)
