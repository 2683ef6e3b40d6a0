"""A graph keeps the workload provider that it began with."""

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.installed import installed
from cluster.world import COMPONENT, GRAPH, World
from dynamo_operator.shared.cluster import GROVE, PodCliqueSet
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

RECORD = "nvidia.com/workload-provider"
UNAVAILABLE = "selected_workload_provider_unavailable"


def test_graphs_stay_where_they_began_while_grove_comes_and_goes(world: World, kinds: ControlPlane) -> None:
    frontend = service("frontend")
    world.create(GRAPH, graph("before", Frontend=frontend))
    before = world.eventually(GRAPH, "before", is_ready)
    assert RECORD not in _annotations(before)
    with installed(kinds, ("grove",), GROVE.kinds):
        world.eventually(GRAPH, "before", lambda it: "component" == _annotations(it).get(RECORD))

        world.create(GRAPH, graph("during", Frontend=frontend))
        world.eventually(GRAPH, "during", lambda it: "grove" == _annotations(it).get(RECORD))
        world.eventually(PodCliqueSet.KIND, "during")
        world.patch(GRAPH, "before", {"spec": {"services": {"Frontend": {"replicas": 2}}}})
        world.eventually(GRAPH, "before", lambda it: is_ready(it) and 2 == it["status"]["observedGeneration"])
        assert None is world.get(PodCliqueSet.KIND, "before")
        world.patch(GRAPH, "before", {"metadata": {"annotations": {RECORD: None}}})
        world.eventually(GRAPH, "before", lambda it: "component" == _annotations(it).get(RECORD))
        was = world.eventually(COMPONENT, "before-frontend")["metadata"]["uid"]
        world.delete(COMPONENT, "before-frontend")
        world.eventually(COMPONENT, "before-frontend", lambda it: was != it["metadata"]["uid"])
        world.eventually(GRAPH, "before", is_ready)
        assert None is world.get(PodCliqueSet.KIND, "before")
    lost = world.eventually(GRAPH, "during", lambda it: UNAVAILABLE == _reason(it))
    assert "grove" == _annotations(lost)[RECORD]
    assert None is world.get(COMPONENT, "during-frontend")
    world.create(GRAPH, graph("after", Frontend=frontend))
    world.eventually(GRAPH, "after", is_ready)
    with installed(kinds, ("grove",), GROVE.kinds):
        world.eventually(PodCliqueSet.KIND, "during")
        world.eventually(GRAPH, "during", lambda it: UNAVAILABLE != _reason(it))


def _annotations(body: Object) -> dict[str, str]:
    found: dict[str, str] = body["metadata"].get("annotations", {})
    return found


def _reason(body: Object) -> str:
    return str(condition(body, "Ready").get("reason", ""))
