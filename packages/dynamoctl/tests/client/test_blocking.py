"""The actions of graphs are the methods of the clients: same names, same arguments, same answers."""

import inspect
from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest

from dynamo_graphs import Graph
from dynamoctl.client import AsyncCluster, Cluster

if TYPE_CHECKING:
    from dynamo_graphs.graph import AsyncClusterClient, ClusterClient

    # Held by mypy.
    CLUSTER: ClusterClient = Cluster()
    CONNECTED: AsyncClusterClient = AsyncCluster()

GRAPH = Graph("chat").frontend().worker("Decode", model="Qwen/Qwen3-0.6B")
ARGUMENTS: dict[str, tuple[tuple[object, ...], dict[str, object]]] = {
    "diff": ((), {"force": True}),
    "apply": ((), {"force": True}),
    "wait": ((), {"seconds": 7.0, "seen": print}),
    "why": ((), {}),
    "logs": (("Decode",), {"tail": 3, "container": "sidecar"}),
    "scale": (("Decode", 2), {}),
    "delete": ((), {"seconds": 7.0}),
    "chat": (("Hello",), {"model": "qwen", "max_tokens": 9}),
}


def parameters(method: Callable[..., object], but: str) -> list[tuple[str, object]]:
    found = inspect.signature(method).parameters.values()
    return [(each.name, each.default) for each in found if each.name not in ("self", but)]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_action_is_the_method_of_the_cluster(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []

    def called(self: Cluster, *given: object, **options: object) -> object:
        calls.append((self, given, options))
        return calls

    own, theirs = getattr(Graph, name), getattr(Cluster, name)
    first = next(each for each in inspect.signature(theirs).parameters if each != "self")
    left = [each for each in parameters(theirs, first) if each[0] != "write"]
    assert parameters(own, "cluster") == left
    monkeypatch.setattr(Cluster, name, called)
    given, options = ARGUMENTS[name]
    cluster = Cluster(namespace="ml")
    own(GRAPH, *given, cluster=cluster, **options)
    own(GRAPH, *given, **options)
    (asked, positional, named), (default, *same) = calls
    assert (asked, positional, named) == (cluster, (GRAPH, *given), options)
    assert isinstance(default, Cluster)
    assert same == [positional, named]


async def test_wait_async_waits_on_a_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[tuple[object, ...]] = []

    async def wait(self: AsyncCluster, graph: Graph, **options: object) -> Graph:
        calls.append((self, options))
        return graph

    monkeypatch.setattr(AsyncCluster, "wait", wait)
    given = AsyncCluster(namespace="ml")
    assert GRAPH == await GRAPH.wait_async(given, seconds=7, seen=print)
    assert calls == [(given, {"seconds": 7, "seen": print})]
