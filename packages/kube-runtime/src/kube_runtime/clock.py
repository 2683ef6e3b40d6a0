"""The clock of waits and deadlines: it never goes back, and simulated loops advance it."""

import asyncio


def loop_time() -> float:
    """Seconds on the clock of the running event loop, from an arbitrary start."""
    return asyncio.get_running_loop().time()
