"""A manager that runs for as long as a test needs it, and is stopped in order."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kube_runtime.controller.manager import Manager


@asynccontextmanager
async def managed(manager: Manager, *, settle_seconds: float = 0) -> AsyncIterator[None]:
    """Have the manager run meanwhile; it has so long to fill its caches and to come to rest."""
    stop = asyncio.Event()
    running = asyncio.create_task(manager.run(stop))
    try:
        await asyncio.sleep(settle_seconds)
        yield
    finally:
        stop.set()
        await running
