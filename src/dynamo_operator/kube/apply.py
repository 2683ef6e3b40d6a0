"""Makes the objects of an owner what they should be: server-side applies, then deletions, in order.

The hard part is to write only when something is different, and never to write what is not ours:

- An object is ours when its controller is our owner, by uid. Another object of the same name is a
  conflict that is reported, never an overwrite.
- A hash of the wanted object is kept in an annotation of the object. An apply is due when the hash differs
  (we want something else) or when the live object no longer contains what we want (somebody changed it).
- What our owner controls and is no longer wanted is deleted, by uid, after everything else exists.
"""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeVar

import msgspec

from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.client import ABSENT, Client
from dynamo_operator.kube.contained import contained, content, content_of
from dynamo_operator.kube.emptied import without_emptied
from dynamo_operator.kube.errors import Conflict, Forbidden, Invalid, NotFound
from dynamo_operator.kube.kind import Key, Object, key_of
from dynamo_operator.kube.types.meta import OwnerReference, Resource
from dynamo_operator.kube.writer import Writer

R = TypeVar("R", bound=Resource)


class Verb(StrEnum):
    """What was done to an object; together with its kind it is the reason of an Event."""

    CREATE = "Create"
    UPDATE = "Update"
    DELETE = "Delete"


@dataclass(frozen=True, slots=True)
class Change:
    """A write that the API server accepted."""

    verb: Verb
    kind: str
    name: str

    @property
    def reason(self) -> str:
        """The Event reason, such as `CreateDeployment`. Source: specification `controllers` 1.7."""
        return f"{self.verb}{self.kind}"

    @property
    def message(self) -> str:
        """One sentence for the Event."""
        return f"{self.verb.removesuffix('e')}ed {self.kind} {self.name}"


class Obstacle(StrEnum):
    """Why an object is not what we want, although we know what to do."""

    NAME_CONFLICT = "name_conflict"
    REJECTED = "rejected_by_api_server"
    NOT_SERVED = "api_not_served"


@dataclass(frozen=True, slots=True)
class Blocked:
    """An object that could not be written, and why."""

    obstacle: Obstacle
    kind: str
    name: str
    message: str


@dataclass(frozen=True, slots=True)
class Applied:
    """What the API server holds after an apply; status is computed from this, never from the wish."""

    objects: tuple[Resource, ...] = ()
    changes: tuple[Change, ...] = ()
    blocked: tuple[Blocked, ...] = ()

    def get(self, type_: type[R], name: str) -> R | None:
        """The applied object of that kind and name, if it exists."""
        for each in self.objects:
            if isinstance(each, type_) and each.metadata.name == name:
                return each
        return None


def together(parts: Iterable[Applied]) -> Applied:
    """All of it as one."""
    each = tuple(parts)
    return Applied(
        tuple(one for part in each for one in part.objects),
        tuple(one for part in each for one in part.changes),
        tuple(one for part in each for one in part.blocked),
    )


@dataclass(slots=True)
class Applier:
    """Applies the objects of one owner after the other.

    `hash_annotation` is the key of the annotation that remembers what was applied last.
    """

    client: Client
    writer: Writer
    cache: Cache
    hash_annotation: str
    # What our own last apply returned, for objects that the API server changes beyond recognition:
    # by uid, the hash that was applied and the content that came back. Empty in a normal cluster.
    _accepted: dict[str, tuple[str, bytes]] = field(default_factory=dict)

    async def apply(
        self, owner: Resource, *, wanted: Sequence[Object], owns: Iterable[type[Resource]]
    ) -> Applied:
        """Write what differs, in the order of `wanted`, then delete what `owner` controls beyond it.

        A refusal of one object (400, 403, 422, a name that is taken, a kind that is not served) does
        not stop the others.

        Raises:
            Conflict: the object changed under our hands; the caller tries again at once.
            OperatorError: the API server could not be reached or failed; nothing more was written.
        """
        types = {(each.KIND.api_version, each.KIND.name): each for each in owns}
        objects: list[Resource] = []
        changes: list[Change] = []
        blocked: list[Blocked] = []
        for each in wanted:
            type_ = types[each["apiVersion"], each["kind"]]
            try:
                present, verb = await self._apply_one(owner, type_, each)
            except _Obstructed as obstruction:
                blocked.append(obstruction.blocked)
                continue
            if present is not None:
                objects.append(present)
            if verb is not None:
                changes.append(Change(verb, type_.KIND.name, each["metadata"]["name"]))
        kept = {(each["kind"], key_of(each)) for each in wanted}
        changes += await self._prune(owner, types.values(), kept)
        return Applied(tuple(objects), tuple(changes), tuple(blocked))

    async def _apply_one(
        self, owner: Resource, type_: type[R], wanted: Object
    ) -> tuple[R | None, Verb | None]:
        if not self.cache.serves(type_):
            raise _Obstructed(_not_served(wanted))
        key = key_of(wanted)
        live = self.cache.get(type_, key)
        digest = _digest(wanted)
        body = self._body(owner, wanted, digest)
        if live is None:
            return await self._create(owner, type_, body), Verb.CREATE
        if not _controls(owner, live):
            raise _Obstructed(name_conflict(live))
        if live.metadata.deletion_timestamp:
            return None, None  # its removal wakes the owner, and then it is created anew
        if self._is_settled(live, body, digest):
            return live, None
        try:
            applied = await self._update(type_, body, live)
        except (Invalid, Forbidden) as error:
            raise _Obstructed(rejected(wanted, error)) from error
        if not contained(content(body), content_of(applied)):
            self._accepted[applied.metadata.uid] = (
                digest,
                msgspec.json.encode(content_of(applied)),
            )
        changed = applied.metadata.resource_version != live.metadata.resource_version
        return applied, Verb.UPDATE if changed else None

    async def _create(self, owner: Resource, type_: type[R], body: Object) -> R:
        """Create by an apply that fails on any present object, because we would merge into it."""
        try:
            return await self.writer.apply(type_, body, force=False, uid=ABSENT)
        except (Invalid, Forbidden) as error:
            raise _Obstructed(rejected(body, error)) from error
        except Conflict as error:
            live = await self._existing(type_, key_of(body))
            if live is not None and not _controls(owner, live):
                raise _Obstructed(name_conflict(live)) from error
            raise  # ours, not yet in the cache, or gone again

    async def _update(self, type_: type[R], body: Object, live: R) -> R:
        uid = live.metadata.uid
        try:
            return await self.writer.apply(type_, body, force=True, uid=uid)
        except Invalid:
            bare = without_emptied(body, content_of(live))
            if bare == body:
                raise
            # Without the hash: were we to end here, the next pass would know that it is not done.
            del bare["metadata"]["annotations"][self.hash_annotation]
            await self.writer.apply(type_, bare, force=True, uid=uid)
            return await self.writer.apply(type_, body, force=True, uid=uid)

    async def _existing(self, type_: type[R], key: Key) -> R | None:
        try:
            return await self.client.get(type_, key)
        except (NotFound, Forbidden):
            return None

    def _is_settled(self, live: Resource, body: Object, digest: str) -> bool:
        if live.metadata.annotations.get(self.hash_annotation) != digest:
            return False
        live_content = content_of(live)
        if contained(content(body), live_content):
            return True
        return self._accepted.get(live.metadata.uid) == (digest, msgspec.json.encode(live_content))

    def _body(self, owner: Resource, wanted: Object, digest: str) -> Object:
        metadata = wanted["metadata"]
        annotations = {**metadata.get("annotations", {}), self.hash_annotation: digest}
        references = [controller_reference(owner)]
        return {
            **wanted,
            "metadata": {**metadata, "annotations": annotations, "ownerReferences": references},
        }

    async def _prune(
        self, owner: Resource, types: Iterable[type[Resource]], kept: set[tuple[str, Key]]
    ) -> list[Change]:
        changes = []
        for each in self.cache.owned_by(owner.metadata.uid, types):
            if not _controls(owner, each) or each.metadata.deletion_timestamp:
                continue
            if (each.KIND.name, each.key) in kept:
                continue
            await self.writer.delete(type(each), each.key, uid=each.metadata.uid)
            self._accepted.pop(each.metadata.uid, None)
            changes.append(Change(Verb.DELETE, each.KIND.name, each.metadata.name))
        return changes


class _Obstructed(Exception):
    def __init__(self, blocked: Blocked) -> None:
        super().__init__(blocked.message)
        self.blocked = blocked


def _controls(owner: Resource, live: Resource) -> bool:
    controller = live.metadata.controller
    return controller is not None and controller.uid == owner.metadata.uid


def controller_reference(owner: Resource) -> Object:
    """The owner reference that makes `owner` the controller of an object."""
    return {
        "apiVersion": owner.KIND.api_version,
        "kind": owner.KIND.name,
        "name": owner.metadata.name,
        "uid": owner.metadata.uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }


def name_conflict(live: Resource) -> Blocked:
    """That the name is taken, and by whom."""
    controller = live.metadata.controller
    holder = _described(controller) if controller else "nobody"
    message = (
        f"{live.KIND.name} {live.metadata.name} exists and is controlled by {holder}; "
        "it is left alone: rename or delete it"
    )
    return Blocked(Obstacle.NAME_CONFLICT, live.KIND.name, live.metadata.name, message)


def rejected(wanted: Object, error: Invalid | Forbidden) -> Blocked:
    """That the API server refuses the object, in its own words."""
    name = wanted["metadata"]["name"]
    message = f"{wanted['kind']} {name}: {error.message}"
    return Blocked(Obstacle.REJECTED, wanted["kind"], name, message)


def _not_served(wanted: Object) -> Blocked:
    """That the API server does not know the kind; its coming wakes the owner."""
    name = wanted["metadata"]["name"]
    message = f"{wanted['kind']} {name}: {wanted['apiVersion']} is not served"
    return Blocked(Obstacle.NOT_SERVED, wanted["kind"], name, message)


def _described(owner: OwnerReference) -> str:
    return f"{owner.kind} {owner.name} (uid {owner.uid})"


def _digest(wanted: Object) -> str:
    return hashlib.sha256(msgspec.json.encode(wanted, order="deterministic")).hexdigest()
