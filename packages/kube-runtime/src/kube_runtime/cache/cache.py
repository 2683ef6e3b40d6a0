"""The state of the cluster, by type: the stores of all informers behind one interface.

A type without an informer is a bug and raises; it must never look like a type without
objects, or a controller will create what exists and delete what is missing.
"""

import builtins
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from kube_runtime.cache.store import Change, Handler, Store
from kube_runtime.errors import DecodeError
from kube_runtime.kind import Key
from kube_runtime.types.meta import R, Resource

__all__ = ["Cache", "Change", "Handler"]

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class _Derived:
    """A derived value, and the revisions of the types that it was computed from."""

    revisions: tuple[int, ...]
    values: dict[Hashable, Any] = field(default_factory=dict[Hashable, Any])


class Cache:
    """Watched objects by type. They are shared by every reader, and frozen.

    Raises:
        LookupError: from every method but `serves`, `forbids` and `holds`, for a type that is not watched.
    """

    def __init__(self, stores: Iterable[Store[Any]] = ()) -> None:
        self._stores: dict[type[Resource], Store[Any]] = {store.type_: store for store in stores}
        self._derived: dict[tuple[type[Resource], ...], _Derived] = {}

    def add(self, store: Store[Any]) -> None:
        """Add the store of one more type.

        Raises:
            ValueError: the type is there already; two watches of one type would contradict each other.
        """
        if store.type_ in self._stores:
            raise ValueError(f"{store.type_.__name__} is watched twice")
        self._stores[store.type_] = store

    def holds(self, type_: type[Resource]) -> bool:
        """Whether objects of this type are watched at all."""
        return type_ in self._stores

    def store(self, type_: type[R]) -> Store[R]:
        """The objects of one type."""
        store = self._stores.get(type_)
        if store is None:
            raise LookupError(f"{type_.__name__} is not watched")
        return cast("Store[R]", store)

    def get(self, type_: type[R], key: Key) -> R | None:
        """The object of that type and key."""
        return self.store(type_).shown.get(key)

    def list(self, type_: type[R], namespace: str = "") -> Iterator[R]:
        """The objects of a namespace; of all of them when it is empty."""
        return self.store(type_).shown.list(namespace)

    def owned_by(
        self, uid: str, types: Iterable[type[Resource]], namespace: str = ""
    ) -> builtins.list[Resource]:
        """The objects of these types that name this uid among their owners, as controller or not.

        Only those in that namespace, if one is given: an owner in another one is none to Kubernetes, but
        any user may write its uid into their objects, and would so affect objects of others.
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
        """The value of `compute`; recomputed only when an object of these types has changed.

        For values that every reconcile reads and few changes affect. A change of one object drops all
        values derived from these types, also those that are never read again.
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
        """Why the newest state of that object could not be read, if so; `get` has the last good one."""
        return self.store(type_).broken.get(key)

    def subscribe_deleted(self, type_: type[Resource], *handlers: Callable[[str], None]) -> None:
        """Call the handlers with the uid of each object of that type that is gone."""

        def on_change(change: Change[Any]) -> None:
            if change.new is None and change.old is not None:
                for handler in handlers:
                    handler(change.old.metadata.uid)

        self.subscribe(type_, on_change)

    def subscribe_broken(self, type_: type[Resource], handler: Callable[[Key], None]) -> None:
        """Call `handler` for each object of that type that becomes `broken`, or readable again."""
        self.store(type_).subscribe_broken(handler)

    def serves(self, type_: type[Resource]) -> bool:
        """Whether that type is watched, and the API server serves its kind."""
        store = self._stores.get(type_)
        return store is not None and store.is_served

    def forbids(self, type_: type[Resource]) -> bool:
        """Whether that type is watched and installed, and may not be read. It may still be `served`."""
        store = self._stores.get(type_)
        return store is not None and store.is_forbidden

    def subscribe(self, type_: type[R], handler: Handler[R]) -> None:
        """Call `handler` for each change of that type, after it is stored."""
        self.store(type_).subscribe(handler)

    def subscribe_served(self, type_: type[Resource], handler: Callable[[], None]) -> None:
        """Call `handler` whenever `serves` or, of what is not served, `forbids` changes its answer."""
        self.store(type_).subscribe_served(handler)
