"""Many objects of each watched type, each with much at one path, and a tenant who works beside them.

The whole operator runs on a simulated API server and clock, with every optional API installed. That clock
counts round trips and turns, so a neighbour who waits for a thousand others is seen on any machine; a fixture
of all tests finds steps that stall. `test_storm.py` does the same on a real API server.
"""

import asyncio
from itertools import cycle, islice
from typing import Any

import pytest

from cluster.graph.graphs import graph, service, worker
from dynamo_operator.component.api import GROUP
from dynamo_operator.labels import ENABLE_GROVE
from dynamo_operator.shared.cluster import OPTIONAL_APIS
from kube_runtime.cache.store import Store
from kube_runtime.types.kinds import Deployment
from kube_runtime.wire import path_of
from lifecycle.running import GRAPH, Running, running
from simulated.clock import now, run
from specs.fat_objects import OF_USERS, SETTINGS, fat_objects, memory, selected

LETTERS = 20_000
"""Of each object: of less than 64 KiB the cache keeps the most."""
ROUND_TRIP_SECONDS = 0.02
MORE_SECONDS = 1.5
OTHERS, OF_OURS = 24 * 1024, 64 * 1024
"""In memory, on average over the paths: of an object of others, and of one of our kinds."""


async def store(world: Running, count: int) -> None:
    for informer in OF_USERS:
        bodies = cycle([body for _, body in fat_objects(informer.type_, LETTERS)])
        for number, body in enumerate(islice(bodies, count)):
            name = f"{informer.type_.__name__.lower()}-{number}"
            await asyncio.sleep(0)  # takes no time on this clock
            hostile = selected(informer, body, name, "hostile")
            world.server.storage.create(path_of(informer.type_.KIND), hostile)


async def seconds_until_ready(world: Running, name: str) -> float:
    """How long a graph takes whose Deployments run as soon as they exist."""
    began = now()
    wanted = graph(Frontend=service("frontend"), Decode=worker("decode"))
    world.create(GRAPH, {**wanted, "metadata": {"name": name, "annotations": {ENABLE_GROVE: "false"}}})
    while world.ready(name) != "True":
        await asyncio.sleep(0.1)
        for child in (f"{name}-frontend", f"{name}-decode"):
            if child in world.names(Deployment.KIND) and "status" not in world.read(Deployment.KIND, child):
                world.deployment_runs(child)
        assert now() - began < 600
    return now() - began


@pytest.mark.parametrize("count", [60, pytest.param(1000, marks=pytest.mark.long)])
def test_a_graph_waits_for_no_objects_of_others_and_memory_is_bounded(count: int) -> None:
    seconds, stores = list[float](), list[Store[Any]]()

    async def play() -> None:
        kinds = [kind for api in OPTIONAL_APIS for kind in api.kinds]
        async with running(installed=kinds, legacy_kinds=True, render=SETTINGS) as world:
            world.server.request_seconds = world.server.answer_seconds = ROUND_TRIP_SECONDS / 2
            seconds.append(await seconds_until_ready(world, "alone"))
            await store(world, count)
            seconds.append(await seconds_until_ready(world, "beside"))
            await asyncio.sleep(600)
            stores.extend(world.cache.store(informer.type_) for informer in OF_USERS)

    run(play())
    alone, beside = seconds
    assert beside <= alone + MORE_SECONDS, seconds
    for each in stores:
        most = OF_OURS if each.type_.KIND.group == GROUP else OTHERS
        assert memory(tuple(each.shown.list()), set()) <= most * count, each.type_
