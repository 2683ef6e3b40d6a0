"""Which versions of our kinds the API server serves, and in which it stores them.

Any user may list the kinds of a version, so the start needs no permission. Later the watch of the CRDs tells
when one has changed.
"""

import asyncio
import hashlib
from base64 import b64encode
from collections.abc import Callable, Collection
from typing import Final, NoReturn

import structlog

from dynamo_operator.admission import definitions
from dynamo_operator.component.api import GROUP, LATER, VERSION
from kube_runtime.cache.store import Cache, Change
from kube_runtime.client.client import Client
from kube_runtime.errors import NotFound, OperatorError
from kube_runtime.types.kinds import CustomResourceDefinition, Definition
from kube_runtime.types.meta import Key, Kind, Object

CONVERTED: Final = {str(type_.KIND): type_.KIND for type_ in definitions.CONVERTED}
"""The kinds with a later version, by the names of their CRDs."""

_RETRY_SECONDS: Final = 10.0
_log = structlog.get_logger(__name__)


async def later_kinds(client: Client) -> Object:
    """The list of the kinds that are served in the later version.

    Raises: OperatorError: the request failed.
    """
    try:
        return await client.get_json("apis", GROUP, LATER)
    except NotFound:
        return {}


def stored_later(earlier: Object, later: Object) -> frozenset[Kind]:
    """The kinds that are stored in the later version, from the lists of both."""
    hashes = _hashes(later) | _hashes(earlier)
    return frozenset(kind for kind in CONVERTED.values() if hashes.get(kind.plural) == _hash_of(kind))


# Such a list has a hash of each kind's stored version.
def _hashes(discovered: Object) -> dict[str, str]:
    return {entry["name"]: entry.get("storageVersionHash", "") for entry in discovered.get("resources", ())}


def _hash_of(kind: Kind) -> str:
    """Source: `StorageVersionHash` of k8s.io/apiserver v0.36."""
    digest = hashlib.sha256(f"{kind.group}/{LATER}/{kind.name}".encode()).digest()
    return b64encode(digest[:8]).decode()


def log_served(earlier: Object, later: Object) -> None:
    """Log what can be read and written without a webhook that converts."""
    served = {kind.plural for kind in CONVERTED.values()} & _hashes(later).keys()
    if served & _hashes(earlier).keys():
        advice = "serve that version alone: conversion.enabled=false of the chart dynamo-crds"
        _log.warning("webhooks are off, so only the stored version can be used", advice=advice)
    else:
        _log.info("webhooks are off, so one version is served", version=LATER if served else VERSION)


def adopt_stored(client: Client, later: Collection[Kind]) -> bool:
    """Have the client read and write these kinds in v1beta1, and the others in v1alpha1.

    Returns whether that is a change.
    """
    changed = {kind for kind in CONVERTED.values() if (client.stored(kind) != kind) != (kind in later)}
    if not changed:
        return False
    # Not imported where v1alpha1 is stored: conversion would be a tenth of the lines of a running operator.
    from dynamo_operator.process.stored_versions import TwoVersions

    for kind in changed:
        client.translations[kind] = TwoVersions(kind, is_later=kind in later)
    return True


def log_stored(later: Collection[Kind]) -> None:
    """Log which kinds are stored in the later version."""
    _log.info("stored in v1beta1", kinds=sorted(map(str, later)))


def is_new_definition(change: Change[CustomResourceDefinition]) -> bool:
    """Whether a CRD of a kind with two versions has been created or edited since the start."""
    new, old = change.new, change.old
    if change.initial or new is None or new.metadata.name not in CONVERTED:
        return False
    return old is None or old.metadata.generation != new.metadata.generation


class StoredVersions:
    """Adopts the stored version of a kind when its CRD changes, and then calls `on_adopted`.

    Each request finds its version for itself, and each answer says its own, so nothing is restarted: the API
    server ends the watches of a CRD that changes, and they continue in the other version.
    """

    def __init__(self, client: Client, cache: Cache, on_adopted: Callable[[], None]) -> None:
        self._client = client
        self._on_adopted = on_adopted
        self._cache = cache
        self._changed = set[str]()
        self._wake = asyncio.Event()

    async def run(self) -> NoReturn:
        """Follow the CRDs until cancelled, where they may be watched."""
        self._cache.subscribe(CustomResourceDefinition, self._on_change)
        while True:
            await self._wake.wait()
            self._wake.clear()
            try:
                await self._adopt()
            except OperatorError as error:
                _log.warning("the stored version is unknown", error=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
                self._wake.set()

    def _on_change(self, change: Change[CustomResourceDefinition]) -> None:
        if change.new is not None and is_new_definition(change):
            self._changed.add(change.new.metadata.name)
            self._wake.set()

    async def _adopt(self) -> None:
        later = {kind for kind in CONVERTED.values() if self._client.stored(kind) != kind}
        while self._changed:
            name = next(iter(self._changed))
            try:
                definition = await self._client.get(Definition, Key("", name))
            except NotFound:
                definition = None  # it is being replaced, and changes again
            self._changed.discard(name)
            if definition is not None:
                later = later - {CONVERTED[name]} | (
                    {CONVERTED[name]} if definition.stored == LATER else set()
                )
        if adopt_stored(self._client, later):
            log_stored(later)
            self._on_adopted()
