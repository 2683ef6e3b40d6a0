"""Ends a start that cannot succeed, with the cause of each kind that could not be listed.

Without it, a missing permission would look like an operator that is quietly busy for ever.
"""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from kube_runtime.cache.informer import Informer
from kube_runtime.errors import ConfigError, Forbidden

REFUSED_SECONDS = 20.0
"""After so long, a list that was refused ends the start: permissions do not come by waiting."""

PATIENCE_SECONDS = 180.0
"""After so long, any list that has not come ends the start."""


@dataclass(frozen=True, slots=True)
class StartupWatch:
    """A server of the manager that gives the caches a limited time to fill."""

    informers: Sequence[Informer[Any]]
    refused_seconds: float = REFUSED_SECONDS
    patience_seconds: float = PATIENCE_SECONDS

    async def run(self) -> NoReturn:
        """Wait until every cache is full, then for ever.

        Raises:
            ConfigError: some are still empty after the time is up; the message says why.
        """
        await self._wait(self.refused_seconds)
        refused = [each for each in self._late() if isinstance(each.last_error, Forbidden)]
        if not refused:
            await self._wait(self.patience_seconds - self.refused_seconds)
        if late := refused or self._late():
            causes = "; ".join(
                str(each.last_error or f"{each.type_.KIND}: no answer") for each in late
            )
            raise ConfigError("start", f"cannot list everything that is needed: {causes}")
        await asyncio.get_running_loop().create_future()
        raise AssertionError

    def _late(self) -> list[Informer[Any]]:
        return [each for each in self.informers if not each.synced.is_set()]

    async def _wait(self, seconds: float) -> None:
        waiting = [asyncio.create_task(each.synced.wait()) for each in self._late()]
        try:
            if waiting:
                await asyncio.wait(waiting, timeout=seconds)
        finally:
            for each in waiting:
                each.cancel()
