"""Which part of the cluster an operator works in, as its settings say; on a simulated API server."""

import asyncio

import pytest

from dynamo_operator.observability import register_scope
from dynamo_operator.process.scope import LEASE, Scope, scope_of
from dynamo_operator.settings import RenderSettings, Settings
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Manager
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.kinds import Lease
from kube_runtime.types.meta import Key
from kube_runtime.wire import path_of
from simulated.server import Fault, Server

pytestmark = pytest.mark.looptime

LEASES = path_of(Lease.KIND)
WIDE = Settings(operator_version="v2")
RESTRICTED = Settings(operator_version="v2", render=RenderSettings(restricted_namespace="team-a"))


class Operator:
    """One operator's scope, with a manager that has joined it."""

    def __init__(self, server: Server, settings: Settings) -> None:
        client, self.metrics = Client(server), RuntimeMetrics()
        self.scope: Scope = scope_of(client, settings)
        events = EventWriter(client, instance="a", metrics=self.metrics)
        self.manager = Manager(client, Cache(), metrics=self.metrics, events=events)
        self.scope.join(self.manager)
        register_scope(self.metrics.registry, lambda: len(self.scope.excluded), lambda: False)
        self.stop = asyncio.Event()
        self._run: asyncio.Task[None] | None = None

    async def start(self) -> "Operator":
        await self.scope.claim()
        self._run = asyncio.create_task(self.manager.run(self.stop))
        await asyncio.sleep(0.5)
        return self

    async def end(self) -> None:
        assert self._run is not None
        self.stop.set()
        await self._run
        await self.scope.release()

    def excluded(self) -> float | None:
        return self.metrics.registry.get_sample_value("dynamo_operator_excluded_namespaces")


async def test_a_restricted_operator_marks_its_namespace_for_as_long_as_it_runs() -> None:
    server = Server()
    operator = await Operator(server, RESTRICTED).start()
    lease = server.storage.read(LEASES, Key("team-a", LEASE))
    assert "namespace-restricted-operator-v2" == lease["spec"]["holderIdentity"]
    assert all(lease.holds_lease() for lease in operator.scope.leases)
    await operator.end()
    assert {} == server.storage.objects[LEASES]


async def test_a_restricted_operator_reads_no_lease_of_anybody() -> None:
    server = Server()
    operator = await Operator(server, RESTRICTED).start()
    await asyncio.sleep(60)
    assert {"PATCH", "POST"} == {each.method for each in server.requests}
    await operator.end()


async def test_a_cluster_wide_operator_leaves_a_namespace_to_its_own_operator() -> None:
    server = Server()
    wide = await Operator(server, WIDE).start()
    assert (set(), 0) == (set(wide.scope.excluded), wide.excluded())
    restricted = await Operator(server, RESTRICTED).start()
    assert ({"team-a"}, set()) == (set(wide.scope.excluded), set(restricted.scope.excluded))
    assert 1 == wide.excluded()
    await restricted.end()
    await asyncio.sleep(0.1)
    assert (set(), 0) == (set(wide.scope.excluded), wide.excluded())
    await wide.end()


async def test_a_cluster_wide_operator_is_not_ready_before_it_knows_all_markers() -> None:
    server = Server()
    server.faults.append(Fault(500, times=20, collection=LEASES))
    operator = await Operator(server, WIDE).start()
    assert not operator.manager.ready()
    server.faults.clear()
    await asyncio.sleep(60)
    assert operator.manager.ready()
    await operator.end()


async def test_a_cluster_wide_operator_asks_for_marker_leases_only() -> None:
    server = Server()
    operator = await Operator(server, WIDE).start()
    asked = {each.query.get("fieldSelector") for each in server.requests}
    assert {f"metadata.name={LEASE}"} == asked
    await operator.end()
