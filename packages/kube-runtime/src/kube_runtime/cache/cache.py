"""The cache: the stores of all informers, by type.

A type without an informer raises; it must never look like a type without objects, or a controller would
create objects that exist.
"""

import builtins
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from kube_runtime.cache.store import Change, Handler, Store
from kube_runtime.errors import DecodeError
from kube_runtime.kind import Key
from kube_runtime.types.meta import R, Resource

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Derived:
    """A derived value, and the revisions of the types that it was computed from."""

    revisions: tuple[int, ...]
    values: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any])


class Cache:
    """The watched objects by type. They are frozen and shared by all readers.

    Raises:
        LookupError: the type is not watched; from every method but `serves`, `forbids` and `holds`.
    """

    def __init__(self, stores: Iterable[Store[Any]] = ()) -> None:
        self._stores: dict[type[Resource], Store[Any]] = {store.type_: store for store in stores}
        self._derived: dict[tuple[type[Resource], ...], _Derived] = {}

    def add(self, store: Store[Any]) -> None:
        """Add the store of one more type.

        Raises:
            ValueError: the type has a store already; two watches of one type would contradict each other.
        """
        if store.type_ in self._stores:
            raise ValueError(f"{store.type_.__name__} is watched twice")
        self._stores[store.type_] = store

    def holds(self, type_: type[Resource]) -> bool:
        """Whether the type is watched."""
        return type_ in self._stores

    def store(self, type_: type[R]) -> Store[R]:
        """The store of a type."""
        store = self._stores.get(type_)
        if store is None:
            raise LookupError(f"{type_.__name__} is not watched")
        return cast("Store[R]", store)

    def others_of_kind(self, type_: type[Resource]) -> Iterator[Store[Any]]:
        """The stores of the other types of the same kind."""
        return (
            store
            for other, store in self._stores.items()
            if other is not type_ and other.KIND == type_.KIND
        )

    def get(self, type_: type[R], key: Key) -> R | None:
        """The object with that key, if there is one."""
        return self.store(type_).shown.get(key)

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:
        """The objects of a namespace; by default of all."""
        return self.store(type_).shown.list(namespace)

    def owned_by(
        self, uid: str, types: Iterable[type[Resource]], namespace: str = ""
    ) -> builtins.list[Resource]:
        """The objects of these types with an owner reference to this uid, as controller or not.

        A namespace excludes objects of others: Kubernetes knows no owners across namespaces, but any user
        may write the uid of an owner into an object in a namespace of their own.
        """
        return [
            resource
            for type_ in types
            for resource in self.store(type_).shown.owned_by(uid)
            if not namespace or resource.metadata.namespace == namespace
        ]

    def derived(
        self, name: Hashable, types: tuple[type[Resource], ...], compute: Callable[[], T]
    ) -> T:
        """The value of `compute`, recomputed only when an object of these types has changed.

        For values that every reconcile reads and few changes affect. A change of one object drops all values
        derived from these types.
        """
        revisions = tuple(self.store(type_).revision for type_ in types)
        derived = self._derived.get(types)
        if derived is None or derived.revisions != revisions:
            derived = self._derived[types] = _Derived(revisions)
        try:
            value: T = derived.values[name]
        except KeyError:
            value = derived.values[name] = compute()
        return value

    def broken(self, type_: type[Resource], key: Key) -> DecodeError | None:
        """Why the newest state of an object cannot be decoded, if so; `get` returns the last good one."""
        return self.store(type_).broken.get(key)

    def subscribe_deleted(self, type_: type[Resource], *handlers: Callable[[str], None]) -> None:
        """Call the handlers with the uid of each deleted object of that type."""

        def on_change(change: Change[Any]) -> None:
            if change.new is None and change.old is not None:
                for handler in handlers:
                    handler(change.old.metadata.uid)

        self.subscribe(type_, on_change)

    def subscribe_broken(self, type_: type[Resource], handler: Callable[[Key], None]) -> None:
        """Call `handler` when an object of that type becomes `broken`, or readable again."""
        self.store(type_).subscribe_broken(handler)

    def serves(self, type_: type[Resource]) -> bool:
        """Whether the type is watched, and the API server serves its kind."""
        store = self._stores.get(type_)
        return store is not None and store.is_served

    def forbids(self, type_: type[Resource]) -> bool:
        """Whether the type is watched and its kind is installed, but may not be read."""
        store = self._stores.get(type_)
        return store is not None and store.is_forbidden

    def subscribe(self, type_: type[R], handler: Handler[R]) -> None:
        """Call `handler` for each change of that type, once it is stored."""
        self.store(type_).subscribe(handler)

    def subscribe_served(self, type_: type[Resource], handler: Callable[[], None]) -> None:
        """Call `handler` when `serves` changes, or, while it is false, `forbids`."""
        self.store(type_).subscribe_served(handler)
