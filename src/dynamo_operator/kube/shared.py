"""Objects that several owners use at once, such as the headless Service of a base model.

No owner controls such an object: each user has a plain owner reference, and the garbage collector removes
the object with its last user. The hard part is that two users write the same list of references; every
write therefore carries the resource version that it was computed from, and a lost race is tried again.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from dynamo_operator.kube.apply import Applied, Blocked, Change, Verb, name_conflict
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.client import ABSENT
from dynamo_operator.kube.contained import contained, content, content_of
from dynamo_operator.kube.controller import Watches
from dynamo_operator.kube.kind import Key, Kind, Object, key_of
from dynamo_operator.kube.types.meta import OwnerReference, Resource
from dynamo_operator.kube.writer import Writer


@dataclass(frozen=True, slots=True)
class SharedApplier:
    """Applies shared objects for one user after the other.

    `marker` is the label that tells our shared objects from those of others, as name and value.
    """

    writer: Writer
    cache: Cache
    marker: tuple[str, str]

    async def apply(
        self, user: Resource, *, wanted: Sequence[Object], types: Iterable[type[Resource]]
    ) -> Applied:
        """Make `user` one of the owners of each wanted object, and of no other of these types.

        Raises:
            Conflict: another user wrote first; the caller tries again at once.
            OperatorError: the API server could not be reached or failed.
        """
        by_kind = {(each.KIND.api_version, each.KIND.name): each for each in types}
        objects: list[Resource] = []
        changes: list[Change] = []
        blocked: list[Blocked] = []
        for each in wanted:
            type_ = by_kind[each["apiVersion"], each["kind"]]
            live = self.cache.get(type_, key_of(each))
            if live is not None and not self._is_ours(live):
                blocked.append(name_conflict(live))
                continue
            body = self._body(user, each, live)
            if live is not None and contained(content(body), content_of(live)):
                objects.append(live)
                continue
            uid = live.metadata.uid if live else ABSENT
            objects.append(await self.writer.apply(type_, body, force=live is not None, uid=uid))
            verb = Verb.UPDATE if live else Verb.CREATE
            changes.append(Change(verb, type_.KIND.name, each["metadata"]["name"]))
        kept = {(each["kind"], key_of(each)) for each in wanted}
        for unused in self.cache.owned_by(user.metadata.uid, by_kind.values()):
            if (unused.KIND.name, unused.key) not in kept and self._is_ours(unused):
                changes.append(await self._leave(user, unused))
        return Applied(tuple(objects), tuple(changes), tuple(blocked))

    def _is_ours(self, live: Resource) -> bool:
        name, value = self.marker
        return live.metadata.controller is None and live.metadata.labels.get(name) == value

    async def _leave(self, user: Resource, live: Resource) -> Change:
        """Take one user away; the object goes when nobody is left."""
        version = live.metadata.resource_version
        others = [each for each in live.metadata.owner_references if each.uid != user.metadata.uid]
        uid = live.metadata.uid
        if not others:
            await self.writer.delete(type(live), live.key, uid=uid, resource_version=version)
            return Change(Verb.DELETE, live.KIND.name, live.metadata.name)
        references = [_reference(each) for each in others]
        patch = {"metadata": {"resourceVersion": version, "ownerReferences": references}}
        await self.writer.merge_patch(type(live), live.key, patch, uid=uid)
        return Change(Verb.UPDATE, live.KIND.name, live.metadata.name)

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
