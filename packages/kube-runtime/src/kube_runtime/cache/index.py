"""Index the objects of one kind by namespace and name, and by the uid of each owner."""

from collections.abc import Iterator
from itertools import chain
from typing import Generic, TypeVar

from kube_runtime.kind import Key
from kube_runtime.types.meta import R

_Outer = TypeVar("_Outer")
_Inner = TypeVar("_Inner")
_Value = TypeVar("_Value")


class Index(Generic[R]):
    """Lookups, consistent with each other. Returned iterators do not change with the index."""

    def __init__(self) -> None:
        self._namespaces: dict[str, dict[str, R]] = {}
        self._owned: dict[str, dict[Key, R]] = {}

    def __len__(self) -> int:
        """Number of objects."""
        return sum(map(len, self._namespaces.values()))

    def get(self, key: Key) -> R | None:
        """The object with that key, if there is one."""
        return self._namespaces.get(key.namespace, {}).get(key.name)

    def list(self, namespace: str = "") -> Iterator[R]:
        """The objects of a namespace; by default of all."""
        if namespace:
            return iter(tuple(self._namespaces.get(namespace, {}).values()))
        return iter(tuple(chain.from_iterable(map(dict.values, self._namespaces.values()))))

    def owned_by(self, uid: str) -> Iterator[R]:
        """The objects with an owner reference to this uid."""
        return iter(tuple(self._owned.get(uid, {}).values()))

    def put(self, key: Key, new: R | None) -> None:
        """Replace the object with that key by `new`; None removes it."""
        old = self.get(key)
        if old is not None:
            for owner in old.metadata.owner_references:
                _drop(self._owned, owner.uid, key)
        if new is None:
            _drop(self._namespaces, key.namespace, key.name)
            return
        self._namespaces.setdefault(key.namespace, {})[key.name] = new
        for owner in new.metadata.owner_references:
            self._owned.setdefault(owner.uid, {})[key] = new


def _drop(nested: dict[_Outer, dict[_Inner, _Value]], outer: _Outer, inner: _Inner) -> None:
    members = nested.get(outer, {})
    members.pop(inner, None)
    if not members:
        nested.pop(outer, None)
