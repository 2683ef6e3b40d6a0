"""What a user empties becomes empty: server-side apply alone would turn it into null."""

import pytest

from cluster.conditions import is_ready
from cluster.graph.graphs import IMAGE, graph, service
from cluster.world import DEPLOYMENT, GRAPH, World

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def test_maps_inside_a_pod_spec_can_be_emptied(world: World) -> None:
    container = {"image": IMAGE, "volumeMounts": [{"name": "work", "mountPath": "/work"}]}
    pod = {
        "mainContainer": container,
        "securityContext": {"fsGroup": 7},
        "volumes": [{"name": "work", "emptyDir": {"sizeLimit": "1Gi"}}],
    }
    world.create(GRAPH, graph(Frontend=service("frontend", extraPodSpec=pod)))
    world.eventually(GRAPH, "chat", is_ready)
    emptied = {**pod, "securityContext": {"fsGroup": None}, "volumes": [{"name": "work", "emptyDir": {}}]}
    world.patch(GRAPH, "chat", {"spec": {"services": {"Frontend": {"extraPodSpec": emptied}}}})
    world.eventually(GRAPH, "chat", is_ready)
    spec = world.eventually(DEPLOYMENT, "chat-frontend")["spec"]["template"]["spec"]
    assert {"name": "work", "emptyDir": {}} in spec["volumes"]
    assert {} == spec.get("securityContext", {})
