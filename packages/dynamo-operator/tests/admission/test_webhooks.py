"""What a restricted operator has to do with webhooks, and which names other namespaces use."""

from typing import Any

import msgspec
import pytest

from dynamo_operator.admission.decide import RULES
from dynamo_operator.admission.review import request_in
from dynamo_operator.admission.server import WebhookServer
from dynamo_operator.admission.webhooks import shared_names
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.warnings import ClusterContext
from dynamo_operator.settings import RenderSettings, Settings, WebhookSettings
from kube_runtime.cache.store import Cache
from kube_runtime.cache.watch import Present, Removed
from kube_runtime.errors import ConfigError
from kube_runtime.types.kinds import Ingress
from kube_runtime.types.meta import Metadata
from reviews.asking import review, verdict
from reviews.rows import graph, with_service
from reviews.serving import of_settings
from simulated.caches import a_store
from specs import a_graph

BAD = with_service(ingress={"enabled": True})


def server(**chosen: str) -> WebhookServer:
    settings = Settings(
        render=RenderSettings(restricted_namespace=chosen.pop("restricted", "")),
        webhooks=msgspec.convert(chosen, WebhookSettings),
    )
    return of_settings(settings)


def is_allowed(of: WebhookServer, namespace: str) -> bool:
    request = request_in(review(BAD, namespace=namespace))
    return of.decisions.decide(RULES[0], request).allowed


def test_a_restricted_operator_judges_no_foreign_namespace() -> None:
    restricted = server(restricted="team", certificates="external")
    assert is_allowed(restricted, "lab")
    assert not is_allowed(restricted, "team")


def test_a_cluster_wide_operator_judges_all() -> None:
    assert not is_allowed(server(), "lab")


def test_a_restricted_operator_does_not_start_with_certificates_of_its_own() -> None:
    with pytest.raises(ConfigError, match="may not write the caBundle"):
        server(restricted="team")


HOST_NAMES = {
    "enabled": True,
    "host": "chat",
    "hostSuffix": "example.com",
    "ingressControllerClassName": "nginx",
}


class World:
    """Graphs and Ingresses that come and go."""

    def __init__(self) -> None:
        self.graphs, self.ingresses = a_store(DynamoGraphDeployment), a_store(Ingress)
        self.graph_names, self.hosts = shared_names(Cache([self.graphs, self.ingresses]))

    def around(self, namespace: str) -> ClusterContext:
        return ClusterContext(
            foreign_graphs=self.graph_names.outside(namespace), foreign_hosts=self.hosts.outside(namespace)
        )


def ingress(namespace: str, *hosts: str, spec: bytes = b"") -> Ingress:
    text = spec or msgspec.json.encode({"rules": [{"host": each} for each in hosts] + [{}]})
    return Ingress(Metadata("x", namespace, uid="1"), spec=msgspec.Raw(text))


def warned(document: Any, world: World, namespace: str = "lab") -> tuple[str, ...]:
    placed = {**document, "metadata": {**document["metadata"], "namespace": namespace}}
    return verdict(placed, cluster=world.around(namespace)).warnings


def test_a_dynamo_namespace_that_another_namespace_uses_is_reported() -> None:
    world = World()
    world.graphs.on_watch_event(Present(a_graph({}, name="b-chat", namespace="lab-a")))
    clash = {**graph(), "metadata": {"name": "a-b-chat", "namespace": "lab"}}
    (told,) = warned(clash, world)
    assert 'metadata.name: a graph in another namespace uses the same Dynamo namespace "lab-a-b-chat"' in told
    assert "b-chat in" not in told.replace("lab-a-b-chat", "")
    assert () == warned(graph(), world)


def test_a_graph_does_not_conflict_with_itself_nor_with_a_deleted_one() -> None:
    world = World()
    world.graphs.on_watch_event(Present(a_graph({}, name="chat", namespace="lab")))
    assert () == warned(graph(), world)
    other = a_graph({}, name="b-chat", namespace="lab-a")
    world.graphs.on_watch_event(Present(other))
    world.graphs.on_watch_event(Removed(other.key, other.metadata.uid))
    clash = {**graph(), "metadata": {"name": "a-b-chat", "namespace": "lab"}}
    assert () == warned(clash, world)


def test_a_host_that_another_namespace_uses_is_reported() -> None:
    world = World()
    world.ingresses.on_watch_event(Present(ingress("prod", "chat.example.com")))
    (told,) = warned(with_service(ingress=HOST_NAMES), world)
    assert 'an Ingress in another namespace uses the same host "chat.example.com"' in told
    assert () == warned(with_service(ingress=HOST_NAMES), world, "prod")


@pytest.mark.parametrize("spec", [b"{}", b'{"rules":5}', b'{"rules":[{"host":null}]}'])
def test_an_ingress_without_hosts_claims_none(spec: bytes) -> None:
    world = World()
    world.ingresses.on_watch_event(Present(ingress("prod", spec=spec)))
    assert "chat.example.com" not in world.hosts.outside("lab")
