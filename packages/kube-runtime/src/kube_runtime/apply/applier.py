"""Makes the objects of an owner what they should be: server-side applies, then deletions, in order.

It writes only when something is different, and never what is not ours:

- An object is ours when its controller is our owner, by uid. Another object of the same name is a
  conflict that is reported, never an overwrite.
- A hash of the wanted object is kept in an annotation of the object. An apply is due when the hash differs
  (we want something else) or when the live object no longer contains what we want (drift).
- What our owner controls and is no longer wanted is deleted, by uid, after everything else exists.
- The owner's generation is kept in another annotation, which alone makes no apply due. An object that was
  written for a newer spec than we know shows that our cache is behind: then we read the owner first.
"""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import msgspec

from kube_runtime.apply.drift import (
    content,
    content_of,
    differ_in_size_only,
    fingerprint_of,
    has_no_drift,
)
from kube_runtime.apply.empty_maps import without_emptied
from kube_runtime.apply.managed_fields import ManagedFieldsUpgrade
from kube_runtime.apply.result import (
    Applied,
    ApplyProgress,
    Attempt,
    Change,
    Obstacle,
    Obstructed,
    Verb,
    controls,
    each_applied,
    forbidden,
    manager_conflict,
    name_conflict,
    not_served,
    rejected,
)
from kube_runtime.apply.suppression import Recent, Target, WriteSuppression, digest_of
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.client.requests import ABSENT, Client
from kube_runtime.errors import Conflict, Forbidden, Invalid, NotFound
from kube_runtime.kind import Key, Object, key_of
from kube_runtime.types.meta import Resource

R = TypeVar("R", bound=Resource)

_DIGITS = 19
"""Of the largest generation, a signed number of 64 bits. Python refuses to read thousands of digits."""

SETTLED_REMEMBERED = 32_768
"""Objects that were found settled; a graph of three services has thirteen."""


@dataclass(slots=True)
class Applier:
    """Applies the objects of one owner after the other.

    `hash_annotation` and `generation_annotation` are the keys of the annotations that remember what was
    applied last, and for which generation of the owner. `take_over` is for objects that an earlier operator
    made; None means: there are none.
    """

    client: Client
    writer: Writer
    cache: Cache
    hash_annotation: str
    generation_annotation: str
    take_over: ManagedFieldsUpgrade | None = None
    restraint: WriteSuppression = field(default_factory=WriteSuppression)
    # What our own last apply returned, for objects that the API server changes beyond recognition:
    # by uid, the hash that was applied and the content that came back. Empty in a normal cluster.
    _accepted: Recent[tuple[str, bytes]] = field(default_factory=Recent[tuple[str, bytes]])
    # By uid, the fingerprint of what was last found settled. Most reconciles find the same again, because
    # only a status has changed; to compare the contents costs a hundred times as much.
    _settled: Recent[bytes] = field(default_factory=partial(Recent[bytes], SETTLED_REMEMBERED))

    async def apply(
        self,
        owner: Resource,
        *,
        wanted: Iterable[Object],
        owns: Iterable[type[Resource]],
        spared: Collection[tuple[str, Key]] = (),
        reduced: Callable[[Resource], Resource] = lambda live: live,
    ) -> Applied:
        """Write what differs, in the order of `wanted`, then delete what `owner` controls beyond it.

        `spared` are kinds and keys of objects that are neither written nor deleted. Each object of `wanted`
        is read once, and `reduced` is what is kept of what the API server holds of it, so that a thousand
        large ones are never in memory together.

        A refusal of one object (400, 403, 422, a name that is taken, a kind that is not served) does
        not stop the others. While a name is taken or a kind is missing nothing is deleted: what is to
        go may be all that serves.

        Raises:
            Conflict: the object changed meanwhile; the caller retries at once.
            OperatorError: the API server could not be reached or failed; nothing more was written.
        """
        types, kept = tuple(owns), set(spared)

        def noted() -> Iterator[Object]:
            for each in wanted:
                kept.add((each["kind"], key_of(each)))
                yield each

        async def step(attempt: Attempt) -> None:
            await self._attempt(owner, attempt)
            if attempt.present is not None:
                attempt.present = reduced(attempt.present)

        progress = await each_applied(noted(), types, step)
        if all(each.obstacle is Obstacle.REJECTED for each in progress.blocked):
            await self._prune(owner, types, kept, progress)
        return progress.applied

    async def _attempt(self, owner: Resource, attempt: Attempt) -> None:
        wanted, type_ = attempt.wanted, attempt.type_
        if not self.cache.serves(type_):
            if self.cache.forbids(type_):
                raise Obstructed(forbidden(wanted, self.cache.store(type_).granted_by))
            raise Obstructed(not_served(wanted))
        key = key_of(wanted)
        live: Resource | None = self.cache.get(type_, key)
        digest = digest_of(wanted)
        if live is not None and not controls(owner, live):
            raise Obstructed(name_conflict(live, owner))
        if live is not None and live.metadata.deletion_timestamp:
            return  # its removal wakes the owner, which then recreates it
        body = self._body(owner, wanted, digest)
        if live is not None and self._is_settled(live, body, digest):
            attempt.present = live
            return
        wish = Target(owner.metadata.uid, wanted["kind"], key)
        with self.restraint.attempting(wish, digest, live.metadata.uid if live else ""):
            if live is not None and self._generation(live) > owner.metadata.generation:
                await self.writer.ensure_newest(owner)
            await self._write(owner, attempt, live, self._stamped(owner, body), digest)

    async def _write(
        self, owner: Resource, attempt: Attempt, live: Resource | None, body: Object, digest: str
    ) -> None:
        if live is None:
            live = await self._create(owner, attempt, body)
            if live is None:
                return
        uid = live.metadata.uid
        if self.restraint.is_contested(uid, digest):
            attempt.present, attempt.contested = live, manager_conflict(live)
            return
        self.restraint.note_write(uid, digest)
        if self.take_over is not None and self.take_over.is_due(live):
            live = await self.take_over(live)
        applied = await self._update(type(live), body, live)
        if not has_no_drift(content(body), content_of(applied)):
            self._accepted.put(uid, (digest, msgspec.json.encode(content_of(applied))))
        attempt.present = applied
        if applied.metadata.resource_version != live.metadata.resource_version:
            ours = (self.hash_annotation, self.generation_annotation)
            is_scaled = differ_in_size_only(live, applied, but_for=ours)
            attempt.verb = Verb.SCALE if is_scaled else Verb.UPDATE

    async def _create(self, owner: Resource, attempt: Attempt, body: Object) -> Resource | None:
        """Create by an apply that fails on any present object, because we would merge into it.

        None means: done. Otherwise there is an object of ours that was not in the cache.
        """
        try:
            attempt.present = await self.writer.apply(attempt.type_, body, force=False, uid=ABSENT)
        except Conflict as error:
            live = await self._existing(attempt.type_, key_of(body))
            if live is None:
                raise  # gone again
            if not controls(owner, live):
                raise Obstructed(name_conflict(live, owner)) from error
            return live
        attempt.verb = Verb.CREATE
        return None

    async def _update(self, type_: type[R], body: Object, live: Resource) -> R:
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

    async def _existing(self, type_: type[Any], key: Key) -> Resource | None:
        try:
            found: Resource = await self.client.get(type_, key)
        except (NotFound, Forbidden):
            return None
        return found

    def _is_settled(self, live: Resource, body: Object, digest: str) -> bool:
        if live.metadata.annotations.get(self.hash_annotation) != digest:
            return False
        # The digest is in the fingerprint too: it is an annotation of the live object.
        uid, fingerprint = live.metadata.uid, fingerprint_of(live)
        if self._settled.get(uid) == fingerprint:
            return True
        if not self._says(live, body, digest):
            return False
        self._settled.put(uid, fingerprint)
        return True

    def _says(self, live: Resource, body: Object, digest: str) -> bool:
        live_content = content_of(live)
        if has_no_drift(content(body), live_content):
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

    def _stamped(self, owner: Resource, body: Object) -> Object:
        metadata = body["metadata"]
        stamp = {self.generation_annotation: str(owner.metadata.generation)}
        annotations = {**metadata["annotations"], **stamp}
        return {**body, "metadata": {**metadata, "annotations": annotations}}

    def _generation(self, live: Resource) -> int:
        """The generation of the owner that an object was written for last; 0 when it is not recorded."""
        said = live.metadata.annotations.get(self.generation_annotation, "")
        return int(said) if said.isdecimal() and len(said) <= _DIGITS else 0

    async def _prune(
        self,
        owner: Resource,
        types: Iterable[type[Resource]],
        kept: set[tuple[str, Key]],
        progress: ApplyProgress,
    ) -> None:
        uid, namespace = owner.metadata.uid, owner.metadata.namespace
        unwanted = [
            each
            for each in self.cache.owned_by(uid, types, namespace)
            if controls(owner, each)
            and each.metadata.deletion_timestamp is None
            and (each.KIND.name, each.key) not in kept
        ]
        if unwanted:
            await self.writer.ensure_newest(owner)
        for each in unwanted:
            kind, name = each.KIND.name, each.metadata.name
            try:
                await self.writer.delete(type(each), each.key, uid=each.metadata.uid)
            except (Invalid, Forbidden) as error:
                progress.blocked.append(rejected(kind, name, error))
            else:
                self._accepted.forget(each.metadata.uid)
                self._settled.forget(each.metadata.uid)
                progress.changes.append(Change(Verb.DELETE, kind, name))


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
