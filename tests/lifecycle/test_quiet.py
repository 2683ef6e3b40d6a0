"""A settled graph causes no request, a change by another client one write, and a wake-up needs no resync."""

import asyncio
from datetime import UTC, datetime

import pytest

from cluster.graph.graphs import graph, service, worker
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.process.scope import LEASE
from kube_runtime.times import microtime
from kube_runtime.types.kinds import Deployment, Lease, Role, Service
from kube_runtime.types.meta import Key, Kind, Object
from kube_runtime.wire import path_of
from lifecycle.running import GRAPH, REST_SECONDS, Running, running
from simulated.clock import on_simulated_clock
from simulated.server import Fault

DEPLOYMENT = Deployment.KIND
SERVICE = Service.KIND
ROLE = Role.KIND
TWENTY_MINUTES = 1200.0
"""In ten minutes an object may miss the resync; in twenty it has at least one."""


async def settled(world: Running) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend"), Decode=worker("decode")))
    await asyncio.sleep(REST_SECONDS)
    assert ["chat-decode", "chat-frontend"] == world.names(DEPLOYMENT)
    await world.deployments_run()
    [ready, *_] = world.read(GRAPH, "chat")["status"]["conditions"]
    assert ("Ready", "True") == (ready["type"], ready["status"])


@on_simulated_clock
async def test_a_settled_graph_costs_no_write_and_no_event_in_twenty_minutes() -> None:
    async with running() as world:
        await settled(world)
        before, reconciles = world.writes(), world.reconciles(GRAPH)
        await asyncio.sleep(TWENTY_MINUTES)
        assert before == world.writes()
        assert world.reconciles(GRAPH) > reconciles, "no resync"


@on_simulated_clock
async def test_one_404_on_a_watch_changes_no_status() -> None:
    """One of several API servers may not know a kind for a moment."""
    async with running() as world:
        await settled(world)
        before, collection = world.writes(), path_of(DEPLOYMENT)
        world.server.faults.append(Fault(404, is_watch=True, collection=collection))
        for stream in world.server.streams:
            if stream.target.collection == collection:
                stream.cut()
        await asyncio.sleep(REST_SECONDS)
        assert not world.server.faults[0].times
        assert before == world.writes()
        world.server.storage.delete(collection, Key("default", "chat-frontend"), {})
        await asyncio.sleep(REST_SECONDS)
        assert ["chat-decode", "chat-frontend"] == world.names(DEPLOYMENT)


CORRECTED: dict[str, tuple[Kind, str, Object]] = {
    "replicas of a Deployment": (DEPLOYMENT, "chat-decode", {"spec": {"replicas": 5}}),
    "selector of a Service": (
        SERVICE,
        "chat-decode",
        {"spec": {"selector": {"nvidia.com/dynamo-component": "x"}}},
    ),
    "rules of a Role": (ROLE, "chat-k8s-service-discovery-role", {"rules": []}),
}


@pytest.mark.parametrize("what", CORRECTED)
@on_simulated_clock
async def test_drift_is_corrected_by_one_write(what: str) -> None:
    async with running() as world:
        await settled(world)
        kind, name, patch = CORRECTED[what]
        before = world.read(kind, name)
        *_, written = await world.after((kind, name, patch, ""))
        wrote = [each for each in written if "/events" not in each and not each.endswith("/status")]
        assert [f"PATCH {path_of(kind, 'default', name)}"] == wrote
        corrected = world.read(kind, name)
        parts = ("spec", "rules")
        assert [before.get(part) for part in parts] == [corrected.get(part) for part in parts]


ADAPTER = DynamoGraphDeploymentScalingAdapter.KIND


@on_simulated_clock
async def test_a_namespace_that_another_operator_leaves_is_reconciled() -> None:
    async with running() as world:
        now = microtime(datetime.now(UTC))
        spec = {"holderIdentity": "other", "leaseDurationSeconds": 3600, "renewTime": now}
        world.create(Lease.KIND, {"metadata": {"name": LEASE}, "spec": spec})
        await asyncio.sleep(REST_SECONDS)
        world.create(GRAPH, graph(Frontend=service("frontend")))
        await asyncio.sleep(REST_SECONDS)
        assert [] == world.names(Deployment.KIND)
        world.delete(Lease.KIND, LEASE)
        await asyncio.sleep(REST_SECONDS)
        assert ["chat-frontend"] == world.names(Deployment.KIND)


@on_simulated_clock
async def test_a_scaling_adapter_that_was_deleted_is_created_again() -> None:
    async with running() as world:
        world.create(GRAPH, graph(Frontend=service("frontend", replicas=2, scalingAdapter={"enabled": True})))
        await asyncio.sleep(REST_SECONDS)
        assert ["chat-frontend"] == world.names(ADAPTER)
        world.delete(ADAPTER, "chat-frontend")
        await asyncio.sleep(REST_SECONDS)
        assert 2 == world.read(ADAPTER, "chat-frontend")["spec"]["replicas"]
