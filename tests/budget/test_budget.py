"""What a graph may cost, in requests and bytes. Time has no budget: it depends on the machine.

The numbers are in `budget.json`. They are lowered when they can be, and raised with a reason only.
"""

import asyncio
import gc
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from bench.objects import component, deployment, pod_json
from bench.objects import graph as stored_graph
from budget.kubelet import kubelets
from cluster.graph.graphs import graph
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.read import PodIndex, reduced_pod
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.cache.store import Cache, Index, Store
from kube_runtime.cache.watch import Present, Started, Synced
from kube_runtime.types.kinds import Deployment, PersistentVolumeClaim, Pod
from kube_runtime.types.meta import Resource
from kube_runtime.wire import decode
from lifecycle.running import REST_SECONDS, Running, running
from simulated.clock import on_simulated_clock

GRAPH = DynamoGraphDeployment.KIND
GRAPHS = 5


class Budget(msgspec.Struct, forbid_unknown_fields=True):
    requests_per_graph: float
    requests_per_replica_change: int
    requests_while_settled: int
    bytes_per_pod: int
    bytes_per_graph: int


BUDGET = msgspec.json.decode(Path(__file__).with_name("budget.json").read_bytes(), type=Budget)


async def settled(world: Running) -> None:
    for number in range(GRAPHS):
        world.create(GRAPH, graph(f"g{number}"))
    await asyncio.sleep(REST_SECONDS)
    states = {world.read(GRAPH, f"g{number}")["status"]["state"] for number in range(GRAPHS)}
    assert {"successful"} == states


@on_simulated_clock
async def test_a_graph_of_three_services_is_made_within_its_budget_events_included() -> None:
    async with running() as world, kubelets(world):
        await settled(world)
        writes = world.writes()
        assert len(writes) / GRAPHS <= BUDGET.requests_per_graph, "\n".join(writes)


@on_simulated_clock
async def test_one_replica_more_is_two_applies_and_two_statuses_and_then_all_is_quiet() -> None:
    async with running() as world, kubelets(world):
        await settled(world)
        before = len(world.writes())
        world.change(GRAPH, "g0", {"spec": {"services": {"Decode": {"replicas": 2}}}})
        await asyncio.sleep(REST_SECONDS)
        writes = world.writes()[before:]
        assert len(writes) <= BUDGET.requests_per_replica_change, "\n".join(writes)
        assert 2 == world.read(Deployment.KIND, "g0-decode")["spec"]["replicas"]
        assert "successful" == world.read(GRAPH, "g0")["status"]["state"]

        before = len(world.writes())
        await asyncio.sleep(3600)
        assert len(world.writes()) - before <= BUDGET.requests_while_settled


@on_simulated_clock
async def test_a_reconcile_does_not_look_through_the_other_objects_of_its_namespace(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Else a namespace of a thousand graphs would make each reconcile of each of them slower."""
    listed = list[Resource]()
    look_through = Index.list

    def counting(index: Index[Resource], namespace: str = "") -> Iterator[Resource]:
        found = list(look_through(index, namespace))
        listed.extend(found)
        return iter(found)

    async with running() as world, kubelets(world):
        for number in range(4 * GRAPHS):
            world.create(PersistentVolumeClaim.KIND, {"metadata": {"name": f"c{number}"}, "spec": {}})
        await settled(world)
        monkeypatch.setattr(Index, "list", counting)
        world.change(GRAPH, "g0", {"spec": {"services": {"Decode": {"replicas": 2}}}})
        await asyncio.sleep(REST_SECONDS)
    assert [] == [it.key for it in listed]


def test_a_pod_is_held_within_its_budget() -> None:
    count, graphs = 500, 50
    documents = [pod_json(number, graphs) for number in range(count)]

    def hold() -> object:
        store = Store(Pod, transform=reduced_pod)
        index = PodIndex(Cache((store,)))
        store.on_watch_event(Started())
        for each in documents:
            store.on_watch_event(Present(decode(Pod, each)))
        store.on_watch_event(Synced())
        return store, index

    assert held(hold) / count <= BUDGET.bytes_per_pod


def test_a_graph_with_its_components_and_deployments_is_held_within_its_budget() -> None:
    count = 50
    types: tuple[type[Resource], ...] = (*(DynamoGraphDeployment, DynamoComponentDeployment, Deployment),)
    documents = [
        [msgspec.json.encode(make(f"g{number}")) for make in (stored_graph, component, deployment)]
        for number in range(count)
    ]

    def hold() -> object:
        stores: tuple[Store[Any], ...] = tuple(Store(each) for each in types)
        for each in stores:
            each.on_watch_event(Started())
        for of_graph in documents:
            for store, type_, document in zip(stores, types, of_graph, strict=True):
                store.on_watch_event(Present(decode(type_, document)))
        for each in stores:
            each.on_watch_event(Synced())
        return stores

    assert held(hold) / count <= BUDGET.bytes_per_graph


def held(hold: Callable[[], object]) -> int:
    """Bytes that are still taken when `hold` has returned, by what it returns: the least of three tries.

    What is made once, such as decoders or a table that grows, is in one of them at most.
    """
    return min(_taken(hold) for _ in range(3))


def _taken(hold: Callable[[], object]) -> int:
    hold()
    gc.collect()
    tracemalloc.start()
    try:
        kept = hold()
        gc.collect()
        taken, _ = tracemalloc.get_traced_memory()
        del kept
    finally:
        tracemalloc.stop()
    return taken
