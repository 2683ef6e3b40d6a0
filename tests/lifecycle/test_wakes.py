"""What wakes a graph besides its own objects. No resync is near: each test takes less than one period."""

import asyncio
from datetime import UTC, datetime

from cluster.graph.graphs import graph, service
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.process.scope import LEASE
from kube_runtime.times import microtime
from kube_runtime.types.kinds import Deployment, Lease
from lifecycle.running import GRAPH, REST_SECONDS, running
from simulated.clock import on_simulated_clock

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
