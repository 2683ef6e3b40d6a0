"""The user of a run: creates graphs, changes them, and watches them.

It disturbs the measurement little: one watch of each kind, decoding few fields, with a separate user agent.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic
from typing import ClassVar

from cluster.graph.graphs import graph
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.client.client import Client
from kube_runtime.client.http import AiohttpTransport
from kube_runtime.client.kubeconfig import Kubeconfig
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Key, Kind, Object, Resource, Struct
from kube_runtime.wire import decode

NAMESPACE = "default"
AT_ONCE = 8
"""Concurrent creations."""


class _GraphStatus(Struct):
    state: str = ""
    observed_generation: int = 0


class Graph(Resource):
    """A graph with the fields that a user waits for."""

    KIND: ClassVar[Kind] = DynamoGraphDeployment.KIND

    status: _GraphStatus = _GraphStatus()

    @property
    def is_successful(self) -> bool:
        """Whether the newest spec runs."""
        is_newest = self.status.observed_generation == self.metadata.generation
        return is_newest and self.status.state == "successful"


class _WorkloadSpec(Struct):
    replicas: int = 1


class _WorkloadStatus(Struct):
    observed_generation: int = 0
    available_replicas: int = 0


class Workload(Resource):
    """A Deployment."""

    KIND: ClassVar[Kind] = Deployment.KIND

    spec: _WorkloadSpec = _WorkloadSpec()
    status: _WorkloadStatus = _WorkloadStatus()

    @property
    def is_available(self) -> bool:
        """Whether all pods of the newest spec are available."""
        is_newest = self.status.observed_generation == self.metadata.generation
        return is_newest and self.status.available_replicas == self.spec.replicas


@dataclass(slots=True)
class User:
    """Watches the graphs and Deployments of one namespace; records when each became ready."""

    client: Client
    kind: type[Graph]
    body: Callable[[str], Object]
    graphs: dict[str, Graph] = field(default_factory=dict[str, Graph])
    workloads: dict[str, Workload] = field(default_factory=dict[str, Workload])
    successful_at: dict[str, float] = field(default_factory=dict[str, float])
    available_at: dict[str, float] = field(default_factory=dict[str, float])
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def create(self, count: int, *, first: int = 0) -> None:
        """Create `count` graphs, `AT_ONCE` concurrently."""
        names = iter(f"g{number}" for number in range(first, first + count))

        async def several() -> None:
            for name in names:
                await self.client.create(self.kind, self.body(name))

        await asyncio.gather(*(several() for _ in range(AT_ONCE)))

    async def scale(self, name: str, service: str, replicas: int) -> None:
        """Write a service's replicas into the spec of its graph."""
        patch = {"spec": {"services": {service: {"replicas": replicas}}}}
        await self.client.merge_patch(Graph, Key(NAMESPACE, name), patch)

    async def until(self, holds: Callable[[], bool], *, within_seconds: float) -> float:
        """Wait until a condition holds, checking it after each watch event; return the time."""
        async with asyncio.timeout(within_seconds):
            while not holds():
                self._changed.clear()
                await self._changed.wait()
        return monotonic()

    def all_successful(self, count: int) -> bool:
        """Whether `count` graphs are successful."""
        return len(self.successful_at) >= count

    def all_available(self, count: int) -> bool:
        """Whether `count` Deployments are available."""
        return len(self.available_at) >= count

    async def follow(self, type_: type[Graph] | type[Workload]) -> None:
        """List and watch a kind until cancelled."""
        version = ""
        async for page in self.client.pages(type_, namespace=NAMESPACE):
            version = page.resource_version
            for resource in page.items:
                self._take(resource)
        while True:
            stream = self.client.watch(
                type_, resource_version=version, namespace=NAMESPACE, timeout_seconds=3600
            )
            async for line in stream:
                seen = decode(type_, line.object)
                version = seen.metadata.resource_version
                if line.type == "DELETED":
                    self._forget(seen)
                elif line.type != "BOOKMARK":
                    self._take(seen)

    def _forget(self, gone: Resource) -> None:
        name = gone.metadata.name
        if isinstance(gone, Graph):
            self.graphs.pop(name, None)
            self.successful_at.pop(name, None)
        elif isinstance(gone, Workload):
            self.workloads.pop(name, None)
            self.available_at.pop(name, None)
        self._changed.set()

    def _take(self, seen: Resource) -> None:
        name = seen.metadata.name
        if isinstance(seen, Graph):
            self.graphs[name] = seen
            if seen.is_successful:
                self.successful_at.setdefault(name, monotonic())
            else:
                self.successful_at.pop(name, None)
        elif isinstance(seen, Workload):
            self.workloads[name] = seen
            if seen.is_available:
                self.available_at.setdefault(name, monotonic())
            else:
                self.available_at.pop(name, None)
        self._changed.set()


def graph_body(name: str) -> Object:
    """A graph of a frontend and two workers."""
    return whole(DynamoGraphDeployment, graph(name))


def whole(type_: type[Resource], body: Object) -> Object:
    """A manifest with its kind and namespace."""
    metadata = {**body["metadata"], "namespace": NAMESPACE}
    kind = type_.KIND
    return {"apiVersion": kind.api_version, "kind": kind.name, **body, "metadata": metadata}


@asynccontextmanager
async def client(kubeconfig: Path, agent: str) -> AsyncIterator[Client]:
    """A client with that user agent."""
    credentials = Kubeconfig([kubeconfig], None)
    async with AiohttpTransport(credentials, user_agent=f"{agent}/1") as transport:
        yield Client(transport, field_manager="test")


@asynccontextmanager
async def connected_user(
    kubeconfig: Path, kind: type[Graph] = Graph, body: Callable[[str], Object] = graph_body
) -> AsyncIterator[User]:
    """A user who creates such graphs and watches from now on."""
    async with client(kubeconfig, "bench-user") as connected:
        user = User(connected, kind, body)
        tasks = [asyncio.create_task(user.follow(type_)) for type_ in (kind, Workload)]
        try:
            yield user
        finally:
            for task in tasks:
                task.cancel()
            for task in tasks:
                with suppress(asyncio.CancelledError):
                    await task
