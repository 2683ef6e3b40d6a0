"""Create many graphs at once, on a simulated API server of a fixed capacity and a simulated clock.

python -m bench.burst [--graphs 100] [--sent-at-once 2] [--milliseconds 12] [--refuses-above 1000]

The figures do not depend on the machine, so they can compare two versions of the operator on a busy one. With
PYTHONHASHSEED=0 they are the same on every run. The defaults are those of an API server on two cores: some
160 requests a second.
"""

import argparse
import asyncio
import logging
import random
from collections import Counter
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import structlog

from bench.user import graph_body
from dynamo_operator import FIELD_MANAGER, METRICS_PREFIX
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process import operator
from dynamo_operator.process.scope import scope_of
from dynamo_operator.settings import HealthSettings, MetricsSettings, Settings
from kube_runtime.client.client import Answer, Client, Congestion, Request
from kube_runtime.metrics import RuntimeMetrics, verb_and_resource
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Key
from kube_runtime.wire import path_of
from simulated.clock import run
from simulated.managed import managed
from simulated.server import Server

GRAPH = DynamoGraphDeployment.KIND
START_SECONDS = 1.0
"""Time in which pods start."""


@dataclass
class LimitedServer:
    """A server with a limited concurrency and a fixed time per request. Watches cost nothing.

    Above `refuses_above` requests in progress it responds with 429, like API priority and fairness.
    """

    server: Server
    slots: asyncio.Semaphore
    seconds: float
    refuses_above: int
    in_progress: int = 0
    refused: int = 0
    counts: Counter[tuple[str, str]] = field(default_factory=Counter[tuple[str, str]])

    async def send(self, request: Request) -> Answer:
        """Forward a request when a slot is free."""
        if request.timeout_seconds is None:
            return await self.server.send(request)
        if self.in_progress >= self.refuses_above:
            self.refused += 1
            return Answer(429, {"retry-after": "1"}, nothing())
        self.counts[verb_and_resource(request)] += 1
        self.in_progress += 1
        try:
            async with self.slots:
                await asyncio.sleep(self.seconds)
                return await self.server.send(request)
        finally:
            self.in_progress -= 1


async def nothing() -> AsyncIterator[bytes]:
    """An empty body."""
    for chunk in list[bytes]():
        yield chunk


def ready(server: Server) -> int:
    """The number of ready graphs."""
    return sum(
        condition["type"] == "Ready" and condition["status"] == "True"
        for graph in server.storage.objects[path_of(GRAPH)].values()
        for condition in graph.get("status", {}).get("conditions", ())
    )


async def pods_start(server: Server) -> None:
    """Make each Deployment available `START_SECONDS` after its creation."""
    path, loop = path_of(Deployment.KIND), asyncio.get_running_loop()
    seen: dict[Key, float] = {}
    while True:
        for key, body in server.storage.objects.get(path, {}).items():
            if seen.setdefault(key, loop.time()) + START_SECONDS <= loop.time():
                seen[key] = float("inf")
                count = body["spec"].get("replicas", 1)
                names = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
                status = {"observedGeneration": body["metadata"]["generation"]}
                patch = {"status": status | dict.fromkeys(names, count)}
                server.storage.merge(path, key, patch, "status")
        await asyncio.sleep(0.1)


async def burst(graphs: int, at_once: int, seconds: float, refuses_above: int) -> None:
    """Create graphs; print the time until they are ready, and requests until ten minutes later."""
    server = Server(0)
    limited = LimitedServer(server, asyncio.Semaphore(at_once), seconds, refuses_above)
    settings = Settings(metrics=MetricsSettings(bind_address="0"), health=HealthSettings(bind_address="0"))
    metrics = RuntimeMetrics(prefix=METRICS_PREFIX)
    client = Client(Congestion(limited), field_manager=FIELD_MANAGER)
    built = operator.manager(client, settings, metrics, scope_of(client, settings))
    async with managed(built, settle_seconds=30):
        limited.counts.clear()
        starting = asyncio.create_task(pods_start(server))
        loop = asyncio.get_running_loop()
        began = loop.time()
        for number in range(graphs):
            server.storage.create(path_of(GRAPH), graph_body(f"g{number}"))
        after = []
        for count in (graphs / 2, graphs):
            while ready(server) < count:
                await asyncio.sleep(0.1)
            after.append(loop.time() - began)
        print(f"half ready after {after[0]:.1f} s, all after {after[1]:.1f} s")
        await asyncio.sleep(600)
        starting.cancel()
    total = sum(limited.counts.values())
    print(f"{total / graphs:.2f} requests per graph, {limited.refused / graphs:.2f} refused")
    for (verb, resource), number in limited.counts.most_common(12):
        print(f"{number / graphs:8.2f} {verb} {resource}")
    reconciles = Counter[str]()
    for family in metrics.registry.collect():
        for sample in family.samples:
            if sample.name == f"{METRICS_PREFIX}_reconcile_total":
                reconciles[sample.labels["resource_type"]] += int(sample.value)
    print({kind: round(number / graphs, 2) for kind, number in reconciles.items() if number})


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(prog="bench.burst", description=__doc__)
    parser.add_argument("--graphs", type=int, default=100)
    parser.add_argument("--sent-at-once", type=int, default=2)
    parser.add_argument("--milliseconds", type=float, default=12)
    parser.add_argument("--refuses-above", type=int, default=1000)
    options = parser.parse_args()
    seconds = options.milliseconds / 1000
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.WARNING))
    random.seed(0)  # the jitter of retries and watches
    run(burst(options.graphs, options.sent_at_once, seconds, options.refuses_above))


if __name__ == "__main__":
    main()
