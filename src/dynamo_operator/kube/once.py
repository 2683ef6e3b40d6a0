"""Makes objects that hold data: created where there is none, and never touched again.

The hard part is what is *not* done: an object that exists is left alone, whoever made it and whatever it
says, and one that is no longer wanted is not deleted. Only the deletion of its owner takes it along.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import partial

from dynamo_operator.kube.applied import Applied, Attempt, Verb, each_applied
from dynamo_operator.kube.apply import controller_reference
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.client import ABSENT
from dynamo_operator.kube.kind import Object, key_of
from dynamo_operator.kube.types.meta import Resource
from dynamo_operator.kube.writer import Writer


@dataclass(frozen=True, slots=True)
class OnceCreator:
    """Creates what is missing for one owner after the other."""

    writer: Writer
    cache: Cache

    async def create(
        self, owner: Resource, *, wanted: Sequence[Object], types: Iterable[type[Resource]]
    ) -> Applied:
        """Create each wanted object that does not exist, controlled by `owner`.

        Raises:
            Conflict: somebody made it a moment ago; the caller tries again at once and finds it.
            OperatorError: the API server could not be reached or failed.
        """
        return (await each_applied(wanted, types, partial(self._attempt, owner))).applied

    async def _attempt(self, owner: Resource, attempt: Attempt) -> None:
        wanted = attempt.wanted
        attempt.present = self.cache.get(attempt.type_, key_of(wanted))
        if attempt.present is not None:
            return
        metadata = {**wanted["metadata"], "ownerReferences": [controller_reference(owner)]}
        body = {**wanted, "metadata": metadata}
        attempt.present = await self.writer.apply(attempt.type_, body, force=False, uid=ABSENT)
        attempt.verb = Verb.CREATE
