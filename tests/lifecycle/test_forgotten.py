"""What the operator remembers of graphs ends with them."""

import asyncio
import gc

from cluster.graph.graphs import graph, service, worker
from kube_runtime.apply.suppression import Recent
from lifecycle.running import GRAPH, NAMESPACE, REST_SECONDS, Running, running
from simulated.clock import on_simulated_clock


def remembered() -> int:
    """How many values all caches of the process hold."""
    gc.collect()
    return sum(len(cache) for cache in gc.get_objects() if isinstance(cache, Recent))


async def come_and_gone(world: Running, name: str) -> None:
    """A graph becomes ready; then it is deleted, and all that it owns."""
    world.create(
        GRAPH, {**graph(Frontend=service("frontend"), Decode=worker("decode")), "metadata": {"name": name}}
    )
    await asyncio.sleep(REST_SECONDS)
    await world.deployments_run()
    assert "True" == world.ready(name)
    world.delete(GRAPH, name)
    await asyncio.sleep(REST_SECONDS)
    for collection, objects in world.server.storage.objects.items():
        if collection.endswith(("/events", "/leases")):
            continue
        for key in [key for key in objects if key.namespace == NAMESPACE]:
            world.server.storage.delete(collection, key, {})
    await asyncio.sleep(REST_SECONDS)


@on_simulated_clock
async def test_nothing_is_remembered_of_deleted_graphs() -> None:
    async with running() as world:
        before = remembered()
        for name in ("one", "two", "three"):
            await come_and_gone(world, name)
        assert before == remembered()
