"""Kinds of other projects, which may be installed, replaced and removed while we run.

Nothing is requested while nothing changes: one watch of the CRDs, without their schemas, tracks which
kinds there are, and the informer of an optional kind runs only while there is a CRD of it.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import msgspec
import structlog
from msgspec.structs import replace

from kube_runtime.cache.informer import Informer
from kube_runtime.cache.store import Change
from kube_runtime.client.requests import Client
from kube_runtime.errors import Forbidden, NotFound, OperatorError, Unreachable
from kube_runtime.kind import Key, Kind
from kube_runtime.types.apiextensions import CustomResourceDefinition
from kube_runtime.types.meta import R

_log = structlog.get_logger()


class _Group(msgspec.Struct):
    """An API group, as `/apis` names it."""

    name: str


class _Groups(msgspec.Struct):
    """The fields of `/apis` that are used."""

    groups: tuple[_Group, ...]


class CrdInformer(Informer[CustomResourceDefinition]):
    """Which custom kinds are installed.

    Without permission to watch CRDs, one request lists which API groups are served, and what
    comes or goes later is not noticed.
    """

    def __init__(self) -> None:
        super().__init__(CustomResourceDefinition, transform=_without_annotations)
        self._forbidden = asyncio.Event()
        self._groups: frozenset[str] | None = None

    def has(self, kind: Kind) -> bool:
        """Whether there is a CRD of that kind, and it is not being deleted."""
        if self._groups is not None:
            return kind.group in self._groups
        crd = self.store.shown.get(Key("", str(kind)))
        return crd is not None and crd.metadata.deletion_timestamp is None

    async def run(self, client: Client) -> None:
        """Keep the CRDs up to date until cancelled."""
        await _run_until(self._forbidden, super().run(client))
        self._groups = await self._served_groups(client)
        _log.warning(
            "not permitted to watch customresourcedefinitions; "
            "optional APIs that are installed or removed later need a restart",
            served=sorted(self._groups),
        )
        self.synced.set()
        await asyncio.get_running_loop().create_future()

    async def _served_groups(self, client: Client) -> frozenset[str]:
        """The API groups that are served; asked until there is an answer that can be read."""
        while True:
            try:
                served = msgspec.convert(await client.get_json("/apis"), _Groups)
            except msgspec.ValidationError as error:
                failure: OperatorError = Unreachable(f"/apis: unexpected answer: {error}")
            except OperatorError as error:
                failure = error
            else:
                return frozenset(group.name for group in served.groups)
            await asyncio.sleep(self._failed(failure))

    def silent_seconds(self) -> float:
        """Seconds since the last response of the API server; 0 if none is expected."""
        return super().silent_seconds() if self._groups is None else 0.0

    def _failed(self, error: OperatorError) -> float:
        if isinstance(error, Forbidden) and not self.synced.is_set():
            self._forbidden.set()
        return super()._failed(error)


class OptionalInformer(Informer[R]):
    """The watch of a kind that may not be there. While it is not, it counts as synced and asks nothing.

    A kind that is installed and may not be read counts as synced as well, and its store says that it is
    forbidden: others may install it at any time, and that must not end us. It is asked for again at the slow
    pace of whatever is forbidden, so a right that comes later needs no restart.
    """

    def __init__(
        self,
        type_: type[R],
        crds: CrdInformer,
        *,
        namespace: str = "",
        labels: str = "",
        granted_by: str = "",
        transform: Callable[[R], R] | None = None,
    ) -> None:
        super().__init__(type_, namespace=namespace, labels=labels, transform=transform)
        self.store.granted_by = granted_by
        self._crds = crds
        self._changed = asyncio.Event()
        crds.store.subscribe(self._crd_changed)

    async def run(self, client: Client) -> None:
        """Keep the store up to date until cancelled, as long as there is such a kind."""
        await self._crds.synced.wait()
        while True:
            self._changed.clear()
            if self._crds.has(self.type_.KIND):
                await _run_until(self._changed, super().run(client))
            else:
                self.last_error = None
                self._gone()
                await self._changed.wait()

    def silent_seconds(self) -> float:
        """Seconds since the last response of the API server; 0 if none is expected."""
        is_there = self._crds.has(self.type_.KIND)
        return super().silent_seconds() if is_there else 0.0

    def _crd_changed(self, change: Change[CustomResourceDefinition]) -> None:
        named = change.new or change.old
        is_ours = named is not None and named.metadata.name == str(self.type_.KIND)
        if is_ours and _life(change.old) != _life(change.new):
            self._changed.set()

    def _failed(self, error: OperatorError) -> float:
        # One 404 is not enough to forget what we have: of several API servers, one may learn of a new
        # CRD later than the others.
        if isinstance(error, NotFound) and isinstance(self.last_error, NotFound):
            self._gone()
        if isinstance(error, Forbidden):
            if not self.store.is_forbidden:
                _log.warning(
                    "kind is installed, but the operator may not read it",
                    kind=str(self.type_.KIND),
                    granted_by=self.store.granted_by,
                )
            self.store.mark_kind_forbidden()
            self.synced.set()
        return super()._failed(error)

    def _gone(self) -> None:
        """There is no such kind, hence there are no such objects."""
        self.store.mark_kind_gone()
        self.synced.set()


def _life(crd: CustomResourceDefinition | None) -> tuple[str, bool]:
    """What of a CRD decides about its kind: which one it is, and whether it will stay."""
    if crd is None:
        return "", False
    return crd.metadata.uid, crd.metadata.deletion_timestamp is None


def _without_annotations(crd: CustomResourceDefinition) -> CustomResourceDefinition:
    """The CRD without the copy of itself that `kubectl apply` leaves in an annotation."""
    return replace(crd, metadata=replace(crd.metadata, annotations={}))


async def _run_until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as group:
        working = group.create_task(work)
        await stop.wait()
        working.cancel()
