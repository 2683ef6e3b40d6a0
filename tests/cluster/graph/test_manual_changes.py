"""Manual changes of objects that the operator created are reverted, in any field."""

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from cluster.conditions import is_ready
from cluster.graph.graphs import IMAGE, graph, service
from cluster.world import COMPONENT, DEPLOYMENT, GRAPH, SERVICE, World
from dynamo_operator import labels
from kube_runtime.types.kinds import Ingress, Role, RoleBinding, ServiceAccount
from kube_runtime.types.meta import Kind, Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

SECURED = {"allowPrivilegeEscalation": False}
POD = {
    "mainContainer": {"image": IMAGE, "securityContext": SECURED},
    "nodeSelector": {"kubernetes.io/os": "linux"},
}
FRONTEND = "chat-frontend"


def in_pod(**fields: Any) -> Object:
    return {"spec": {"template": {"spec": fields}}}


def without_security(live: Object) -> Object:
    """A patch of the first container, as it is but for its security context."""
    first = {**live["spec"]["template"]["spec"]["containers"][0], "securityContext": None}
    return in_pod(containers=[first])


def an_extra_right(live: Object) -> Object:
    first, *rest = live["rules"]
    return {"rules": [{**first, "resourceNames": ["nothing"]}, *rest]}


CHANGES: dict[str, tuple[Kind, str, Callable[[Object], Object]]] = {
    "a selector": (SERVICE, FRONTEND, lambda _: {"spec": {"selector": {"intruder": "x"}}}),
    "a rule of a role": (Role.KIND, "chat-k8s-service-discovery-role", an_extra_right),
    "replicas": (DEPLOYMENT, FRONTEND, lambda _: {"spec": {"replicas": 3}}),
    "a node selector": (DEPLOYMENT, FRONTEND, lambda _: in_pod(nodeSelector={"disk": "ssd"})),
    "a switch that is on when it is absent": (DEPLOYMENT, FRONTEND, without_security),
    "a node selector of a component": (
        COMPONENT,
        FRONTEND,
        lambda _: {"spec": {"extraPodSpec": {"nodeSelector": {"disk": "ssd"}}}},
    ),
}


def test_a_manual_change_is_taken_back(world: World) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend", extraPodSpec=POD)))
    world.eventually(GRAPH, "chat", is_ready)
    for change, (kind, name, patch) in CHANGES.items():
        before = world.eventually(kind, name)
        wanted = told(before)
        assert wanted != told(world.patch(kind, name, patch(before))), change
        world.eventually(kind, name, partial(says, wanted))


def says(wanted: Object, live: Object) -> bool:
    return wanted == told(live)


LABELLED: dict[str, tuple[Kind, str, str]] = {
    "Deployment": (DEPLOYMENT, FRONTEND, labels.COMPONENT),
    "Service": (SERVICE, FRONTEND, labels.COMPONENT),
    "Ingress": (Ingress.KIND, FRONTEND, labels.COMPONENT),
    "ServiceAccount": (ServiceAccount.KIND, "chat-k8s-service-discovery", labels.APP_MANAGED_BY),
    "Role": (Role.KIND, "chat-k8s-service-discovery-role", labels.APP_MANAGED_BY),
    "RoleBinding": (RoleBinding.KIND, "chat-k8s-service-discovery-binding", labels.APP_MANAGED_BY),
}
"""Kinds that are watched by a label, an object of each, and the label."""


def test_a_label_that_a_user_removes_is_restored_and_nothing_is_replaced(world: World) -> None:
    """The watch says that the object is gone, because it selects by that label."""
    reached = {"enabled": True, "host": "chat", "ingressControllerClassName": "nginx"}
    world.create(GRAPH, graph(Frontend=service("frontend", ingress=reached)))
    world.eventually(GRAPH, "chat", is_ready)
    before = {name: world.eventually(*where[:2]) for name, where in LABELLED.items()}
    for kind, name, label in LABELLED.values():
        world.patch(kind, name, {"metadata": {"labels": {label: None}}})
    for each, (kind, name, label) in LABELLED.items():
        live = world.eventually(kind, name, partial(is_labelled, label))
        assert before[each]["metadata"]["uid"] == live["metadata"]["uid"]
        assert told(before[each]) == told(live)
    world.eventually(GRAPH, "chat", is_ready)


def is_labelled(label: str, live: Object) -> bool:
    return label in live["metadata"].get("labels", {})


def told(live: Object) -> Object:
    """What an object says, without status and metadata."""
    return {key: value for key, value in live.items() if key not in ("metadata", "status")}
