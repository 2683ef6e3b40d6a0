"""Informer transforms: what the cache keeps of an object, and of all objects of one owner.

Memory follows what is kept, and so does what can leak: a cluster has ten thousand pods of many kilobytes
each, and pull secrets contain credentials. Watches select by label, which users may put on their own
objects too.
"""

import base64
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.component.api import GROUP
from dynamo_operator.shared.cluster import SET_NAME, PullSecret, registry_of_credential
from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import BoundedStatuses, Change
from kube_runtime.types import kinds
from kube_runtime.types.meta import Key, Metadata, R, Resource, from_json
from kube_runtime.wire import VALUE_BYTES, bytes_in_memory

_COPY = "kubectl.kubernetes.io/last-applied-configuration"
_MOST_ENTRIES = 32
_PART_BYTES = 4096
"""Of the labels, annotations or owners of an object, as JSON."""
SHORT = 256
"""Most characters of an annotation or of the host of a registry that is kept."""
_MOST_REGISTRIES = 64
"""Of one pull Secret."""
SLIM_BYTES = 64 * 1024
"""Of an object of which little is kept."""
_MOST_ENDPOINTS = 1000
_ENDPOINT_BYTES = 1024


def is_controlled_by_us(resource: Resource) -> bool:
    """Whether one of our kinds controls the object."""
    controller = resource.metadata.controller
    return controller is not None and controller.api_version.partition("/")[0] == GROUP


def is_ours(resource: Resource) -> bool:
    """Whether one of our kinds controls the object, or it has our marker, as what several of them own."""
    return is_controlled_by_us(resource) or has_marker(resource.metadata)


def has_marker(metadata: Metadata) -> bool:
    """Whether a label says that the operator manages the object."""
    return any(metadata.labels.get(marker) == labels.MANAGER for marker in _MARKERS)


def metadata_only(resource: R) -> R:
    """Keep little of the metadata of an object, and nothing else."""
    kept: R = type(resource)(metadata=slim(resource.metadata))
    return kept


def slimmed(resource: R) -> R:
    """Keep an object with little of its metadata, or only these if the rest takes more memory."""
    kept = replace(resource, metadata=slim(resource.metadata))
    return kept if bytes_in_memory(kept) <= SLIM_BYTES else type(resource)(metadata=kept.metadata)


def slimmed_set(replicas: kinds.StatefulSet) -> kinds.StatefulSet:
    """Keep little of the metadata of a StatefulSet, and of its pod template the first annotations."""
    annotations = slim(replicas.spec.template.metadata).annotations
    template = kinds.PodTemplate(Metadata(annotations=annotations))
    return slimmed(replace(replicas, spec=kinds.StatefulSetSpec(template)))


def slimmed_slice(slice_: kinds.EndpointSlice) -> kinds.EndpointSlice:
    """Keep the endpoints of a slice, as many as the API allows, without those with long names."""
    endpoints = islice(slice_.endpoints or (), _MOST_ENDPOINTS)
    kept = tuple(one for one in endpoints if len(msgspec.json.encode(one)) <= _ENDPOINT_BYTES)
    return replace(slice_, metadata=slim(slice_.metadata), endpoints=kept)


def slim(metadata: Metadata) -> Metadata:
    """The first entries of each part of the metadata that fit: controllers and what we read first."""
    owners = sorted(metadata.owner_references, key=lambda owner: not owner.controller)
    named = sorted(metadata.labels.items(), key=lambda it: GROUP not in it[0] and it[0] != SET_NAME)
    noted = [it for it in metadata.annotations.items() if len(it[1]) <= SHORT and it[0] != _COPY]
    kept = list[list[Any]]()
    for entries in (owners, named, sorted(noted, key=lambda it: GROUP not in it[0])):
        left = _PART_BYTES  # anyone may write an owner with a long name, for example
        kept.append([])
        for entry in entries:
            size = len(msgspec.json.encode(entry))
            if size <= left and len(kept[-1]) < _MOST_ENTRIES:
                kept[-1].append(entry)
                left -= size
    first_owners, first_labels, first_annotations = kept
    return replace(
        metadata,
        labels=dict(first_labels),
        annotations=dict(first_annotations),
        owner_references=tuple(first_owners),
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
    hosts = map(registry_of_credential, islice(auths, _MOST_REGISTRIES))
    metadata = replace(slim(secret.metadata), annotations={})
    return replace(secret, metadata=metadata, data={host: "" for host in hosts if len(host) <= SHORT})


OWNED_BYTES = 2 * 1024 * 1024
"""Of the children of one kind and owner. The largest ones are about as large as their specs."""

NAMESPACE_BYTES = 64 * 1024 * 1024
"""Of the children of all kinds in a namespace: those of two thousand graphs."""


_MARKERS = (labels.MANAGED_BY, labels.APP_MANAGED_BY)


# Any user may write a label, an owner reference or a name. So an owner counts only if it exists.
class Owners:
    """The existing objects of our kinds, by uid, from their informers."""

    def __init__(self, informers: Sequence[Informer[Any]]) -> None:
        self.informers = informers
        self.taken: Counter[str] = Counter()
        """Bytes of their children of most kinds, by namespace."""
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
        return namespace_of(resource) if has_marker(metadata) else ""


def namespace_of(resource: Resource) -> str:
    """The namespace as owner, for kinds whose objects have none."""
    return f"namespace {resource.metadata.namespace}"


# Bounded, so that a user who may create ConfigMaps cannot fill the memory with them.
@dataclass(eq=False, slots=True)
class BoundedContent:
    """A transform of one kind: keeps the content of objects that have an owner, up to `most_bytes` per owner.

    `owner_of` returns the owner of an object, "" for none. All owners of a namespace share `namespace_bytes`,
    of which `taken` by namespace are in use.
    """

    owner_of: Callable[[Resource], str]
    most_bytes: int = OWNED_BYTES
    namespace_bytes: int = NAMESPACE_BYTES
    taken: Counter[str] = field(default_factory=Counter[str])
    _owned: Counter[str] = field(default_factory=Counter[str])
    _counted: dict[Key, tuple[str, int]] = field(default_factory=dict[Key, tuple[str, int]])

    def __call__(self, resource: R) -> R:
        """The object, or its metadata."""
        key = resource.key
        self._forget(key)
        owner = self.owner_of(resource)
        if not owner:
            return metadata_only(resource)
        metadata, conditions = resource.metadata, getattr(getattr(resource, "status", None), "conditions", ())
        parts = (metadata.labels, metadata.annotations, metadata.owner_references, metadata.finalizers)
        entries = sum(map(len, (*parts, conditions)))
        size = len(msgspec.json.encode(resource)) + entries * VALUE_BYTES
        is_over = self._owned[owner] + size > self.most_bytes
        if is_over or self.taken[key.namespace] + size > self.namespace_bytes:
            return metadata_only(resource)
        self._counted[key] = owner, size
        self._owned[owner] += size
        self.taken[key.namespace] += size
        return resource

    def on_change(self, change: Change[Any]) -> None:
        """Stop counting an object that is gone."""
        if change.new is None and change.old is not None:
            self._forget(change.old.key)

    def _forget(self, key: Key) -> None:
        owner, size = self._counted.pop(key, ("", 0))
        for bytes_of, name in ((self._owned, owner), (self.taken, key.namespace)):
            bytes_of[name] -= size
            if not bytes_of[name]:
                del bytes_of[name]


def children(type_: type[R], owners: Owners, **selected: Any) -> Informer[R]:
    """The informer of a kind of children."""
    content = BoundedContent(owners.owner_of, taken=owners.taken)
    return bounded(type_, content, after=owners.informers, **selected)


def bounded(
    type_: type[R],
    content: BoundedContent | BoundedStatuses,
    make: Callable[..., Informer[R]] = Informer,
    after: Sequence[Informer[Any]] = (),
    **selected: Any,
) -> Informer[R]:
    """The informer of a kind whose content is bounded."""
    informer = make(type_, transform=content, **selected)
    informer.after = after
    informer.store.subscribe(content.on_change)
    return informer
