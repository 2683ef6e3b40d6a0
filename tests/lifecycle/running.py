"""The whole operator on a simulated API server and a simulated clock.

No pods run here: a test writes the statuses of Deployments itself, field by field.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TypeAlias

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.product import FIELD_MANAGER, METRICS_PREFIX
from dynamo_graphs.settings import HealthSettings, MetricsSettings, Settings
from dynamo_operator.process import operator
from dynamo_operator.process.scope import scope_of
from kube_runtime.client.requests import Client
from kube_runtime.kind import Key, Kind, Object
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.apiextensions import CustomResourceDefinition
from kube_runtime.types.apps import Deployment
from simulated.managed import managed
from simulated.server import Server

GRAPH, COMPONENT = DynamoGraphDeployment.KIND, DynamoComponentDeployment.KIND
NAMESPACE = "default"
REST_SECONDS = 30.0
"""Longer than everything that is put off, shorter than a resync."""

Change: TypeAlias = tuple[Kind, str, Object, str]
"""Of what kind and name, a merge patch, and of which subresource."""


@dataclass
class Running:
    """An operator that runs, and its server."""

    server: Server
    metrics: RuntimeMetrics

    def create(self, kind: Kind, body: Object) -> None:
        """Have a user create an object."""
        metadata = {**body["metadata"], "namespace": NAMESPACE}
        full = {"apiVersion": kind.api_version, "kind": kind.name, **body, "metadata": metadata}
        self.server.storage.create(kind.path(), full)

    def read(self, kind: Kind, name: str) -> Object:
        """The object as it is stored."""
        return self.server.storage.read(kind.path(), Key(NAMESPACE, name))

    def names(self, kind: Kind) -> list[str]:
        """All objects of the kind."""
        return sorted(key.name for key in self.server.storage.objects.get(kind.path(), {}))

    def change(self, kind: Kind, name: str, patch: Object, subresource: str = "") -> None:
        """Change an object as another client."""
        self.server.storage.merge(kind.path(), Key(NAMESPACE, name), patch, subresource)

    def writes(self) -> list[str]:
        """The writes that the operator has asked for, events among them."""
        return [
            f"{each.method} {each.path}" for each in self.server.requests if each.method != "GET"
        ]

    def reconciles(self, kind: Kind) -> int:
        """How often the objects of that kind have been reconciled."""
        return int(
            sum(
                sample.value
                for family in self.metrics.registry.collect()
                for sample in family.samples
                if sample.name == "dynamo_operator_reconcile_total"
                and sample.labels["resource_type"] == kind.name
            )
        )

    async def happens(
        self, change: Change, *, within_seconds: float = REST_SECONDS
    ) -> tuple[int, int, list[str]]:
        """How often components and graphs are reconciled after a change, and what is written."""
        before = [self.reconciles(each) for each in (COMPONENT, GRAPH)]
        written = len(self.writes())
        self.change(*change)
        await asyncio.sleep(within_seconds)
        components, graphs = (
            self.reconciles(each) - old
            for each, old in zip((COMPONENT, GRAPH), before, strict=True)
        )
        return components, graphs, self.writes()[written:]

    async def deployments_run(self) -> None:
        """Have every Deployment run what its spec says, then let everything come to rest."""
        for name in self.names(Deployment.KIND):
            body = self.read(Deployment.KIND, name)
            count = body["spec"].get("replicas", 1)
            counts = ("replicas", "updatedReplicas", "readyReplicas", "availableReplicas")
            status = {
                "observedGeneration": body["metadata"]["generation"],
                **dict.fromkeys(counts, count),
            }
            self.change(Deployment.KIND, name, {"status": status}, "status")
        await asyncio.sleep(REST_SECONDS)


@asynccontextmanager
async def running(
    seed: int = 0, *, installed: Iterable[Kind] = (), legacy_kinds: bool = False
) -> AsyncIterator[Running]:
    """An operator, meanwhile; the kinds of other projects that are `installed` are there before it."""
    server, metrics = Server(seed), RuntimeMetrics(prefix=METRICS_PREFIX)
    for kind in installed:
        definition = {"metadata": {"name": str(kind)}}
        server.storage.create(CustomResourceDefinition.KIND.path(), definition)
    settings = Settings(
        metrics=MetricsSettings(bind_address="0"),
        health=HealthSettings(bind_address="0"),
        legacy_kinds=legacy_kinds,
    )
    client = Client(server, field_manager=FIELD_MANAGER)
    manager = operator.manager(client, settings, metrics, scope_of(client, settings))
    async with managed(manager, settle_seconds=REST_SECONDS):
        yield Running(server, metrics)
