"""Bring the objects of an owner to their desired state: server-side applies, then deletions, in order.

The applier writes only what differs, and only what is ours. What is ours depends on the ownership policy of
the objects; another object of the same name is reported as a conflict, never overwritten. A
first apply fails on any present object; later ones and deletions carry the uid. So the process may be killed
between any two requests.

An annotation records the owner's generation on what it controls; a new generation alone causes no apply. An
object that was written for a newer generation than the cache has shows that the cache is behind; the applier
then reads the owner before it writes.
"""

from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from functools import partial
from http import HTTPStatus
from typing import TypeAlias

import msgspec
from msgspec.structs import replace

from kube_runtime.apply.drift import has_no_drift, without_emptied
from kube_runtime.apply.result import (
    FAILING_KINDS,
    Applied,
    Attempt,
    Cause,
    Change,
    Obstacle,
    Obstructed,
    Verb,
    apply_each,
    controls,
    forbidden,
    manager_conflict,
    name_conflict,
    not_served,
    replacement_pending,
)
from kube_runtime.apply.suppression import SettledObjects, Target, WriteSuppression, digest_of
from kube_runtime.apply.writer import ManagedFieldsUpgrade, Writer
from kube_runtime.cache.informer import Watches
from kube_runtime.client.client import ABSENT
from kube_runtime.errors import Conflict, Invalid, Refused, ServerFailure
from kube_runtime.types.meta import (
    Key,
    Kind,
    Object,
    R,
    Resource,
    content,
    content_of,
    controller_reference,
    differ_in_size_only,
    key_of,
    owner_reference,
    plain,
)


class Controlled(msgspec.Struct, frozen=True):
    """Objects that the owner controls: kept as desired, and deleted when they are not desired any more.

    An object of that name without this controller, by uid, is a conflict. `types` are all kinds that the
    owner may control, `spared` the kinds and keys of objects that are neither written nor deleted. `reduced`
    drops fields of each result: with a generator of `objects`, a thousand large ones are never in memory
    together. `decided_with` are the kinds and keys of the owner's live objects on which `objects` depend, if
    on any: another one in the cache is a Conflict, so that the owner decides again. What
    `is_surplus`, such as a replica over the desired number, is deleted even while other objects are blocked.
    """

    objects: Iterable[Object]
    types: Iterable[type[Resource]]
    spared: Collection[tuple[str, Key]] = ()
    reduced: Callable[[Resource], Resource] = lambda live: live
    decided_with: Container[tuple[str, Key]] | None = None
    is_surplus: Callable[[Resource], bool] = lambda _: False


class Shared(msgspec.Struct, frozen=True):
    """Objects with several owners at once, such as the headless Service of a base model.

    None is the controller. The garbage collector deletes the object with its last owner, and so does the last
    owner that no longer desires it. `marker`, a label and its value, identifies ours; another object of that
    name is a conflict. A binding to another role is deleted and created again: its role is immutable.
    """

    objects: Iterable[Object]
    types: Iterable[type[Resource]]
    marker: tuple[str, str]

    def is_marked(self, live: Resource) -> bool:
        """Whether an object has the marker label."""
        return self.marker in live.metadata.labels.items()

    def is_shared(self, live: Resource) -> bool:
        """Whether an object is a shared object of ours."""
        return live.metadata.controller is None and self.is_marked(live)

    def body(self, reference: Object, desired: Object, live: Resource | None) -> Object:
        """The object to apply: with the present owners and that of `reference`, for exactly the live version.

        Several owners write the same list of references; the version makes the late one fail.
        """
        name, value = self.marker
        present = live.metadata.owner_references if live else ()
        owners = {other.uid: plain(replace(other, **_NO_CONTROLLER)) for other in present}
        # At its present place in the list: two writers with another order would never agree.
        owners[reference["uid"]] = reference
        changed = {
            "labels": {**desired["metadata"].get("labels", {}), name: value},
            "ownerReferences": list(owners.values()),
        }
        if live is not None:
            changed["resourceVersion"] = live.metadata.resource_version
        return {**desired, "metadata": {**desired["metadata"], **changed}}


class CreateOnly(msgspec.Struct, frozen=True):
    """Objects that hold data: created where none exist, controlled by the owner, and never changed again.

    An object that exists is left alone, also that of another client, and one that is no longer desired is not
    deleted. The garbage collector deletes it with its owner. `retained` are names of objects that outlive
    the owner: they get no owner reference, and lose that to `owner` if they have it.
    """

    objects: Iterable[Object]
    types: Iterable[type[Resource]]
    retained: Container[str] = ()


# A reconcile passes several such sets to the applier, in the order in which they are needed.
DesiredObjects: TypeAlias = Controlled | Shared | CreateOnly
"""Desired objects under one ownership policy."""


def references_without(owner: Resource, live: Resource) -> Sequence[Object]:
    """The owner references of an object, without that to `owner`."""
    uid, references = owner.metadata.uid, live.metadata.owner_references
    return [msgspec.to_builtins(reference) for reference in references if reference.uid != uid]


def shared_watch(type_: type[Resource], owner: Kind) -> Watches:
    """Reconcile every owner of that kind when a shared object of that type changes."""

    def keys(changed: Resource) -> Iterator[Key]:
        for reference in changed.metadata.owner_references:
            group = reference.api_version.rpartition("/")[0]
            is_of_kind = (group, reference.kind) == (owner.group, owner.name)  # in any version
            if is_of_kind and not reference.controller:
                yield Key(changed.metadata.namespace, reference.name)

    return Watches(type_, keys)


_NO_CONTROLLER: Mapping[str, None] = {"controller": None, "block_owner_deletion": None}

_DIGITS = 19
"""Digits of the largest int64. Python refuses to parse thousands of them."""


@dataclass(slots=True)
class Applier:
    """Applies the objects of one owner at a time.

    `hash_annotation` and `generation_annotation` are the annotations that record what was applied last, and
    for which generation of the owner. `take_over` takes over objects that an earlier operator created, if
    any.
    """

    writer: Writer
    hash_annotation: str = "kube-runtime/applied-hash"
    generation_annotation: str = "kube-runtime/owner-generation"
    take_over: ManagedFieldsUpgrade | None = None
    suppression: WriteSuppression = field(default_factory=WriteSuppression)
    _settled: SettledObjects = field(init=False)

    def __post_init__(self) -> None:
        self._settled = SettledObjects(self.hash_annotation)

    def forget(self, uid: str) -> None:
        """Forget an object that is gone."""
        self._settled.forget(uid)

    async def apply(
        self, owner: Resource, *policies: DesiredObjects, applied: Applied | None = None
    ) -> Applied:
        """Apply one set of desired objects after the other, each in the order of its objects.

        After each set, objects of its types that `owner` owns, and desires neither in it nor in one before,
        are deleted, or left to their other owners. A refusal of one object (by the API server, a name that is
        taken, a kind that is not served) does not stop the others. The result is added to `applied`.

        Raises:
            Conflict: the object changed meanwhile; the caller retries at once.
            OperatorError: the API server is unreachable; nothing more was written.
        """
        applied, desired = applied or Applied(), set[tuple[str, Key]]()
        for policy in policies:
            await self._apply_set(owner, policy, applied, desired)
        return applied

    async def _apply_set(
        self, owner: Resource, policy: DesiredObjects, applied: Applied, kept: set[tuple[str, Key]]
    ) -> None:
        """Apply one set, and add its objects to `kept`, which has those of the sets before it."""
        types = tuple(policy.types)
        if isinstance(policy, Controlled):
            kept.update(policy.spared)

        def tracked() -> Iterator[Object]:
            for desired in policy.objects:
                kept.add((desired["kind"], key_of(desired)))
                yield desired

        before, failed = len(applied.obstructions), len(applied.failures)
        await apply_each(tracked(), types, partial(self._apply_one, owner, policy), applied)
        # Not while a name is taken, or a kind is missing or fails: the old objects may be all that serves.
        is_refusal = (refusal.obstacle is Obstacle.REJECTED for refusal in applied.obstructions[before:])
        is_clear = len(applied.failures) == failed and (isinstance(policy, Shared) or all(is_refusal))
        if not isinstance(policy, CreateOnly) and (is_clear or len(applied.failing) < FAILING_KINDS):
            await self._prune(owner, policy, types, kept, applied, is_clear=is_clear)

    async def _apply_one(self, owner: Resource, policy: DesiredObjects, attempt: Attempt) -> None:
        desired, type_ = attempt.desired, attempt.type_
        if not self.writer.cache.serves(type_):
            if self.writer.cache.forbids(type_):
                raise Obstructed(forbidden(desired, self.writer.cache.store(type_).granted_by))
            raise Obstructed(not_served(desired))
        attempt.digest = digest_of(desired)
        live: Resource | None = self.writer.cache.get(type_, key_of(desired))
        try:
            match policy:
                case Controlled():
                    try:
                        await self._apply_controlled(owner, policy, attempt, live)
                    finally:
                        if attempt.present is not None:
                            attempt.present = policy.reduced(attempt.present)
                case Shared():
                    await self._apply_shared(owner, policy, attempt, live)
                case CreateOnly():
                    await self._apply_create_only(owner, policy, attempt, live)
        except Conflict as error:
            if live is not None:
                raise
            # The name is taken, but the cache has no such object: it is behind, or does not select it. If the
            # object is ours, it is in the cache from now on, and the Conflict makes the caller decide again.
            is_ours = partial(self._is_ours, owner, policy)
            existing = await self.writer.read_existing(type_, key_of(desired), is_ours=is_ours)
            if existing is not None and not is_ours(existing):
                raise Obstructed(name_conflict(existing, owner)) from error
            raise
        if live is not None and self.suppression.is_contested(_name(live), attempt.digest):
            attempt.contested = manager_conflict(live)  # until a write has lasted

    def _is_ours(self, owner: Resource, policy: DesiredObjects, live: Resource) -> bool:
        match policy:
            case Controlled():
                return controls(owner, live)
            case Shared():
                return policy.is_shared(live) or self._upgrade_for(owner, policy, live) is not None
            case CreateOnly():
                return True  # its creator does not matter: it is left alone

    def _controlled_by(self, owner: Resource) -> Object:
        return {"ownerReferences": [controller_reference(owner, self.writer.client.stored(owner.KIND))]}

    def _suppressing_repeats(
        self, owner: Resource, attempt: Attempt, live: Resource | None
    ) -> AbstractContextManager[None]:
        desired = attempt.desired
        target = Target(owner.metadata.uid, desired["kind"], key_of(desired))
        return self.suppression.suppressing_repeats(
            target, attempt.digest, live.metadata.uid if live else ABSENT
        )

    async def _apply_create_only(
        self, owner: Resource, policy: CreateOnly, attempt: Attempt, live: Resource | None
    ) -> None:
        attempt.present = live
        is_retained = attempt.desired["metadata"]["name"] in policy.retained
        if live is None:
            more = {} if is_retained else self._controlled_by(owner)
            with self._suppressing_repeats(owner, attempt, live):
                await self._create(attempt, _with_metadata(attempt.desired, more))
        elif is_retained and controls(owner, live) and not live.metadata.deletion_timestamp:
            attempt.present, attempt.verb = await self._remove_owner(owner, live), Verb.UPDATE
            attempt.cause = Cause.OWNERS

    async def _apply_shared(
        self, owner: Resource, policy: Shared, attempt: Attempt, live: Resource | None
    ) -> None:
        upgrade = self._upgrade_for(owner, policy, live)
        if live is not None and upgrade is not None:
            live = await upgrade(live)
        elif live is not None and not policy.is_shared(live):
            raise Obstructed(name_conflict(live, owner))
        metadata = owner.metadata
        reference = owner_reference(self.writer.client.stored(owner.KIND), metadata.name, metadata.uid)
        body = policy.body(reference, attempt.desired, live)
        if live is None:
            with self._suppressing_repeats(owner, attempt, live):
                await self._create(attempt, body)
            return
        attempt.present = live
        digest = digest_of(content(body))  # with its owners: each has an apply of its own
        if upgrade is None and self._settled.is_as_applied(live, body, digest):
            return
        if self._is_contested(owner, attempt, live):
            return
        with self._suppressing_repeats(owner, attempt, live):
            # There is none in other kinds than bindings, and where the cache has only metadata.
            role = content_of(live).get("roleRef")
            if role is not None and role != attempt.desired.get("roleRef"):
                await self._replace(owner, attempt, body, live)
                return
            uid = live.metadata.uid
            attempt.present = applied = await self.writer.apply(type(live), body, force=True, uid=uid)
        self._settled.accept(applied, body, digest)
        if applied.metadata.resource_version != live.metadata.resource_version:
            self.suppression.count_write(attempt.counted_as, attempt.digest)
            attempt.verb, attempt.cause = Verb.UPDATE, Cause.OWNERS

    def _upgrade_for(
        self, owner: Resource, policy: Shared, live: Resource | None
    ) -> ManagedFieldsUpgrade | None:
        """The upgrade of an object that an earlier operator created for a single owner of our kinds."""
        if self.take_over is None or live is None or not self.take_over.is_due(live):
            return None
        controller = live.metadata.controller
        if controller is None or controller.group != owner.KIND.group:
            return None
        return self.take_over if policy.is_marked(live) else None

    async def _replace(self, owner: Resource, attempt: Attempt, body: Object, live: Resource) -> None:
        # If the process is killed in between, the next reconcile of any owner creates the binding.
        if live.metadata.deletion_timestamp:
            raise Obstructed(replacement_pending(live))
        await self.writer.ensure_newest(owner)
        await self.writer.delete(live)
        self.suppression.count_write(attempt.counted_as, attempt.digest)
        await self._create(attempt, body)
        attempt.verb, attempt.cause = Verb.UPDATE, Cause.INPUTS

    async def _apply_controlled(
        self, owner: Resource, policy: Controlled, attempt: Attempt, live: Resource | None
    ) -> None:
        if live is not None and not controls(owner, live):
            raise Obstructed(name_conflict(live, owner))
        decided_with, key = policy.decided_with, key_of(attempt.desired)
        is_new = decided_with is not None and (attempt.type_.KIND.name, key) not in decided_with
        if live is not None and is_new:
            message = "it was found after the decision what to apply"
            raise Conflict(HTTPStatus.CONFLICT, "Conflict", message, attempt.type_.KIND, key)
        if live is not None and live.metadata.deletion_timestamp:
            return  # its removal requeues the owner, which then recreates it
        annotations = {self.hash_annotation: attempt.digest}
        body = _with_metadata(attempt.desired, self._controlled_by(owner), annotations)
        if live is not None and self._settled.contains(live, body, attempt.digest):
            attempt.present = live
            return
        with self._suppressing_repeats(owner, attempt, live):
            if live is not None and self._generation(live) > owner.metadata.generation:
                await self.writer.ensure_newest(owner)
            stamp = {self.generation_annotation: str(owner.metadata.generation)}
            body = _with_metadata(body, {}, stamp)
            if live is None:
                await self._create(attempt, body)
            else:
                is_older = self._generation(live) < owner.metadata.generation
                attempt.cause = Cause.SPEC if is_older else Cause.INPUTS
                if live.metadata.annotations.get(self.hash_annotation) == attempt.digest:
                    attempt.cause = Cause.DRIFT
                await self._update(owner, attempt, body, live)

    async def _create(self, attempt: Attempt, body: Object) -> None:
        """Create by an apply that fails on any present object, into which it would merge otherwise."""
        attempt.present = await self.writer.apply(attempt.type_, body, force=False, uid=ABSENT)
        self._settled.created(attempt.present, attempt.digest)
        attempt.verb, attempt.cause = Verb.CREATE, Cause.ABSENT

    async def _update(self, owner: Resource, attempt: Attempt, body: Object, live: Resource) -> None:
        attempt.present = live
        if self._is_contested(owner, attempt, live):
            return
        if self.take_over is not None and self.take_over.is_due(live):
            live = await self.take_over(live)
        attempt.present = applied = await self._write(body, live)
        self._settled.accept(applied, body, attempt.digest)
        if applied.metadata.resource_version != live.metadata.resource_version:
            self.suppression.count_write(attempt.counted_as, attempt.digest)
            ours = (self.hash_annotation, self.generation_annotation)
            is_scaled = differ_in_size_only(live, applied, but_for=ours)
            attempt.verb = Verb.SCALE if is_scaled else Verb.UPDATE
            if is_scaled:
                attempt.cause += f": {body['spec'].get('replicas')} replicas"

    def _is_contested(self, owner: Resource, attempt: Attempt, live: Resource) -> bool:
        """Whether another client keeps reverting this write, which counts for `attempt.counted_as`."""
        attempt.counted_as, references = _name(live), live.metadata.owner_references
        is_as_desired = has_no_drift(content(attempt.desired), content_of(live))
        if is_as_desired or all(reference.uid != owner.metadata.uid for reference in references):
            attempt.counted_as += f" {owner.metadata.uid}"  # each owner of a shared object adds itself
        is_contested = self.suppression.is_contested(attempt.counted_as, attempt.digest)
        if is_contested:
            attempt.contested = manager_conflict(live, is_as_desired=is_as_desired)
        return is_contested

    async def _write(self, body: Object, live: R) -> R:
        type_, uid = type(live), live.metadata.uid
        try:
            return await self.writer.apply(type_, body, force=True, uid=uid)
        except Invalid:
            bare = without_emptied(body, content_of(live))
            if bare == body:
                raise
            # Without the hash, so that the next reconcile applies again if this one ends here.
            del bare["metadata"]["annotations"][self.hash_annotation]
            await self.writer.apply(type_, bare, force=True, uid=uid)
            return await self.writer.apply(type_, body, force=True, uid=uid)

    def _generation(self, live: Resource) -> int:
        recorded = live.metadata.annotations.get(self.generation_annotation, "")
        return int(recorded) if recorded.isdecimal() and len(recorded) <= _DIGITS else 0

    async def _prune(
        self,
        owner: Resource,
        policy: DesiredObjects,
        types: Iterable[type[Resource]],
        kept: Container[tuple[str, Key]],
        applied: Applied,
        *,
        is_clear: bool,
    ) -> None:
        uid, namespace = owner.metadata.uid, owner.metadata.namespace
        unwanted = list[Resource]()
        for live in self.writer.cache.owned_by(uid, types, namespace):
            is_ours = policy.is_shared(live) if isinstance(policy, Shared) else controls(owner, live)
            is_unwanted = is_ours and (live.KIND.name, live.key) not in kept
            is_unwanted &= is_clear or (isinstance(policy, Controlled) and policy.is_surplus(live))
            if is_unwanted and live.metadata.deletion_timestamp is None:
                unwanted.append(live)
        if unwanted:
            await self.writer.ensure_newest(owner)
        for live in unwanted:
            kind, name = live.KIND.name, live.metadata.name
            try:
                verb = await self._remove(owner, policy, live)
            except (Refused, ServerFailure) as error:
                applied.refused(kind, name, error)
                if isinstance(error, ServerFailure):
                    break  # the next reconcile continues
            else:
                applied.record(Change(verb, kind, name, Cause.UNWANTED))

    async def _remove(self, owner: Resource, policy: DesiredObjects, live: Resource) -> Verb:
        if isinstance(policy, Shared) and references_without(owner, live):
            await self._remove_owner(owner, live)
            return Verb.UPDATE
        await self.writer.delete(live)
        self._settled.forget(live.metadata.uid)
        return Verb.DELETE

    async def _remove_owner(self, owner: Resource, live: Resource) -> Resource:
        """Remove the reference to that owner, so that the object stays when the owner is deleted."""
        references, version = references_without(owner, live), live.metadata.resource_version
        patch = {"metadata": {"ownerReferences": references, "resourceVersion": version}}
        return await self.writer.merge_patch(type(live), live.key, patch, uid=live.metadata.uid)


def _name(live: Resource) -> str:
    return f"{live.KIND.name} {live.key}"


def _with_metadata(desired: Object, more: Object, annotations: dict[str, str] | None = None) -> Object:
    metadata = {**desired["metadata"], **more}
    if annotations:
        metadata["annotations"] = {**metadata.get("annotations", {}), **annotations}
    return {**desired, "metadata": metadata}
