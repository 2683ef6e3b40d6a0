"""Create objects that hold data where none exist, and never change them again.

An object that exists is left alone, no matter who created it and what it contains, and one that is no
longer desired is not deleted. Only the deletion of its owner deletes it, unless it is retained: then it has
no owner, or loses it.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from functools import partial

import msgspec

from kube_runtime.apply.applier import controller_reference
from kube_runtime.apply.result import Applied, Attempt, Verb, controls, each_applied
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.client.requests import ABSENT
from kube_runtime.kind import Object, key_of
from kube_runtime.types.meta import Resource


@dataclass(frozen=True, slots=True)
class CreateOnlyApplier:
    """Creates what is missing for one owner after the other."""

    writer: Writer
    cache: Cache

    async def create(
        self,
        owner: Resource,
        *,
        wanted: Sequence[Object],
        types: Iterable[type[Resource]],
        retained: Container[str] = (),
    ) -> Applied:
        """Create each wanted object that does not exist, controlled by `owner`.

        `retained` are names of those that outlive it. They get no owner, and lose `owner` if they have it.

        Raises:
            Conflict: another client created it a moment ago; the caller retries at once and finds it.
            OperatorError: the API server could not be reached or failed.
        """
        step = partial(self._attempt, owner, retained)
        return (await each_applied(wanted, types, step)).applied

    async def _attempt(self, owner: Resource, retained: Container[str], attempt: Attempt) -> None:
        wanted = attempt.wanted
        is_retained = wanted["metadata"]["name"] in retained
        attempt.present = live = self.cache.get(attempt.type_, key_of(wanted))
        if live is not None:
            if is_retained and controls(owner, live) and not live.metadata.deletion_timestamp:
                attempt.present = await self._released(owner, live)
                attempt.verb = Verb.UPDATE
            return
        references = [] if is_retained else [controller_reference(owner)]
        metadata = wanted["metadata"] | ({"ownerReferences": references} if references else {})
        body = {**wanted, "metadata": metadata}
        attempt.present = await self.writer.apply(attempt.type_, body, force=False, uid=ABSENT)
        attempt.verb = Verb.CREATE

    async def _released(self, owner: Resource, live: Resource) -> Resource:
        """The object without its owner, so that it stays when that is deleted."""
        others = [
            msgspec.to_builtins(each)
            for each in live.metadata.owner_references
            if each.uid != owner.metadata.uid
        ]
        version = live.metadata.resource_version
        patch = {"metadata": {"ownerReferences": others, "resourceVersion": version}}
        return await self.writer.merge_patch(type(live), live.key, patch, uid=live.metadata.uid)
