"""Run a manager for the length of a block."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kube_runtime.controller.manager import Manager


@asynccontextmanager
async def managed(manager: Manager, *, settle_seconds: float = 0) -> AsyncIterator[None]:
    """Run a manager, and stop it in order; `settle_seconds` pass before the block."""
    stop = asyncio.Event()
    running = asyncio.create_task(manager.run(stop))
    try:
        await asyncio.sleep(settle_seconds)
        yield
    finally:
        stop.set()
        await running
