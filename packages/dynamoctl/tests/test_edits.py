"""A number is written into the graph that it was decided for."""

import asyncio

import pytest

from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.change import edits
from dynamoctl.cluster.target import Missing
from dynamoctl.options import Where
from kube_runtime.client.client import Answer, Request
from kube_runtime.errors import Conflict
from kube_runtime.kind import Key, Object
from scripted.connections import connect_to
from simulated.server import Server

GRAPHS = "/apis/nvidia.com/v1alpha1/dynamographdeployments"
CHAT = Key("prod", "chat")
HERE = Where(namespace="prod")


class Cluster(Server):
    """An API server with one graph, which another client changes before each of the next writes."""

    def __init__(self, *changes: Object) -> None:
        super().__init__()
        self.changes = list(changes)
        services = {"Decode": {"replicas": 1}, "Frontend": {"replicas": 1}}
        metadata = {"namespace": CHAT.namespace, "name": CHAT.name}
        kind = DynamoGraphDeployment.KIND
        self.storage.create(
            GRAPHS,
            {
                "apiVersion": kind.api_version,
                "kind": kind.name,
                "metadata": metadata,
                "spec": {"services": services},
            },
        )

    async def send(self, request: Request) -> Answer:
        if request.method == "PATCH" and self.changes:
            self.storage.merge(GRAPHS, CHAT, self.changes.pop(0))
        return await super().send(request)

    def services(self) -> Object:
        """Those of the graph."""
        services: Object = self.storage.read(GRAPHS, CHAT)["spec"]["services"]
        return services


def test_a_graph_that_changes_meanwhile_is_read_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster({"metadata": {"labels": {"a": "b"}}}, {"spec": {"services": {"X": {}}}})
    connect_to(cluster, monkeypatch)
    asyncio.run(edits.scale("chat/Decode", 3, HERE))
    assert {"Decode": {"replicas": 3}, "Frontend": {"replicas": 1}, "X": {}} == cluster.services()


def test_a_service_that_goes_meanwhile_is_not_made_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster({"spec": {"services": {"Decode": None}}})
    connect_to(cluster, monkeypatch)
    with pytest.raises(Missing, match='service "Decode" not found'):
        asyncio.run(edits.scale("chat/Decode", 3, HERE))
    assert {"Frontend": {"replicas": 1}} == cluster.services()


def test_a_graph_that_never_stands_still_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cluster = Cluster(*({"metadata": {"labels": {"a": str(each)}}} for each in range(99)))
    connect_to(cluster, monkeypatch)
    with pytest.raises(Conflict):
        asyncio.run(edits.scale("chat/Decode", 3, HERE))
    assert len(cluster.requests) < 20


def test_what_is_so_already_is_not_written(monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    connect_to(cluster, monkeypatch)
    asyncio.run(edits.suspend("chat", HERE, is_on=True))
    asyncio.run(edits.suspend("chat", HERE, is_on=True))
    asyncio.run(edits.scale("chat/Decode", 1, HERE))
    assert ["GET", "PATCH", "GET", "GET"] == [each.method for each in cluster.requests]
