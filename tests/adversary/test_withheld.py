"""An Ingress that is not allowed, on a real API server whose webhooks are off."""

from typing import Any

import pytest

from cluster.conditions import condition
from cluster.graph.graphs import graph, service
from cluster.world import World
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.types.kinds import Deployment, Ingress
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

SNIPPET = "nginx.ingress.kubernetes.io/server-snippet"


def front(**annotations: str) -> dict[str, Any]:
    ingress = {"enabled": True, "host": "chat", "ingressControllerClassName": "nginx"}
    return service("frontend", ingress=ingress | {"annotations": annotations})


def is_withheld(component: Object) -> bool:
    found = condition(component, "Available")
    return found.get("reason") == "ExposureNotAllowed" and SNIPPET in found["message"]


def test_a_snippet_reaches_no_ingress_and_takes_none_away(world: World) -> None:
    world.create(DynamoGraphDeployment.KIND, graph(Frontend=front()))
    before = world.eventually(Ingress.KIND, "chat-frontend")
    patch = {"ingress": {"annotations": {SNIPPET: "return 200;"}}, "replicas": 2}
    body = {"spec": {"services": {"Frontend": patch}}}
    world.patch(DynamoGraphDeployment.KIND, "chat", body)
    world.eventually(DynamoComponentDeployment.KIND, "chat-frontend", is_withheld)
    world.eventually(Deployment.KIND, "chat-frontend", lambda it: it["spec"]["replicas"] == 2)
    after = world.read(Ingress.KIND, "chat-frontend")
    assert before["metadata"]["resourceVersion"] == after["metadata"]["resourceVersion"]
