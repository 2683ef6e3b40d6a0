"""Ownership policies of `Applier`, each with the desired objects that it is for.

A reconcile passes several such sets to the applier, in the order in which they are needed.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from kube_runtime.apply.drift import content_of
from kube_runtime.apply.result import Applied, Obstacle, controls
from kube_runtime.cache.informer import Watches
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.types.meta import OwnerReference, Resource


@dataclass(frozen=True, slots=True)
class Controlled:
    """Objects that the owner controls: kept as desired, and deleted when they are not desired any more.

    An object of that name without this controller, by uid, is a conflict. `types` are all kinds that the
    owner may control. `spared` are kinds and keys of objects that are neither written nor deleted.

    `objects` may be a generator, and `reduced` drops fields of each result, so that a thousand large objects
    are never in memory together. `decided_with` are the kinds and keys of the owner's live objects on which
    `objects` depend: one that came into the cache since then is a Conflict, so that the owner decides again.
    None means: they depend on none.
    """

    objects: Iterable[Object]
    types: Iterable[type[Resource]]
    spared: Collection[tuple[str, Key]] = ()
    reduced: Callable[[Resource], Resource] = lambda live: live
    decided_with: Container[tuple[str, Key]] | None = None


@dataclass(frozen=True, slots=True)
class Shared:
    """Objects with several owners at once, such as the headless Service of a base model.

    None of them is the controller. The garbage collector deletes the object with its last owner, and so does
    the last owner that no longer desires it. `marker` is the label, as name and value, that identifies our
    shared objects; an object of that name without it is a conflict. The role of a RoleBinding is immutable,
    so a binding to another role is deleted and created again.
    """

    objects: Iterable[Object]
    types: Iterable[type[Resource]]
    marker: tuple[str, str]

    def is_marked(self, live: Resource) -> bool:
        """Whether an object has the marker label."""
        name, value = self.marker
        return live.metadata.labels.get(name) == value

    def is_shared(self, live: Resource) -> bool:
        """Whether an object is a shared object of ours."""
        return live.metadata.controller is None and self.is_marked(live)

    def body(self, owner: Resource, desired: Object, live: Resource | None) -> Object:
        """The object to apply: with the present owners and `owner`, for exactly the live version.

        Several owners write the same list of references; the version makes the late one fail.
        """
        name, value = self.marker
        references = live.metadata.owner_references if live else ()
        owners = {reference.uid: reference for reference in references}
        # At its present place in the list: two writers with another order would never agree.
        owners[owner.metadata.uid] = _as_owner(owner)
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

    An object that exists is left alone, also that of another client, and one that is no longer desired is not
    deleted. The garbage collector deletes it with its owner. `retained` are names of objects that outlive
    the owner: they get no owner reference, and lose that to `owner` if they have it.
    """

    objects: Iterable[Object]
    types: Iterable[type[Resource]]
    retained: Container[str] = ()

    def references(self, owner: Resource, desired: Object) -> Object:
        """The metadata with the owner reference of a new object."""
        is_retained = desired["metadata"]["name"] in self.retained
        return {} if is_retained else {"ownerReferences": [controller_reference(owner)]}

    def loses_owner(self, owner: Resource, live: Resource) -> bool:
        """Whether an object is retained, but has a reference to its owner."""
        is_retained = live.metadata.name in self.retained
        return is_retained and controls(owner, live) and not live.metadata.deletion_timestamp


DesiredObjects: TypeAlias = Controlled | Shared | CreateOnly
"""Desired objects under one ownership policy."""


def may_prune(policy: DesiredObjects, applied: Applied) -> bool:
    """Whether to delete the objects that are no longer desired.

    Not while a name is taken, a kind is missing or the API server fails: the old objects may be all that
    serves.
    """
    if applied.failure is not None:
        return False
    match policy:
        case Controlled():
            return all(refusal.obstacle is Obstacle.REJECTED for refusal in applied.blocked)
        case Shared():
            return True
        case CreateOnly():
            return False


def is_removable(policy: DesiredObjects, owner: Resource, live: Resource) -> bool:
    """Whether an object of `owner` is subject to this policy, and is not being deleted."""
    if isinstance(policy, Shared):
        return policy.is_shared(live)
    return controls(owner, live) and live.metadata.deletion_timestamp is None


def controller_reference(owner: Resource) -> Object:
    """The owner reference that makes `owner` the controller of an object."""
    flags = {"controller": True, "blockOwnerDeletion": True}
    return {**_plain_reference(_as_owner(owner)), **flags}


def references_without(owner: Resource, live: Resource) -> Sequence[Object]:
    """The owner references of an object, without that to `owner`."""
    uid, references = owner.metadata.uid, live.metadata.owner_references
    return [msgspec.to_builtins(reference) for reference in references if reference.uid != uid]


def shared_watch(type_: type[Resource], owner: Kind) -> Watches:
    """Reconcile every owner of that kind when a shared object of that type changes."""

    def keys(changed: Resource) -> Iterator[Key]:
        for reference in changed.metadata.owner_references:
            is_of_kind = (reference.api_version, reference.kind) == (owner.api_version, owner.name)
            if is_of_kind and not reference.controller:
                yield Key(changed.metadata.namespace, reference.name)

    return Watches(type_, keys)


def binds_another_role(live: Resource, desired: Object) -> bool:
    """Whether a live binding has another role than the desired one. Other kinds have no `roleRef`."""
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
