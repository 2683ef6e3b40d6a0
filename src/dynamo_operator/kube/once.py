"""Makes objects that hold data: created where there is none, and never touched again.

The hard part is what is *not* done: an object that exists is left alone, whoever made it and whatever it
says, and one that is no longer wanted is not deleted. Only the deletion of its owner takes it along.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dynamo_operator.kube.apply import (
    Applied,
    Blocked,
    Change,
    Verb,
    controller_reference,
    rejected,
)
from dynamo_operator.kube.cache import Cache
from dynamo_operator.kube.client import ABSENT
from dynamo_operator.kube.errors import Forbidden, Invalid
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
        by_kind = {(each.KIND.api_version, each.KIND.name): each for each in types}
        objects: list[Resource] = []
        changes: list[Change] = []
        blocked: list[Blocked] = []
        for each in wanted:
            type_ = by_kind[each["apiVersion"], each["kind"]]
            present = self.cache.get(type_, key_of(each))
            if present is not None:
                objects.append(present)
                continue
            metadata = {**each["metadata"], "ownerReferences": [controller_reference(owner)]}
            body = {**each, "metadata": metadata}
            try:
                objects.append(await self.writer.apply(type_, body, force=False, uid=ABSENT))
            except (Invalid, Forbidden) as error:
                blocked.append(rejected(each, error))
            else:
                changes.append(Change(Verb.CREATE, type_.KIND.name, each["metadata"]["name"]))
        return Applied(tuple(objects), tuple(changes), tuple(blocked))
