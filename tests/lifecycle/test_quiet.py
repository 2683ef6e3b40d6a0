"""A settled graph costs nothing, and every field of a child that is read wakes whom it concerns, once."""

import asyncio

import pytest

from cluster.graph.graphs import graph, service, worker
from kube_runtime.kind import Kind, Object
from kube_runtime.types.apps import Deployment
from kube_runtime.types.core import Service
from kube_runtime.types.rbac import Role
from lifecycle.running import COMPONENT, GRAPH, REST_SECONDS, Change, Running, running
from simulated.clock import on_simulated_clock

DEPLOYMENT = Deployment.KIND
SERVICE = Service.KIND
ROLE = Role.KIND

TWENTY_MINUTES = 1200.0
"""Ten would do for the promise; in twenty, every object is resynced at least once."""


async def settled(world: Running) -> None:
    """Have a graph whose components all run."""
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


async def happens(world: Running, change: Change) -> tuple[int, int, list[str]]:
    """How often components and graphs were reconciled after a change, and what was written but events."""
    components, graphs, written = await world.after(change)
    return components, graphs, [entry for entry in written if "/events" not in entry]


@pytest.mark.parametrize("field", COUNTS)
def test_a_field_of_a_deployments_status_wakes_its_component_and_that_its_graph(field: str) -> None:
    """Once each: what a reconcile wrote itself wakes it no more."""

    @on_simulated_clock
    async def scenario() -> None:
        async with running() as world:
            await settled(world)
            change = (DEPLOYMENT, "chat-decode", {"status": {field: 0}}, "status")
            components, graphs, written = await happens(world, change)
            assert (1, 1) == (components, graphs)
            ends = [entry.rpartition("/namespaces/default/")[2] for entry in written]
            assert [f"{COMPONENT.plural}/chat-decode/status", f"{GRAPH.plural}/chat/status"] == ends

    scenario()


@on_simulated_clock
async def test_what_is_read_and_changes_no_status_costs_one_reconcile() -> None:
    async with running() as world:
        await settled(world)
        change = (DEPLOYMENT, "chat-decode", {"status": {"conditions": [DEADLINE]}}, "status")
        assert (1, 0, []) == await happens(world, change)


@pytest.mark.parametrize("what", CORRECTED)
def test_what_somebody_changes_by_hand_is_put_right_by_one_write(what: str) -> None:
    @on_simulated_clock
    async def scenario() -> None:
        async with running() as world:
            await settled(world)
            kind, name, patch = CORRECTED[what]
            before = world.read(kind, name)
            *_, written = await happens(world, (kind, name, patch, ""))
            assert [f"PATCH {kind.path('default', name)}"] == [
                entry for entry in written if not entry.endswith("/status")
            ]
            after = world.read(kind, name)
            parts = ("spec", "rules")
            assert [before.get(part) for part in parts] == [after.get(item) for item in parts]

    scenario()


@pytest.mark.parametrize("field", UNREAD)
def test_a_field_that_is_not_read_wakes_nobody(field: str) -> None:
    @on_simulated_clock
    async def scenario() -> None:
        async with running() as world:
            await settled(world)
            assert (0, 0, []) == await happens(world, UNREAD[field])

    scenario()
