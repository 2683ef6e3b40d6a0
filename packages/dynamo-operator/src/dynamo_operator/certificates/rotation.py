"""Keep a certificate valid: one loop on every replica, woken by changes of what it depends on."""

import asyncio
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, Final, NoReturn

from kube_runtime.cache.informer import Informer
from kube_runtime.controller.manager import Manager

RESYNC_SECONDS: Final = 30.0
"""The resync period; changes before that arrive as events."""

RETRY_SECONDS: Final = 2.0


class Rotation(ABC):
    """A loop on every replica, woken by changes of the objects that it depends on."""

    def __init__(self, informers: tuple[Informer[Any], ...]) -> None:
        self._informers = informers
        self._synced = asyncio.Event()
        self._wake = asyncio.Event()

    def join(self, manager: Manager) -> None:
        """Add the loop and its informers to the manager."""
        for informer in self._informers:
            manager.inform(informer)
        manager.on_synced(self.synced)
        manager.serve(self)

    async def synced(self) -> None:
        """Record that the caches are synced, so that missing objects do not exist."""
        self._synced.set()

    async def run(self) -> NoReturn:
        """Renew the certificate until cancelled."""
        if self._informers:
            await self._synced.wait()
        for informer in self._informers:
            informer.store.subscribe(lambda _: self._wake.set())
        while True:
            self._wake.clear()
            wait = await self._turn()
            with suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._wake.wait()

    @abstractmethod
    async def _turn(self) -> float:
        """Reconcile once. Returns the seconds until the next time."""
