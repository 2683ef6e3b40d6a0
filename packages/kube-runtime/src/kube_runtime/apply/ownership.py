"""Who owns a desired object: the policies of `Applier`, and what each of them says of a live object.

A policy comes with the objects that it is for. A reconcile passes several such sets to the applier, in the
order in which they are needed.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from kube_runtime.apply.drift import content_of
from kube_runtime.apply.result import Blocked, Obstacle, controls
from kube_runtime.cache.informer import Watches
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.types.meta import OwnerReference, Resource


@dataclass(frozen=True, slots=True)
class Controlled:
    """Objects that the owner controls: kept as desired, and deleted when they are not desired any more.

    An object of that name without this controller, by uid, is a conflict. `types` are all kinds that the
    owner ever has in this way. `spared` are kinds and keys of objects that are neither written nor deleted.
    Each of `objects` is read once, and `reduced` is what is kept of what the API server holds of it, so that
    a thousand large ones are never in memory together. `decided_with` are the kinds and keys of the owner's
    objects that were known when `objects` were decided: one that came into the cache since then is a
    Conflict, so that the owner decides again with it. None means: they do not depend on live objects.
    """

    objects: Iterable[Object]
    types: Iterable[type[Resource]]
    spared: Collection[tuple[str, Key]] = ()
    reduced: Callable[[Resource], Resource] = lambda live: live
    decided_with: Container[tuple[str, Key]] | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """Objects with several owners at once, such as the headless Service of a base model.

    None of them is the controller. The garbage collector removes the object with its last owner, and so does
    an owner that does not want it any more. `marker` is the label, as name and value, that identifies
    our shared objects; an object of that name without it is a conflict. The role of a RoleBinding is
    immutable, so a binding to another role is deleted and created again.
    """

    objects: Iterable[Object]
    types: Iterable[type[Resource]]
    marker: tuple[str, str]

    def is_marked(self, live: Resource) -> bool:
        """Whether an object has the label of shared objects."""
        name, value = self.marker
        return live.metadata.labels.get(name) == value

    def is_shared(self, live: Resource) -> bool:
        """Whether an object is one of these."""
        return live.metadata.controller is None and self.is_marked(live)

    def body(self, owner: Resource, desired: Object, live: Resource | None) -> Object:
        """What to apply: all owners that there are and `owner`, for exactly the live version.

        Two owners write the same list of references. The version makes the one that is late fail.
        """
        name, value = self.marker
        references = live.metadata.owner_references if live else ()
        owners = {reference.uid: reference for reference in references}
        owners[owner.metadata.uid] = _as_owner(owner)  # in its place, or two owners never agree
        changed = {
            "labels": {**desired["metadata"].get("labels", {}), name: value},
            "ownerReferences": [_plain_reference(reference) for reference in owners.values()],
        }
        if live is not None:
            changed["resourceVersion"] = live.metadata.resource_version
        return {**desired, "metadata": {**desired["metadata"], **changed}}


@dataclass(frozen=True, slots=True)
class CreateOnly:
    """Objects that hold data: created where none exist, controlled by the owner, and never changed again.

    An object that exists is left alone, no matter who created it and what it contains, and one that is not
    desired any more is not deleted. Only the deletion of its owner deletes it. `retained` are names of those
    that outlive it: they get no owner, and lose `owner` if they have it.
    """

    objects: Iterable[Object]
    types: Iterable[type[Resource]]
    retained: Container[str] = ()

    def references(self, owner: Resource, desired: Object) -> Object:
        """The part of the metadata that says who owns a new object."""
        is_retained = desired["metadata"]["name"] in self.retained
        return {} if is_retained else {"ownerReferences": [controller_reference(owner)]}

    def is_to_be_released(self, owner: Resource, live: Resource) -> bool:
        """Whether an object is retained, but would be deleted with its owner."""
        is_retained = live.metadata.name in self.retained
        return is_retained and controls(owner, live) and not live.metadata.deletion_timestamp


DesiredObjects: TypeAlias = Controlled | Shared | CreateOnly
"""Desired objects under one ownership policy."""


def may_prune(policy: DesiredObjects, blocked: Iterable[Blocked]) -> bool:
    """Whether to remove what a set of desired objects does not contain any more.

    While a name is taken or a kind is missing, a controlled object that is to go may be all that serves.
    """
    match policy:
        case Controlled():
            return all(refusal.obstacle is Obstacle.REJECTED for refusal in blocked)
        case Shared():
            return True
        case CreateOnly():
            return False


def is_removable(policy: DesiredObjects, owner: Resource, live: Resource) -> bool:
    """Whether an object that has `owner` as an owner belongs to a set, and is not on its way out."""
    if isinstance(policy, Shared):
        return policy.is_shared(live)
    return controls(owner, live) and live.metadata.deletion_timestamp is None


def controller_reference(owner: Resource) -> Object:
    """The owner reference that makes `owner` the controller of an object."""
    flags = {"controller": True, "blockOwnerDeletion": True}
    return {**_plain_reference(_as_owner(owner)), **flags}


def references_without(owner: Resource, live: Resource) -> Sequence[Object]:
    """The owner references of an object but for that of `owner`."""
    uid, references = owner.metadata.uid, live.metadata.owner_references
    return [msgspec.to_builtins(reference) for reference in references if reference.uid != uid]


def shared_watch(type_: type[Resource], owner: Kind) -> Watches:
    """What wakes every owner of that kind when a shared object of that type changes."""

    def keys(changed: Resource) -> Iterator[Key]:
        for reference in changed.metadata.owner_references:
            is_of_kind = (reference.api_version, reference.kind) == (owner.api_version, owner.name)
            if is_of_kind and not reference.controller:
                yield Key(changed.metadata.namespace, reference.name)

    return Watches(type_, keys)


def binds_another_role(live: Resource, desired: Object) -> bool:
    """Whether it is a binding to another role than the wanted one. Other kinds have no `roleRef`."""
    return bool(content_of(live).get("roleRef") != desired.get("roleRef"))


def _as_owner(owner: Resource) -> OwnerReference:
    kind, metadata = owner.KIND, owner.metadata
    return OwnerReference(kind.name, metadata.name, metadata.uid, kind.api_version)


def _plain_reference(owner: OwnerReference) -> Object:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
