"""The version in which the API server stores a kind, and the rewriting of objects that it stored in another.

An object stays in etcd in the version in which it was written last. `status.storedVersions` of the CRD lists
the versions in which there may be some; such a version cannot be removed from the CRD.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from kube_runtime.client.client import MERGE_PATCH, Client, Request
from kube_runtime.errors import Conflict, NotFound, Refused
from kube_runtime.times import loop_time
from kube_runtime.types.kinds import Definition
from kube_runtime.types.meta import Key, Kind
from kube_runtime.wire import identity, path_of

PER_SECOND: Final = 20.0
"""Objects that are rewritten in a second, at most."""

SETTLE_SECONDS: Final = 10.0
"""Seconds before the first object: another API server may still store in the former version."""

_PARTIAL: Final = "application/json;as=PartialObjectMetadata{};g=meta.k8s.io;v=v1"


@dataclass(frozen=True, slots=True)
class Progress:
    """Of one kind: the objects to rewrite, those that have been, and the errors of those that cannot be."""

    kind: Kind
    total: int
    done: int = 0
    refused: Sequence[Refused] = ()


# Nothing is remembered: an object that is stored in the new version already is compared by the API server
# and not written, so after a kill at any point the next run starts from the first one.
#
# A merge patch without content changes no field, manager or generation (measured on v1.36), and that of a
# status calls no admission webhook for the object, which might refuse what it accepted earlier.
@dataclass(frozen=True, slots=True)
class StorageMigration:
    """Rewrites the objects of kinds with a status in the version in which they are stored now."""

    client: Client
    per_second: float = PER_SECOND
    settle_seconds: float = SETTLE_SECONDS

    async def due(self, names: Iterable[str]) -> list[Definition]:
        """Those of these CRDs that list another version than the one they store.

        If there are any, it waits until other API servers store in it, too.

        Raises: OperatorError: a request failed.
        """
        found: list[Definition] = []
        for name in names:
            with suppress(NotFound):  # not installed
                definition = await self.client.get(Definition, Key("", name))
                found += [definition] if definition.former else []
        if found:
            await asyncio.sleep(self.settle_seconds)
        return found

    async def run(self, before: Definition, report: Callable[[Progress], None] = lambda _: None) -> Progress:
        """Rewrite the objects of a CRD that is due, and remove the former versions from its status.

        If objects were refused, the versions stay.

        Raises:
            Conflict: the CRD has changed meanwhile, so that a new run is needed.
            OperatorError: a request failed. What has been rewritten stays so.
        """
        names = before.spec.names
        kind = Kind(before.spec.group, before.stored, names.kind, names.plural)
        keys = [key async for key in self._keys(kind)]
        done, refused = 0, list[Refused]()
        report(Progress(kind, len(keys)))
        due = loop_time()
        for key in keys:
            try:
                await self._rewrite(kind, key)
                done += 1
            except NotFound:
                done += 1  # it has been deleted
            except Refused as error:
                refused.append(error)
            report(Progress(kind, len(keys), done, refused))
            due = max(due, loop_time() - 1.0) + 1 / self.per_second
            await asyncio.sleep(max(0.0, due - loop_time()))
        after = await self.client.get(Definition, before.key)
        if (
            before.metadata.generation != after.metadata.generation
            or before.metadata.uid != after.metadata.uid
        ):
            raise Conflict(409, "Conflict", "the CRD has changed meanwhile", Definition.KIND, after.key)
        if not refused:
            version = {"resourceVersion": after.metadata.resource_version}
            patch = {"metadata": version, "status": {"storedVersions": [after.stored]}}
            await self.client.merge_patch(Definition, after.key, patch, subresource="status")
        return Progress(kind, len(keys), done, refused)

    async def _keys(self, kind: Kind) -> AsyncIterator[Key]:
        async for page in self.client.raw_pages(kind, accept=_PARTIAL.format("List")):
            for item in page.items or ():
                metadata = identity(item)
                yield Key(metadata.namespace, metadata.name)

    async def _rewrite(self, kind: Kind, key: Key) -> None:
        path = path_of(kind, key.namespace, key.name, "status")
        query = {"fieldManager": self.client.field_manager} if self.client.field_manager else {}
        request = Request("PATCH", path, query, b"{}", MERGE_PATCH, accept=_PARTIAL.format(""))
        await self.client.ask(request, kind, key, repeatable=True)
