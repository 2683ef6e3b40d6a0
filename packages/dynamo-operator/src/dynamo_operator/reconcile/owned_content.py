"""What the cache keeps of children, which others may write too: content of ours, metadata of the rest.

Any user may write a label, an owner reference or a name. So an owner counts only if it exists, and what is
kept for one owner is bounded: a user who may create ConfigMaps cannot fill the memory with them.
"""

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dynamo_graphs.api import labels
from dynamo_operator.reconcile.transforms import metadata_only
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Change
from kube_runtime.kind import Key
from kube_runtime.types.meta import R, Resource

OWNED_BYTES = 2 * 1024 * 1024
"""Of the children of one kind and owner, as JSON. The largest ones are about as large as their specs."""

_MARKERS = (labels.MANAGED_BY, labels.APP_MANAGED_BY)


class Owners:
    """The existing objects of our kinds, by uid, from their informers."""

    def __init__(self, informers: Sequence[Informer[Any]]) -> None:
        self.informers = informers
        self._namespaces: dict[str, str] = {}
        for informer in informers:
            informer.store.subscribe(self._on_change)

    def _on_change(self, change: Change[Any]) -> None:
        if change.old is not None:
            self._namespaces.pop(change.old.metadata.uid, None)
        if change.new is not None:
            self._namespaces[change.new.metadata.uid] = change.new.metadata.namespace

    def owner_of(self, resource: Resource) -> str:
        """The uid of an existing owner in the namespace of an object; "" if none exists.

        Objects with our label and without an owner, such as shared RoleBindings, count for their namespace.
        """
        metadata = resource.metadata
        for owner in metadata.owner_references:
            if self._namespaces.get(owner.uid) == metadata.namespace:
                return owner.uid
        is_marked = any(metadata.labels.get(marker) == labels.MANAGER for marker in _MARKERS)
        return namespace_of(resource) if is_marked else ""


def namespace_of(resource: Resource) -> str:
    """The namespace as owner, for kinds whose objects have none."""
    return f"namespace {resource.metadata.namespace}"


class BoundedContent:
    """A transform of one kind: keeps the content of objects that have an owner, up to `most_bytes` per owner.

    `owner_of` returns the owner of an object, "" for none. 0 as `most_bytes` is for kinds with many objects
    per owner, which few users may create.
    """

    def __init__(self, owner_of: Callable[[Resource], str], most_bytes: int = OWNED_BYTES) -> None:
        self._owner_of = owner_of
        self._most_bytes = most_bytes
        self._sizes: dict[str, dict[Key, int]] = {}
        self._counted: dict[Key, str] = {}

    def __call__(self, resource: R) -> R:
        """The object, or its metadata."""
        self._forget(resource.key)
        owner = self._owner_of(resource)
        if not owner:
            return metadata_only(resource)
        if not self._most_bytes:
            return resource
        size = len(msgspec.json.encode(resource))
        sizes = self._sizes.setdefault(owner, {})
        if sum(sizes.values()) + size > self._most_bytes:
            return metadata_only(resource)
        sizes[resource.key] = size
        self._counted[resource.key] = owner
        return resource

    def on_change(self, change: Change[Any]) -> None:
        """Stop counting an object that is gone."""
        if change.new is None and change.old is not None:
            self._forget(change.old.key)

    def _forget(self, key: Key) -> None:
        owner = self._counted.pop(key, "")
        sizes = self._sizes.get(owner, {})
        sizes.pop(key, None)
        if not sizes:
            self._sizes.pop(owner, None)


def children(type_: type[R], owners: Owners, **selected: Any) -> Informer[R]:
    """The informer of a kind of children."""
    informer = per_owner(type_, owners.owner_of, **selected)
    informer.after = owners.informers
    return informer


def per_owner(type_: type[R], owner_of: Callable[[Resource], str], **selected: Any) -> Informer[R]:
    """The informer of a kind whose content is bounded per owner."""
    content = BoundedContent(owner_of)
    informer = Informer(type_, transform=content, **selected)
    informer.store.subscribe(content.on_change)
    return informer
