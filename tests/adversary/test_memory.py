"""What a tenant stores costs at most twice its size in memory."""

import asyncio
import gc
import tracemalloc

import msgspec

from dynamo_operator.component.validate import most_bytes
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from kube_runtime.cache.store import Store
from kube_runtime.cache.watch import Broken, Changed
from kube_runtime.errors import TooLarge
from kube_runtime.types.meta import Key
from kube_runtime.wire import decode

GRAPHS = 45
VARIABLES = 50_000


def line(number: int) -> bytes:
    """A graph of about 1.4 MB, as the watch brings it."""
    envs = [{"name": f"V{each}", "value": "x"} for each in range(VARIABLES)]
    metadata = {"name": f"g{number}", "namespace": "n", "uid": str(number)}
    spec = {"services": {"a": {"envs": envs}}}
    return msgspec.json.encode({"metadata": metadata, "spec": spec})


def test_graphs_over_the_limit_cost_less_than_they_have_bytes() -> None:
    async def scenario() -> None:
        store = Store(DynamoGraphDeployment)
        most = most_bytes(DynamoGraphDeployment, RenderSettings())
        stored = 0
        gc.collect()
        tracemalloc.start()
        try:
            for number in range(GRAPHS):
                text = await asyncio.to_thread(line, number)  # a server makes it, and no loop of ours
                stored += len(text)
                try:
                    store.on_watch_event(Changed(decode(DynamoGraphDeployment, text, most)))
                except TooLarge as error:
                    store.on_watch_event(Broken(error))
                del text
            gc.collect()
            used, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert stored > GRAPHS * 1_300_000
        assert used < stored / 10
        assert store.broken.keys() == {Key("n", f"g{number}") for number in range(GRAPHS)}

    asyncio.run(scenario())
