"""A simulated cluster with graphs and scaling adapters but without pods, for tests of scaling.

A small controller of graphs replaces the real one: it keeps adapters in the same way, and reports the
desired replicas as running at once. `asked` has the replicas that workloads would have got, in order.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec.structs import replace

from dynamo_operator import FIELD_MANAGER
from dynamo_operator.component.api import DynamoComponentDeployment, ServiceReplicaStatus
from dynamo_operator.component.service import effective_replicas
from dynamo_operator.features.rollouts.revisions import Revisions
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.features.scaling.controller import (
    ScalingController,
    adapter_watch,
    apply_adapters,
    read_adapters,
)
from dynamo_operator.features.scaling.feature import plan_adapters
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.read import service_snapshot
from dynamo_operator.graph.status import status_events
from dynamo_operator.shared.conditions import CONFLICT_RETRY_SECONDS
from dynamo_operator.shared.report import Reporter
from kube_runtime.apply.status import StatusRateLimit, patch_status
from kube_runtime.apply.suppression import WriteSuppression
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.informer import Informer, Watches
from kube_runtime.cache.store import Cache
from kube_runtime.client.client import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Manager
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Key, Object, Resource
from kube_runtime.wire import path_of
from simulated.managed import managed
from simulated.server import Server

GRAPHS = path_of(DynamoGraphDeployment.KIND)
ADAPTERS = path_of(DynamoGraphDeploymentScalingAdapter.KIND)
EVENTS = "/api/v1/events"
NAMESPACE = "prod"
GRAPH = Key(NAMESPACE, "chat")
ADAPTER = Key(NAMESPACE, "chat-decode")


@dataclass
class _GraphController:
    """Keeps adapters and reports replicas; renders nothing."""

    cluster: "Cluster"

    reconciles: ClassVar[type[Resource]] = DynamoGraphDeployment
    owns: ClassVar[tuple[type[Resource], ...]] = ()

    @property
    def watches(self) -> tuple[Watches, ...]:
        return (adapter_watch(),)

    async def reconcile(self, key: Key) -> Result:
        cluster = self.cluster
        graph = cluster.cache.get(DynamoGraphDeployment, key)
        if graph is None or graph.metadata.deletion_timestamp:
            return DONE
        inputs = read_adapters(graph, cluster.cache, cluster.restraint)
        observed = service_snapshot(graph, cluster.cache)
        plan = plan_adapters(graph, observed, inputs, Revisions())
        applied = cluster.reporter.applying(graph)
        await apply_adapters(graph, plan, inputs, cluster.writer, cluster.restraint, applied)
        replicas = effective_replicas(graph, plan.replicas, ())
        counts = {name: 1 if number is None else number for name, number in replicas.items()}
        if not cluster.asked or cluster.asked[-1] != counts:
            cluster.asked.append(counts)
        services = {
            name: ServiceReplicaStatus("Deployment", name, replicas=number, updated_replicas=number)
            for name, number in counts.items()
        }
        generation = graph.metadata.generation
        status = replace(graph.status, observed_generation=generation, services=services)
        stored = await patch_status(cluster.writer, graph, status)
        if stored is not graph:
            cluster.reporter.record(graph, *status_events(graph, stored))
        return Result(CONFLICT_RETRY_SECONDS if applied.obstructions else None)


class Cluster:
    """An API server and an operator, which can be stopped and started again."""

    def __init__(self, seed: int = 0) -> None:
        self.server = Server(seed)
        self.storage = self.server.storage
        self.asked: list[dict[str, int]] = []

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[None]:
        """Run a new operator; its caches are synced when the block starts."""
        client, self.cache = Client(self.server, field_manager=FIELD_MANAGER), Cache()
        metrics = RuntimeMetrics()
        events = EventWriter(client, instance="a", metrics=metrics)
        self.writer, self.recorder = Writer(client, self.cache), events.recorder("operator")
        self.restraint = WriteSuppression()
        manager = Manager(client, self.cache, metrics=metrics, events=events)
        manager.inform(Informer(DynamoGraphDeployment))
        manager.inform(Informer(DynamoGraphDeploymentScalingAdapter))
        manager.inform(Informer(DynamoComponentDeployment))
        manager.control(_GraphController(self))
        self.reporter = Reporter(self.writer, self.recorder, StatusRateLimit(), client)
        manager.control(ScalingController(self.cache, self.reporter))
        async with managed(manager, settle_seconds=5):
            yield

    # What users and autoscalers do.

    def has_graph(self, **services: Any) -> None:
        """Create a graph with these services, by default `decode` with an adapter."""
        services = services or {"decode": scaled(1)}
        metadata = {"name": GRAPH.name, "namespace": GRAPH.namespace}
        self.storage.create(GRAPHS, {"metadata": metadata, "spec": {"services": services}})

    def edit(self, **decode: Any) -> None:
        self.edit_graph({"spec": {"services": {"decode": decode}}})

    def edit_graph(self, patch: Object) -> None:
        self.storage.merge(GRAPHS, GRAPH, patch)

    def scale(self, replicas: int, key: Key = ADAPTER) -> None:
        """Set the replicas of an adapter, as its scale subresource does."""
        self.storage.merge(ADAPTERS, key, {"spec": {"replicas": replicas}})

    def has_adapter(self, name: str, replicas: int, service: str = "decode") -> None:
        metadata = {"name": name, "namespace": NAMESPACE}
        reference = {"name": GRAPH.name, "serviceName": service}
        spec = {"replicas": replicas, "dgdRef": reference}
        self.storage.create(ADAPTERS, {"metadata": metadata, "spec": spec})

    # The state of the cluster.

    def graph(self) -> Object:
        return self.storage.read(GRAPHS, GRAPH)

    def adapter(self, key: Key = ADAPTER) -> Object:
        return self.storage.read(ADAPTERS, key)

    def adapters(self) -> list[str]:
        return sorted(key.name for key in self.storage.objects.get(ADAPTERS, {}))

    def numbers(self) -> tuple[int, int, int]:
        """The replicas of `decode`: in the adapter, in the graph, and of the workload."""
        in_graph = self.graph()["spec"]["services"]["decode"].get("replicas", 1)
        return self.adapter()["spec"]["replicas"], in_graph, self.asked[-1]["decode"]

    def ready(self, key: Key = ADAPTER) -> tuple[str, str]:
        (condition,) = self.adapter(key)["status"]["conditions"]
        return condition["status"], condition["reason"]

    def events(self) -> set[tuple[str, str, str]]:
        return {
            (event["involvedObject"]["name"], event["reason"], event["message"])
            for event in self.storage.objects.get(EVENTS, {}).values()
        }

    def writes(self, collection: str, subresource: str = "") -> int:
        """The number of writes to objects of that collection, or to their subresource."""
        plural = collection.rpartition("/")[2]
        return sum(
            1
            for request in self.server.requests
            if request.method in ("PATCH", "POST", "PUT", "DELETE")
            and plural in (parts := request.path.split("/"))
            and (parts[-1] == subresource if subresource else parts[-1] != "status")
        )


def scaled(replicas: int | None, **fields: Any) -> Object:
    number = {} if replicas is None else {"replicas": replicas}
    return {"componentType": "worker", "scalingAdapter": {"enabled": True}, **number, **fields}


@asynccontextmanager
async def operating(**services: Any) -> AsyncIterator[Cluster]:
    """A cluster with a graph of these services, by default `decode` with an adapter, and an operator."""
    cluster = Cluster()
    cluster.has_graph(**services)
    async with cluster.operator():
        yield cluster


async def settle(seconds: float = 5) -> None:
    await asyncio.sleep(seconds)
