"""A hundred endpoints at addresses of their own, over real HTTP, by the code that runs in a cluster.

The API server is simulated, because a real one takes no EndpointSlices with addresses of this machine. From a
slice and a pod to the socket everything is the product's.
"""

import asyncio
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager

from dynamo_operator.process import operator
from dynamo_operator.process.scope import scope_of
from dynamo_operator.settings import HealthSettings, MetricsSettings, ModelSettings, Settings
from kube_runtime.client.client import Client
from kube_runtime.metrics import RuntimeMetrics
from simulated.lora_worker import LoraWorker, Trouble
from simulated.managed import managed
from simulated.models import Cluster

COUNT, BAD = 100, 10
PORT = 9090


@asynccontextmanager
async def running(cluster: Cluster) -> AsyncIterator[None]:
    """The whole operator, meanwhile."""
    settings = Settings(
        metrics=MetricsSettings(bind_address="0"),
        health=HealthSettings(bind_address="0"),
        models=ModelSettings(calls="always", call_timeout_seconds=3.0),
    )
    client = Client(cluster.server)
    manager = operator.manager(client, settings, RuntimeMetrics(), scope_of(client, settings))
    async with managed(manager):
        yield


def trouble_of(number: int) -> Trouble:
    """Ten hang, ten fail, ten drop the connection; from the first on, where it hurts most."""
    kinds = (Trouble.HANGS, Trouble.BROKEN, Trouble.DROPS)
    return kinds[number // BAD] if number < 3 * BAD else Trouble.NONE


async def test_a_hundred_pods_of_which_thirty_are_of_no_use() -> None:
    cluster = Cluster()
    cluster.has_pods(COUNT, network="127.0.9")
    cluster.has_model()
    workers = [LoraWorker(trouble=trouble_of(number)) for number in range(COUNT)]
    good = workers[3 * BAD :]
    async with AsyncExitStack() as stack:
        for number, each in enumerate(workers):
            await stack.enter_async_context(each.serving(f"127.0.9.{number + 1}", PORT))
        await stack.enter_async_context(running(cluster))
        await until(lambda: all(each.loaded for each in good), 20)
        assert [["POST /v1/loras"]] * len(good) == [each.asked for each in good]
        await until(lambda: cluster.status().get("readyEndpoints") == len(good), 10)
        await until(lambda: all(len(each.asked) > 1 for each in workers[: 3 * BAD]), 40)
        assert [["POST /v1/loras"]] * len(good) == [each.asked for each in good]
        status, reason, message = cluster.condition()
        assert ("False", "NotReady") == (status, reason)
        assert message.startswith("Found 70 ready endpoint(s) out of 100 total; 10 of them: ")
        cluster.delete()
        await until(lambda: cluster.model() is None, 30)
        assert [{}] * len(good) == [each.loaded for each in good]


async def until(outcome: object, within_seconds: float) -> None:
    """Return when that is so."""
    assert callable(outcome)
    deadline = time.monotonic() + within_seconds
    while not outcome():
        assert time.monotonic() < deadline, f"not within {within_seconds} s"
        await asyncio.sleep(0.05)
