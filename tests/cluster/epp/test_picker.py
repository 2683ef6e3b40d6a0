"""A graph with an endpoint picker, and graphs behind a gateway, on a real API server."""

from typing import Any

import pytest

from cluster.conditions import is_ready
from cluster.graph.graphs import graph, service
from cluster.world import GRAPH, World
from dynamo_operator.shared.cluster import InferencePool, VirtualService
from kube_runtime.types.kinds import ConfigMap, Deployment, RoleBinding, Service, ServiceAccount
from kube_runtime.types.meta import Object

CONFIG = ConfigMap.KIND
POOL = InferencePool.KIND
VIRTUAL_SERVICE = VirtualService.KIND

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def picker(weight: int = 10, **fields: Any) -> Object:
    plugins = [{"pluginRef": "picker", "weight": weight}]
    config = {
        "plugins": [{"type": "max-score-picker", "name": "picker"}],
        "schedulingProfiles": [{"name": "default", "plugins": plugins}],
    }
    return service("epp", **{"eppConfig": {"config": config}, **fields})


def test_a_graph_with_a_picker_becomes_ready(world: World) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend"), Epp=picker()))
    world.eventually(GRAPH, "chat", is_ready)
    pool = world.eventually(POOL, "chat-pool")
    assert "chat-epp" == pool["spec"]["endpointPickerRef"]["name"]
    assert world.get(Service.KIND, "chat-epp")
    assert world.get(Deployment.KIND, "chat-epp")
    binding = world.eventually(RoleBinding.KIND, "epp-serviceaccount-binding")
    assert "view" == binding["roleRef"]["name"]
    assert ["chat"] == [each["name"] for each in binding["metadata"]["ownerReferences"]]


def test_what_belongs_to_a_picker_goes_with_it(world: World) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend"), Epp=picker()))
    world.eventually(GRAPH, "chat", is_ready)
    world.patch(GRAPH, "chat", {"spec": {"services": {"Epp": None}}})
    for kind, name in (
        (POOL, "chat-pool"),
        (CONFIG, "chat-epp-config"),
        (ServiceAccount.KIND, "epp-serviceaccount"),
        (RoleBinding.KIND, "epp-serviceaccount-binding"),
        (Service.KIND, "chat-epp"),
    ):
        world.gone(kind, name)
    world.eventually(GRAPH, "chat", is_ready)


def test_a_frontend_behind_the_gateway_has_a_virtual_service(world: World) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend")))
    found = world.eventually(VIRTUAL_SERVICE, "chat-frontend")
    assert ["istio-system/public"] == found["spec"]["gateways"]
    assert ["chat.local"] == found["spec"]["hosts"]
    world.patch(GRAPH, "chat", {"spec": {"services": {"Frontend": {"ingress": {"enabled": False}}}}})
    world.gone(VIRTUAL_SERVICE, "chat-frontend")
