"""Objects that several owners use at once, such as the headless Service of a base model.

No owner controls such an object: each user has a plain owner reference, and the garbage collector removes
the object with its last user. Two users write the same list of references; every write therefore carries
the resource version that it was computed from, and a lost race is retried.

The role of a RoleBinding is immutable: a binding of ours to another role is deleted and recreated. A
process that is killed in between leaves none, and the next reconcile of any user creates it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial

from kube_runtime.apply.drift import content, content_of, has_no_drift
from kube_runtime.apply.managed_fields import ManagedFieldsUpgrade
from kube_runtime.apply.result import (
    Applied,
    ApplyProgress,
    Attempt,
    Blocked,
    Change,
    Obstacle,
    Obstructed,
    Verb,
    each_applied,
    manager_conflict,
    name_conflict,
    rejected,
)
from kube_runtime.apply.suppression import Target, WriteSuppression, digest_of
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Watches
from kube_runtime.client.requests import ABSENT
from kube_runtime.errors import Forbidden, Invalid
from kube_runtime.kind import Key, Kind, Object, key_of
from kube_runtime.types.meta import OwnerReference, Resource


@dataclass(frozen=True, slots=True)
class SharedApplier:
    """Applies shared objects for one user after the other.

    `marker` is the label that identifies our shared objects, as name and value. An earlier
    operator made such objects with one controller; `take_over` makes them shared.
    """

    writer: Writer
    cache: Cache
    marker: tuple[str, str]
    take_over: ManagedFieldsUpgrade | None = None
    restraint: WriteSuppression = field(default_factory=WriteSuppression)

    async def apply(
        self, user: Resource, *, wanted: Sequence[Object], types: Iterable[type[Resource]]
    ) -> Applied:
        """Make `user` one of the owners of each wanted object, and of no other of these types.

        Raises:
            Conflict: another user wrote first; the caller retries at once.
            OperatorError: the API server could not be reached or failed.
        """
        types = tuple(types)
        progress = await each_applied(wanted, types, partial(self._attempt, user))
        kept = {(each["kind"], key_of(each)) for each in wanted}
        uid, namespace = user.metadata.uid, user.metadata.namespace
        unused = [
            each
            for each in self.cache.owned_by(uid, types, namespace)
            if (each.KIND.name, each.key) not in kept and self._is_ours(each)
        ]
        if unused:
            await self.writer.ensure_newest(user)
        for each in unused:
            await self._leave(user, each, progress)
        return progress.applied

    async def _attempt(self, user: Resource, attempt: Attempt) -> None:
        live: Resource | None = self.cache.get(attempt.type_, key_of(attempt.wanted))
        earlier = self._earlier(user, live)
        if live is not None and earlier is not None:
            live = await earlier(live)
        elif live is not None and not self._is_ours(live):
            raise Obstructed(name_conflict(live, user))
        body = self._body(user, attempt.wanted, live)
        if live is not None and earlier is None and has_no_drift(content(body), content_of(live)):
            attempt.present = live
            return
        await self._write(user, attempt, live, body)

    async def _write(
        self, user: Resource, attempt: Attempt, live: Resource | None, body: Object
    ) -> None:
        uid, digest = live.metadata.uid if live else ABSENT, digest_of(attempt.wanted)
        wish = Target(user.metadata.uid, attempt.wanted["kind"], key_of(attempt.wanted))
        with self.restraint.attempting(wish, digest, uid):
            if live is not None and _binds_another_role(live, attempt.wanted):
                _ensure_stays(live)
                object_ = f"{wish.kind} {wish.key}"
                if self.restraint.is_contested(object_, digest):
                    attempt.present, attempt.contested = live, manager_conflict(live)
                    return
                self.restraint.note_write(object_, digest)
                await self.writer.ensure_newest(user)
                version = live.metadata.resource_version
                await self.writer.delete(type(live), live.key, uid=uid, resource_version=version)
                uid = ABSENT
            attempt.present = await self.writer.apply(
                attempt.type_, body, force=uid != ABSENT, uid=uid
            )
        attempt.verb = Verb.UPDATE if live else Verb.CREATE

    def _is_ours(self, live: Resource) -> bool:
        name, value = self.marker
        return live.metadata.controller is None and live.metadata.labels.get(name) == value

    def _earlier(self, user: Resource, live: Resource | None) -> ManagedFieldsUpgrade | None:
        """What takes over an object that an earlier operator made for one owner of our kinds."""
        if self.take_over is None or live is None or not self.take_over.is_due(live):
            return None
        name, value = self.marker
        controller = live.metadata.controller
        is_marked = live.metadata.labels.get(name) == value
        if controller is None or not is_marked or controller.api_version != user.KIND.api_version:
            return None
        return self.take_over

    async def _leave(self, user: Resource, live: Resource, progress: ApplyProgress) -> None:
        """Take one user away; the object is deleted when none is left."""
        kind, name, uid = live.KIND.name, live.metadata.name, live.metadata.uid
        version = live.metadata.resource_version
        others = [each for each in live.metadata.owner_references if each.uid != user.metadata.uid]
        try:
            if others:
                references = [_reference(each) for each in others]
                patch = {"metadata": {"resourceVersion": version, "ownerReferences": references}}
                await self.writer.merge_patch(type(live), live.key, patch, uid=uid)
            else:
                await self.writer.delete(type(live), live.key, uid=uid, resource_version=version)
        except (Invalid, Forbidden) as error:
            progress.blocked.append(rejected(kind, name, error))
        else:
            progress.changes.append(Change(Verb.UPDATE if others else Verb.DELETE, kind, name))

    def _body(self, user: Resource, wanted: Object, live: Resource | None) -> Object:
        metadata = wanted["metadata"]
        name, value = self.marker
        users = {each.uid: each for each in (live.metadata.owner_references if live else ())}
        users[user.metadata.uid] = _user_reference(user)  # in its place, or two users never agree
        references = [_reference(each) for each in users.values()]
        guard = {"resourceVersion": live.metadata.resource_version} if live else {}
        labels = {**metadata.get("labels", {}), name: value}
        return {
            **wanted,
            "metadata": {**metadata, **guard, "labels": labels, "ownerReferences": references},
        }


def shared_watch(type_: type[Resource], user: Kind) -> Watches:
    """What wakes every user of that kind when a shared object of that type changes."""

    def keys(changed: Resource) -> Iterator[Key]:
        for owner in changed.metadata.owner_references:
            if not owner.controller and (owner.api_version, owner.kind) == (
                user.api_version,
                user.name,
            ):
                yield Key(changed.metadata.namespace, owner.name)

    return Watches(type_, keys)


def _binds_another_role(live: Resource, wanted: Object) -> bool:
    """Whether it is a binding to another role than the wanted one. Other kinds have no `roleRef`."""
    return bool(content_of(live).get("roleRef") != wanted.get("roleRef"))


def _ensure_stays(live: Resource) -> None:
    """Raises Obstructed if it is being deleted already; its removal wakes its users."""
    if live.metadata.deletion_timestamp:
        kind, name = live.KIND.name, live.metadata.name
        text = f"{kind} {name} binds another role and is going"
        raise Obstructed(Blocked(Obstacle.PREDECESSOR, kind, name, text))


def _user_reference(user: Resource) -> OwnerReference:
    return OwnerReference(
        api_version=user.KIND.api_version,
        kind=user.KIND.name,
        name=user.metadata.name,
        uid=user.metadata.uid,
    )


def _reference(owner: OwnerReference) -> Object:
    return {
        "apiVersion": owner.api_version,
        "kind": owner.kind,
        "name": owner.name,
        "uid": owner.uid,
    }
