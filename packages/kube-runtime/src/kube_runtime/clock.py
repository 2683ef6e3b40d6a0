"""The clock of delays and deadlines: monotonic, and advanced by the simulated event loops of tests."""

import asyncio


def loop_time() -> float:
    """Seconds on the clock of the running event loop, from an arbitrary start."""
    return asyncio.get_running_loop().time()
