"""Owner references, which name the version in which the API server stores the owner.

The garbage collector reads an owner in the version that the reference names. In a version that is not served
any more it finds no owner, and deletes nothing; in one that is not stored it needs the conversion webhook.
"""

import asyncio
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Final, NoReturn

import structlog

from kube_runtime.apply.writer import Writer
from kube_runtime.errors import Conflict, NotFound, OperatorError
from kube_runtime.times import loop_time
from kube_runtime.types.meta import Key, Kind, Resource

PER_SECOND: Final = 20.0
"""Objects that are corrected in a second, at most."""

AGAIN_SECONDS: Final = 600.0
"""Seconds until the objects are looked through again, for what others wrote meanwhile."""

_log = structlog.get_logger(__name__)


# A reconcile corrects the references of what it applies. But it may be long until the next one, and much is
# created once and never applied again: PVCs, Jobs, results, scaling adapters.
@dataclass(eq=False, slots=True)
class OwnerVersions:
    """Corrects references that name another version of their owner. Run it as a server, while leading.

    `kinds` are those of owners that have several versions, `is_ours` says of an object whether to correct it.
    """

    writer: Writer
    kinds: Collection[Kind]
    is_ours: Callable[[Resource], bool]
    per_second: float = PER_SECOND
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    def wake(self) -> None:
        """Look through all objects now: a kind is stored in another version."""
        self._changed.set()

    async def run(self) -> NoReturn:
        """Correct the references of all objects in the cache, now, when woken, and from time to time."""
        while True:
            self._changed.clear()
            await self._correct_all()
            with suppress(TimeoutError):
                async with asyncio.timeout(AGAIN_SECONDS):
                    await self._changed.wait()

    async def _correct_all(self) -> None:
        wanted = {(kind.group, kind.name): self.writer.client.stored(kind).api_version for kind in self.kinds}
        stale = dict[tuple[Kind, Key], type[Resource]]()
        for type_ in self.writer.cache.types:
            for live in self.writer.cache.list(type_):
                if _is_stale(live, wanted) and self.is_ours(live):
                    stale[type_.KIND, live.key] = type_
            await asyncio.sleep(0)
        corrected, due = 0, loop_time()
        for (_, key), type_ in stale.items():
            if not self.writer.may_write(key.namespace):
                continue
            try:
                corrected += await self._correct(type_, key, wanted)
            except (Conflict, NotFound):
                pass  # it changed meanwhile, or is gone
            except OperatorError as error:
                text = str(error)
                _log.warning(
                    "owner reference not corrected", kind=str(type_.KIND), object=str(key), error=text
                )
            due = max(due, loop_time() - 1.0) + 1 / self.per_second
            await asyncio.sleep(max(0.0, due - loop_time()))
        if corrected:
            _log.info("owner references name the stored version", objects=corrected)

    # What the cache keeps of an object may lack some of its owners.
    async def _correct(self, type_: type[Resource], key: Key, wanted: dict[tuple[str, str], str]) -> bool:
        metadata = (await self.writer.client.get_raw(type_.KIND, key))["metadata"]
        present = metadata.get("ownerReferences", [])
        references = [{**it, "apiVersion": _wanted(it["apiVersion"], it["kind"], wanted)} for it in present]
        if references == present:
            return False
        patch = {"metadata": {"ownerReferences": references, "resourceVersion": metadata["resourceVersion"]}}
        await self.writer.merge_patch(type_, key, patch, uid=metadata["uid"])
        return True


def _is_stale(live: Resource, wanted: dict[tuple[str, str], str]) -> bool:
    references = live.metadata.owner_references
    return any(it.api_version != _wanted(it.api_version, it.kind, wanted) for it in references)


def _wanted(api_version: str, kind: str, wanted: dict[tuple[str, str], str]) -> str:
    return wanted.get((api_version.rpartition("/")[0], kind), api_version)
