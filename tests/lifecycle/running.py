"""The whole operator on a simulated API server and a simulated clock.

There are no pods: a test writes the statuses of Deployments.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from dynamo_operator import FIELD_MANAGER, METRICS_PREFIX
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.process import operator
from dynamo_operator.process.scope import scope_of
from dynamo_operator.settings import HealthSettings, MetricsSettings, RenderSettings, Settings
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.kinds import CustomResourceDefinition, Deployment
from kube_runtime.types.meta import Key, Kind, Object
from kube_runtime.wire import path_of
from simulated.managed import managed
from simulated.server import Server

GRAPH, COMPONENT = DynamoGraphDeployment.KIND, DynamoComponentDeployment.KIND
NAMESPACE = "default"
REST_SECONDS = 30.0
"""Longer than every delay of the operator, shorter than a resync."""

Change: TypeAlias = tuple[Kind, str, Object, str]
"""Kind, name, merge patch, subresource."""


@dataclass
class Running:
    server: Server
    metrics: RuntimeMetrics
    cache: Cache

    def create(self, kind: Kind, body: Object) -> None:
        metadata = {**body["metadata"], "namespace": NAMESPACE}
        full = {"apiVersion": kind.api_version, "kind": kind.name, **body, "metadata": metadata}
        self.server.storage.create(path_of(kind), full)

    def read(self, kind: Kind, name: str) -> Object:
        return self.server.storage.read(path_of(kind), Key(NAMESPACE, name))

    def ready(self, graph: str) -> str:
        """The status of the condition Ready of a graph."""
        conditions = self.read(GRAPH, graph).get("status", {}).get("conditions", ())
        return next((each["status"] for each in conditions if each["type"] == "Ready"), "")

    def names(self, kind: Kind) -> list[str]:
        return sorted(key.name for key in self.server.storage.objects.get(path_of(kind), {}))

    def change(self, kind: Kind, name: str, patch: Object, subresource: str = "") -> None:
        self.server.storage.merge(path_of(kind), Key(NAMESPACE, name), patch, subresource)

    def delete(self, kind: Kind, name: str) -> None:
        self.server.storage.delete(path_of(kind), Key(NAMESPACE, name), {})

    def writes(self) -> list[str]:
        """The writes of the operator, including Events."""
        return [
            f"{request.method} {request.path}" for request in self.server.requests if request.method != "GET"
        ]

    def reconciles(self, kind: Kind) -> int:
        one = self.metrics.registry.restricted_registry(["dynamo_operator_reconcile_total"])
        samples = (sample for family in one.collect() for sample in family.samples)
        return int(sum(sample.value for sample in samples if sample.labels["resource_type"] == kind.name))

    async def after(
        self, change: Change, *, within_seconds: float = REST_SECONDS
    ) -> tuple[int, int, list[str]]:
        """Make a change; return the reconciles of components and of graphs, and the writes, that follow."""
        before = [self.reconciles(kind) for kind in (COMPONENT, GRAPH)]
        written = len(self.writes())
        self.change(*change)
        await asyncio.sleep(within_seconds)
        components, graphs = (
            self.reconciles(kind) - old for kind, old in zip((COMPONENT, GRAPH), before, strict=True)
        )
        return components, graphs, self.writes()[written:]

    async def deployments_run(self) -> None:
        """Make every Deployment run its spec, then wait until the operator is idle."""
        for name in self.names(Deployment.KIND):
            self.deployment_runs(name)
        await asyncio.sleep(REST_SECONDS)

    def deployment_runs(self, name: str) -> None:
        body = self.read(Deployment.KIND, name)
        count = body["spec"].get("replicas", 1)
        counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
        status = {"observedGeneration": body["metadata"]["generation"], **dict.fromkeys(counts, count)}
        self.change(Deployment.KIND, name, {"status": status}, "status")


def install(server: Server, *kinds: Kind) -> None:
    for kind in kinds:
        definition = {"metadata": {"name": str(kind)}}
        server.storage.create(path_of(CustomResourceDefinition.KIND), definition)


def uninstall(server: Server, *kinds: Kind) -> None:
    for kind in kinds:
        server.storage.delete(path_of(CustomResourceDefinition.KIND), Key("", str(kind)), {})


@asynccontextmanager
async def running(
    seed: int = 0,
    *,
    installed: Iterable[Kind] = (),
    legacy_kinds: bool = False,
    server: Server | None = None,
    render: RenderSettings | None = None,
) -> AsyncIterator[Running]:
    """Run an operator, on a new server or that of an earlier one.

    CRDs of the kinds `installed` exist before it starts.
    """
    server, metrics = server or Server(seed), RuntimeMetrics(prefix=METRICS_PREFIX)
    install(server, *installed)
    settings = Settings(
        render=render or RenderSettings(),
        metrics=MetricsSettings(bind_address="0"),
        health=HealthSettings(bind_address="0"),
        legacy_kinds=legacy_kinds,
    )
    client = Client(server, field_manager=FIELD_MANAGER)
    manager = operator.manager(client, settings, metrics, scope_of(client, settings))
    async with managed(manager, settle_seconds=REST_SECONDS):
        yield Running(server, metrics, manager.cache)
