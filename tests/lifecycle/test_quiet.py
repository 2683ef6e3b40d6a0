"""A settled graph costs nothing, and a change of a child requeues the keys that depend on it once."""

import asyncio

import pytest

from cluster.graph.graphs import graph, service, worker
from kube_runtime.types.kinds import Deployment, Role, Service
from kube_runtime.types.meta import Kind, Object
from kube_runtime.wire import path_of
from lifecycle.running import COMPONENT, GRAPH, REST_SECONDS, Change, Running, running
from simulated.clock import on_simulated_clock

DEPLOYMENT = Deployment.KIND
SERVICE = Service.KIND
ROLE = Role.KIND

TWENTY_MINUTES = 1200.0
"""In ten minutes an object may miss the resync; in twenty it has at least one."""


async def settled(world: Running) -> None:
    """Create a graph and make its Deployments run."""
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


COUNTS = ("observedGeneration", "replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
DEADLINE = {"type": "Progressing", "status": "False", "reason": "ProgressDeadlineExceeded"}
CORRECTED: dict[str, tuple[Kind, str, Object]] = {
    "replicas of a Deployment": (DEPLOYMENT, "chat-decode", {"spec": {"replicas": 5}}),
    "selector of a Service": (
        SERVICE,
        "chat-decode",
        {"spec": {"selector": {"nvidia.com/dynamo-component": "x"}}},
    ),
    "rules of a Role": (ROLE, "chat-k8s-service-discovery-role", {"rules": []}),
}
UNREAD: dict[str, Change] = {
    "collisionCount": (DEPLOYMENT, "chat-decode", {"status": {"collisionCount": 1}}, "status"),
    "loadBalancer": (SERVICE, "chat-decode", {"status": {"loadBalancer": {"x": 1}}}, "status"),
    "managedFields": (DEPLOYMENT, "chat-decode", {"metadata": {"managedFields": [{}]}}, ""),
}


async def after(world: Running, change: Change) -> tuple[int, int, list[str]]:
    """Make a change; return the reconciles of components and of graphs, and the writes except Events."""
    components, graphs, written = await world.after(change)
    return components, graphs, [request for request in written if "/events" not in request]


@pytest.mark.parametrize("field", COUNTS)
def test_a_field_of_a_deployments_status_requeues_its_component_then_its_graph(field: str) -> None:
    """Once each: its own writes do not requeue a key."""

    @on_simulated_clock
    async def scenario() -> None:
        async with running() as world:
            await settled(world)
            change = (DEPLOYMENT, "chat-decode", {"status": {field: 0}}, "status")
            components, graphs, written = await after(world, change)
            assert (1, 1) == (components, graphs)
            ends = [request.rpartition("/namespaces/default/")[2] for request in written]
            assert [f"{COMPONENT.plural}/chat-decode/status", f"{GRAPH.plural}/chat/status"] == ends

    scenario()


@on_simulated_clock
async def test_a_read_field_that_changes_no_status_costs_one_reconcile() -> None:
    async with running() as world:
        await settled(world)
        change = (DEPLOYMENT, "chat-decode", {"status": {"conditions": [DEADLINE]}}, "status")
        assert (1, 0, []) == await after(world, change)


@pytest.mark.parametrize("what", CORRECTED)
def test_drift_is_corrected_by_one_write(what: str) -> None:
    @on_simulated_clock
    async def scenario() -> None:
        async with running() as world:
            await settled(world)
            kind, name, patch = CORRECTED[what]
            before = world.read(kind, name)
            *_, written = await after(world, (kind, name, patch, ""))
            assert [f"PATCH {path_of(kind, 'default', name)}"] == [
                request for request in written if not request.endswith("/status")
            ]
            corrected = world.read(kind, name)
            parts = ("spec", "rules")
            assert [before.get(part) for part in parts] == [corrected.get(part) for part in parts]

    scenario()


@pytest.mark.parametrize("field", UNREAD)
def test_a_change_of_an_unread_field_requeues_nothing(field: str) -> None:
    @on_simulated_clock
    async def scenario() -> None:
        async with running() as world:
            await settled(world)
            assert (0, 0, []) == await after(world, UNREAD[field])

    scenario()
