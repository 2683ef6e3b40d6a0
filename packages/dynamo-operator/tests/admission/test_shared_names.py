"""Cluster-wide names: the second user gets a warning that does not name the first."""

from typing import Any

import msgspec
import pytest

from dynamo_operator.admission.decide import shared_names
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.warnings import ClusterContext
from kube_runtime.cache.store import Cache
from kube_runtime.cache.watch import Present, Removed
from kube_runtime.types.kinds import Ingress
from kube_runtime.types.meta import Metadata
from reviews.asking import verdict
from reviews.rows import graph, with_service
from simulated.caches import a_store
from specs import a_graph

HOST = {
    "enabled": True,
    "host": "chat",
    "hostSuffix": "example.com",
    "ingressControllerClassName": "nginx",
}


class World:
    """Graphs and Ingresses that come and go."""

    def __init__(self) -> None:
        self.graphs, self.ingresses = a_store(DynamoGraphDeployment), a_store(Ingress)
        self.names = shared_names(Cache([self.graphs, self.ingresses]))

    def around(self, namespace: str) -> ClusterContext:
        return ClusterContext(
            foreign_graphs=self.names.graphs.outside(namespace),
            foreign_hosts=self.names.hosts.outside(namespace),
        )


def ingress(namespace: str, *hosts: str, spec: bytes = b"") -> Ingress:
    text = spec or msgspec.json.encode({"rules": [{"host": each} for each in hosts] + [{}]})
    return Ingress(Metadata("x", namespace, uid="1"), spec=msgspec.Raw(text))


def warned(document: Any, world: World, namespace: str = "lab") -> tuple[str, ...]:
    placed = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
    return verdict(placed, cluster=world.around(namespace)).warnings


def test_a_dynamo_namespace_that_another_namespace_has_is_told() -> None:
    world = World()
    world.graphs.on_watch_event(Present(a_graph({}, name="b-chat", namespace="lab-a")))
    clash = {**graph(), "metadata": {"name": "a-b-chat", "namespace": "lab"}}
    (told,) = warned(clash, world)
    assert (
        "metadata.name: a graph in another namespace uses the same Dynamo namespace "
        '"lab-a-b-chat"' in told
    )
    assert "b-chat in" not in told.replace("lab-a-b-chat", "")
    assert () == warned(graph(), world)


def test_a_graph_is_no_rival_of_itself_and_one_that_is_gone_of_nobody() -> None:
    world = World()
    world.graphs.on_watch_event(Present(a_graph({}, name="chat", namespace="lab")))
    assert () == warned(graph(), world)
    other = a_graph({}, name="b-chat", namespace="lab-a")
    world.graphs.on_watch_event(Present(other))
    world.graphs.on_watch_event(Removed(other.key, other.metadata.uid))
    clash = {**graph(), "metadata": {"name": "a-b-chat", "namespace": "lab"}}
    assert () == warned(clash, world)


def test_a_host_that_another_namespace_has_is_told() -> None:
    world = World()
    world.ingresses.on_watch_event(Present(ingress("prod", "chat.example.com")))
    (told,) = warned(with_service(ingress=HOST), world)
    assert 'an Ingress in another namespace uses the same host "chat.example.com"' in told
    assert () == warned(with_service(ingress=HOST), world, "prod")


@pytest.mark.parametrize("spec", [b"{}", b'{"rules":5}', b'{"rules":[{"host":null}]}'])
def test_an_ingress_without_hosts_claims_none(spec: bytes) -> None:
    world = World()
    world.ingresses.on_watch_event(Present(ingress("prod", spec=spec)))
    assert "chat.example.com" not in world.names.hosts.outside("lab")
