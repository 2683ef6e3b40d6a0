"""Informer transforms: what the cache keeps of an object, and of all objects of one owner.

Memory follows what is kept, and so does what can leak: a cluster has ten thousand pods of many kilobytes
each, and pull secrets contain credentials. Watches select by label, which users may put on their own
objects too.
"""

import base64
from collections.abc import Callable, Sequence
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.component.api import GROUP
from dynamo_operator.shared.cluster import PullSecret, registry_of_credential
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Change
from kube_runtime.types.meta import Key, Metadata, R, Resource, from_json

_COPY = "kubectl.kubernetes.io/last-applied-configuration"
_MOST_ENTRIES = 32
_SHORT = 256
"""Most characters of an annotation that is kept."""
_MOST_REGISTRIES = 64
"""Of one pull Secret."""


def is_controlled_by_us(resource: Resource) -> bool:
    """Whether one of our kinds controls the object."""
    controller = resource.metadata.controller
    return controller is not None and controller.api_version.partition("/")[0] == GROUP


def metadata_only(resource: R) -> R:
    """Keep little of the metadata of an object, and nothing else."""
    kept: R = type(resource)(metadata=slim(resource.metadata))
    return kept


def slimmed(resource: R) -> R:
    """Keep an object with little of its metadata."""
    return replace(resource, metadata=slim(resource.metadata))


def slim(metadata: Metadata) -> Metadata:
    """The first entries of each part of the metadata: controllers, our labels and short annotations first."""
    owners = sorted(metadata.owner_references, key=lambda owner: not owner.controller)
    named = sorted(metadata.labels.items(), key=lambda label: GROUP not in label[0])
    noted = [it for it in metadata.annotations.items() if len(it[1]) <= _SHORT and it[0] != _COPY]
    return replace(
        metadata,
        labels=dict(named[:_MOST_ENTRIES]),
        annotations=dict(noted[:_MOST_ENTRIES]),
        owner_references=tuple(owners[:_MOST_ENTRIES]),
        finalizers=(),
    )


class _Login(msgspec.Struct):
    # The fields of an entry that the kubelet reads, with their types.
    auth: str | None = None
    username: str | None = None
    password: str | None = None
    email: str | None = None


class _DockerConfig(msgspec.Struct):
    auths: dict[str, _Login | None] = {}


def registries_only(secret: PullSecret) -> PullSecret:
    """Replace the data of a pull secret by the hosts of its registries; a malformed one has none.

    One malformed entry makes the whole secret malformed, as for the kubelet, which then fails every pull of
    the pod. The annotations go too: `kubectl apply` leaves a copy of the whole secret in one of them.
    """
    try:
        text = base64.b64decode(secret.data.get(".dockerconfigjson", ""), validate=True)
        auths = from_json(text or b"{}", _DockerConfig).auths
        encoded = ["".join(login.auth.split()) for login in auths.values() if login and login.auth]
        decoded = [base64.b64decode(auth + "=" * (-len(auth) % 4), validate=True) for auth in encoded]
        if not all(b":" in user_and_password for user_and_password in filter(None, decoded)):
            auths = {}
    except (ValueError, msgspec.DecodeError, RecursionError):
        auths = {}  # the kubelet cannot use it either, and reports it on the pod
    hosts = {registry_of_credential(server): "" for server in islice(auths, _MOST_REGISTRIES)}
    metadata = replace(slim(secret.metadata), annotations={})
    return replace(secret, metadata=metadata, data=hosts)


OWNED_BYTES = 2 * 1024 * 1024
"""Of the children of one kind and owner, as JSON. The largest ones are about as large as their specs."""


_MARKERS = (labels.MANAGED_BY, labels.APP_MANAGED_BY)


# Any user may write a label, an owner reference or a name. So an owner counts only if it exists.
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


# Bounded, so that a user who may create ConfigMaps cannot fill the memory with them.
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
