"""Rewrite the objects that are stored in a version which their CRD no longer stores, on the leader."""

import asyncio
from contextlib import suppress
from typing import Final, NoReturn

import structlog

from dynamo_operator.process.detection import CONVERTED, is_new_definition
from kube_runtime.cache.store import Cache, Change
from kube_runtime.client.client import Client
from kube_runtime.errors import OperatorError
from kube_runtime.storage import Progress, StorageMigration
from kube_runtime.times import Backoff, loop_time
from kube_runtime.types.kinds import CustomResourceDefinition, Definition

_RETRIES: Final = Backoff(first_seconds=10.0, limit_seconds=600.0)
_REPORT_SECONDS: Final = 30.0
"""Seconds between lines of progress."""
_NAMED: Final = 5
_log = structlog.get_logger(__name__)


class StoredObjects:
    """Migrates one kind after the other when its CRD stores another version, and after a failure again."""

    def __init__(self, client: Client, cache: Cache) -> None:
        self._migration = StorageMigration(client)
        self._cache = cache
        self._wake = asyncio.Event()
        self._changed = set(CONVERTED)
        self._reported_at = 0.0

    async def run(self) -> NoReturn:
        """Migrate until cancelled. A new leader looks at each CRD once."""
        self._cache.subscribe(CustomResourceDefinition, self._on_change)
        failures = 0
        while True:
            self._wake.clear()
            await self._migrate_changed()
            failures = failures + 1 if self._changed else 0
            with suppress(TimeoutError):
                async with asyncio.timeout(_RETRIES.seconds(failures) if failures else None):
                    await self._wake.wait()

    def _on_change(self, change: Change[CustomResourceDefinition]) -> None:
        if is_new_definition(change) and change.new is not None:
            self._changed.add(change.new.metadata.name)
            self._wake.set()

    async def _migrate_changed(self) -> None:
        names, self._changed = sorted(self._changed), set()
        try:
            due = await self._migration.due(names)
        except OperatorError as error:
            self._changed.update(names)
            _log.warning("migration of stored objects failed", definition=names[0], error=str(error))
            return
        for definition in due:
            await self._migrate(definition)

    async def _migrate(self, definition: Definition) -> None:
        started, name = loop_time(), definition.metadata.name
        try:
            result = await self._migration.run(definition, self._report)
        except OperatorError as error:
            self._changed.add(name)
            _log.warning("migration of stored objects failed", definition=name, error=str(error))
            return
        if result.refused:
            self._changed.add(name)
            _log.warning(
                "stored objects cannot be migrated",
                definition=name,
                objects=len(result.refused),
                errors=[str(error) for error in result.refused[:_NAMED]],
            )
            return
        seconds = round(loop_time() - started, 1)
        _log.info(
            "migrated stored objects",
            kind=str(result.kind),
            to=result.kind.version,
            objects=result.total,
            seconds=seconds,
        )

    def _report(self, progress: Progress) -> None:
        if progress.done and loop_time() - self._reported_at < _REPORT_SECONDS:
            return
        self._reported_at = loop_time()
        _log.info(
            "migrating stored objects",
            kind=str(progress.kind),
            to=progress.kind.version,
            done=progress.done,
            objects=progress.total,
        )
