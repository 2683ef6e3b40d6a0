"""The controllers and kubelets of a simulated cluster: Deployments that come up by themselves."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Object
from kube_runtime.wire import path_of
from lifecycle.running import Running
from simulated.storage import Entry

BEGUN_SECONDS, READY_SECONDS = 0.1, 0.4
"""How long after a change of its spec a Deployment has pods, and has them ready."""


@asynccontextmanager
async def kubelets(world: Running) -> AsyncIterator[None]:
    """Have every Deployment report twice after each change: pods that start, then pods that run."""
    loop, collection = asyncio.get_running_loop(), path_of(Deployment.KIND)

    def on_change(entry: Entry) -> None:
        if entry.collection != collection or entry.new is None:
            return
        generation = entry.new["metadata"]["generation"]
        if entry.old is None or entry.old["metadata"]["generation"] != generation:
            for ready, seconds in enumerate((BEGUN_SECONDS, READY_SECONDS)):
                loop.call_later(seconds, _report, world, entry.key.name, generation, ready)

    world.server.storage.listeners.append(on_change)
    yield
    world.server.storage.listeners.remove(on_change)


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
