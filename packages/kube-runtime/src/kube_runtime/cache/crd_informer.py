"""Informers of optional kinds, which may be installed, replaced and removed at any time.

One watch of the CRDs, without their schemas, tracks which kinds exist. The informer of an optional kind runs
only while its CRD exists.
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
    """The part of `/apis` that is used."""

    groups: tuple[_Group, ...]


class CrdInformer(Informer[CustomResourceDefinition]):
    """Tracks which custom kinds are installed.

    Without permission to watch CRDs, one request lists the API groups that are served; later changes go
    unnoticed.
    """

    def __init__(self) -> None:
        # without the copy of itself in the annotation of `kubectl apply`
        super().__init__(
            CustomResourceDefinition,
            transform=lambda crd: replace(crd, metadata=replace(crd.metadata, annotations={})),
        )
        self._forbidden = asyncio.Event()
        self._groups: frozenset[str] | None = None

    def has(self, kind: Kind) -> bool:
        """Whether the kind has a CRD that is not being deleted."""
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
        """The API groups that are served; retries until it has a valid answer."""
        while True:
            try:
                served = msgspec.convert(await client.get_json("apis"), _Groups)
            except msgspec.ValidationError as error:
                failure: OperatorError = Unreachable(f"/apis: unexpected answer: {error}")
            except OperatorError as error:
                failure = error
            else:
                return frozenset(group.name for group in served.groups)
            await asyncio.sleep(self._record_failure(failure))

    def silent_seconds(self) -> float:
        """Seconds since the last response; 0 if none is expected."""
        return super().silent_seconds() if self._groups is None else 0.0

    def _record_failure(self, error: OperatorError) -> float:
        if isinstance(error, Forbidden) and not self.synced.is_set():
            self._forbidden.set()
        return super()._record_failure(error)


class OptionalInformer(Informer[R]):
    """The informer of a kind that may not be installed. Then it counts as synced and sends no request.

    A kind that is installed but may not be read counts as synced as well, and its store is marked as
    forbidden: installing it must not break the operator. It is retried slowly, so that a later permission
    needs no restart.
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
        """Keep the store up to date until cancelled, while the kind exists."""
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
        """Seconds since the last response; 0 if none is expected."""
        is_there = self._crds.has(self.type_.KIND)
        return super().silent_seconds() if is_there else 0.0

    def _crd_changed(self, change: Change[CustomResourceDefinition]) -> None:
        named = change.new or change.old
        is_ours = named is not None and named.metadata.name == str(self.type_.KIND)
        if is_ours and _identity_of(change.old) != _identity_of(change.new):
            self._changed.set()

    def _record_failure(self, error: OperatorError) -> float:
        # One 404 is not enough to drop the objects: of several API servers, one may learn of a new CRD later
        # than the others.
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
        return super()._record_failure(error)

    def _gone(self) -> None:
        """The kind does not exist, hence it has no objects."""
        self.store.mark_kind_gone()
        self.synced.set()


def _identity_of(crd: CustomResourceDefinition | None) -> tuple[str, bool]:
    """The uid of a CRD, and whether it stays: a change of either restarts the watch of its kind."""
    if crd is None:
        return "", False
    return crd.metadata.uid, crd.metadata.deletion_timestamp is None


async def _run_until(stop: asyncio.Event, work: Coroutine[Any, Any, None]) -> None:
    async with asyncio.TaskGroup() as group:
        working = group.create_task(work)
        await stop.wait()
        working.cancel()
