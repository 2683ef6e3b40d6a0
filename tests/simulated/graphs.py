"""A simulated cluster with graphs and their adapters, in which no pods run: what scaling is tested on.

The graph's controller is a small one: it keeps adapters as the real one does, and says in the status that the
number which they want is there at once. `asked` is every number that a workload would have been given.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

from msgspec.structs import replace

from dynamo_graphs.api.component import DynamoComponentDeployment, ServiceReplicaStatus
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.plan.adapters import plan_adapters
from dynamo_graphs.plan.replicas import effective_replicas
from dynamo_graphs.product import FIELD_MANAGER
from dynamo_operator.graph.read import service_snapshot
from dynamo_operator.reconcile.report import Reporter, record_events, result_of
from dynamo_operator.scaling.adapters import apply_adapters
from dynamo_operator.scaling.controller import ScalingController
from dynamo_operator.scaling.read import adapter_watch, read_adapters
from kube_runtime.apply.status_patch import StatusRateLimit, patch_status
from kube_runtime.apply.suppression import WriteSuppression
from kube_runtime.apply.writer import Writer
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.informer import Informer, Watches
from kube_runtime.client.requests import Client
from kube_runtime.controller.controller import DONE, Result
from kube_runtime.controller.events import EventWriter
from kube_runtime.controller.manager import Manager
from kube_runtime.kind import Key, Object
from kube_runtime.metrics import RuntimeMetrics
from kube_runtime.types.meta import Resource
from simulated.managed import managed
from simulated.server import Server

GRAPHS = DynamoGraphDeployment.KIND.path()
ADAPTERS = DynamoGraphDeploymentScalingAdapter.KIND.path()
EVENTS = "/api/v1/events"
NAMESPACE = "prod"
GRAPH = Key(NAMESPACE, "chat")
ADAPTER = Key(NAMESPACE, "chat-decode")


@dataclass
class _GraphController:
    """Keeps adapters and reports; renders nothing."""

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
        not_created = (*inputs.unreadable, *inputs.refused)
        plan = plan_adapters(graph, observed, inputs.present, not_created)
        applied = await apply_adapters(graph, plan, inputs, cluster.writer, cluster.restraint)
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
        record_events(cluster.recorder, graph, stored, applied=applied)
        return result_of(applied)


class Cluster:
    """An API server, and the operator, which can be stopped and started again."""

    def __init__(self, seed: int = 0) -> None:
        self.server = Server(seed)
        self.storage = self.server.storage
        self.asked: list[dict[str, int]] = []

    @asynccontextmanager
    async def operator(self) -> AsyncIterator[None]:
        """Have a fresh operator run meanwhile, its caches full."""
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
        reporter = Reporter(self.writer, self.recorder, StatusRateLimit())
        manager.control(ScalingController(client, self.cache, reporter))
        async with managed(manager, settle_seconds=5):
            yield

    # What users and autoscalers do.

    def has_graph(self, **services: Any) -> None:
        """Have a graph, of a service `decode` with an adapter unless others are named."""
        chosen = services or {"decode": scaled(1)}
        metadata = {"name": GRAPH.name, "namespace": GRAPH.namespace}
        self.storage.create(GRAPHS, {"metadata": metadata, "spec": {"services": chosen}})

    def edit(self, **decode: Any) -> None:
        """Change the service `decode` of the graph."""
        self.edit_graph({"spec": {"services": {"decode": decode}}})

    def edit_graph(self, patch: Object) -> None:
        """Change the graph."""
        self.storage.merge(GRAPHS, GRAPH, patch)

    def scale(self, replicas: int, key: Key = ADAPTER) -> None:
        """Set the number of an adapter, as its scale subresource does."""
        self.storage.merge(ADAPTERS, key, {"spec": {"replicas": replicas}})

    def has_adapter(self, name: str, replicas: int, service: str = "decode") -> None:
        """Have an adapter that a user made."""
        metadata = {"name": name, "namespace": NAMESPACE}
        reference = {"name": GRAPH.name, "serviceName": service}
        spec = {"replicas": replicas, "dgdRef": reference}
        self.storage.create(ADAPTERS, {"metadata": metadata, "spec": spec})

    # What there is.

    def graph(self) -> Object:
        """The graph."""
        return self.storage.read(GRAPHS, GRAPH)

    def adapter(self, key: Key = ADAPTER) -> Object:
        """An adapter."""
        return self.storage.read(ADAPTERS, key)

    def adapters(self) -> list[str]:
        """The names of all adapters."""
        return sorted(key.name for key in self.storage.objects.get(ADAPTERS, {}))

    def numbers(self) -> tuple[int, int, int]:
        """Of `decode`: what the adapter wants, the graph says, and the workload was given."""
        own = self.graph()["spec"]["services"]["decode"].get("replicas", 1)
        return self.adapter()["spec"]["replicas"], own, self.asked[-1]["decode"]

    def ready(self, key: Key = ADAPTER) -> tuple[str, str]:
        """Status and reason of an adapter's `Ready`."""
        (each,) = self.adapter(key)["status"]["conditions"]
        return each["status"], each["reason"]

    def events(self) -> set[tuple[str, str, str]]:
        """Whom events are about, their reasons and messages."""
        return {
            (each["involvedObject"]["name"], each["reason"], each["message"])
            for each in self.storage.objects.get(EVENTS, {}).values()
        }

    def writes(self, collection: str, subresource: str = "") -> int:
        """How many writes reached objects of that collection, or their subresource."""
        plural = collection.rpartition("/")[2]
        return sum(
            1
            for each in self.server.requests
            if each.method in ("PATCH", "POST", "PUT", "DELETE")
            and plural in (parts := each.path.split("/"))
            and (parts[-1] == subresource if subresource else parts[-1] != "status")
        )


def scaled(replicas: int | None, **fields: Any) -> Object:
    """A service with an adapter."""
    number = {} if replicas is None else {"replicas": replicas}
    return {"componentType": "worker", "scalingAdapter": {"enabled": True}, **number, **fields}
