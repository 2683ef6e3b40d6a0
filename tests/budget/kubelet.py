"""The controllers and kubelets of a simulated cluster: Deployments that come up by themselves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Object
from lifecycle.running import Running

BEGUN_SECONDS, READY_SECONDS = 0.1, 0.4
"""How long after a change of its spec a Deployment has pods, and has them ready."""
_BEAT_SECONDS = 0.02


@asynccontextmanager
async def kubelets(world: Running) -> AsyncIterator[None]:
    """Have every Deployment report twice after each change: pods that start, then pods that run."""
    task = asyncio.create_task(_run(world))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _run(world: Running) -> None:
    seen: dict[str, int] = {}
    loop = asyncio.get_running_loop()
    while True:
        await asyncio.sleep(_BEAT_SECONDS)
        for name in world.names(Deployment.KIND):
            generation = world.read(Deployment.KIND, name)["metadata"]["generation"]
            if seen.get(name) != generation:
                seen[name] = generation
                loop.call_later(BEGUN_SECONDS, _report, world, name, generation, 0)
                loop.call_later(READY_SECONDS, _report, world, name, generation, 1)


def _report(world: Running, name: str, generation: int, ready: int) -> None:
    body = world.read(Deployment.KIND, name)
    if body["metadata"]["generation"] != generation:
        return
    count = body["spec"].get("replicas", 1)
    available = count if ready else 0
    status: Object = {
        "observedGeneration": generation,
        "replicas": count,
        "updatedReplicas": count,
        "readyReplicas": available,
        "availableReplicas": available,
        "conditions": [{"type": "Available", "status": "True" if ready else "False"}],
    }
    world.change(Deployment.KIND, name, {"status": status}, "status")
