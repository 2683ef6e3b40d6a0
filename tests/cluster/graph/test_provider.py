"""A graph keeps the workload provider that it began with."""

import pytest

from cluster.audit import Audit, Call
from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service
from cluster.graph.test_graph import COMPONENT, GRAPH
from cluster.installed import installed
from cluster.operator_process import OperatorProcess
from cluster.world import EVENTS, World
from dynamo_operator.shared.cluster import PodClique, PodCliqueScalingGroup, PodCliqueSet
from kube_runtime.kind import Object

_GROVE = tuple(each.KIND for each in (PodCliqueSet, PodClique, PodCliqueScalingGroup))

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

RECORD = "nvidia.com/workload-provider"
UNAVAILABLE = "selected_workload_provider_unavailable"


def test_where_there_is_one_provider_nothing_is_recorded_and_no_request_is_made_for_it(
    world: World, kinds: ControlPlane
) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend")))
    ready = world.eventually(GRAPH, "chat", is_ready)
    assert RECORD not in _annotations(ready)
    calls = Audit(kinds.audit_log).calls(namespace=world.namespace)
    assert 0 == calls[Call("patch", "dynamographdeployments")]


def test_a_graph_whose_provider_is_not_there_says_so_and_is_left_alone(
    world: World, operator: OperatorProcess
) -> None:
    wanted = graph(Frontend=service("frontend"))
    wanted["metadata"]["annotations"] = {RECORD: "knative"}
    world.create(GRAPH, wanted)
    failed = world.eventually(GRAPH, "chat", lambda it: condition(it, "Ready") != {})
    said = condition(failed, "Ready")
    assert ("False", UNAVAILABLE) == (said["status"], said["reason"])
    assert "knative" in said["message"]
    assert "failed" == failed["status"]["state"]

    def told() -> bool:
        return any(it["reason"] == "WorkloadProviderUnavailable" for it in world.list(EVENTS))

    world.until(told)
    assert [] == world.list(COMPONENT)
    world.patch(GRAPH, "chat", {"metadata": {"annotations": {RECORD: "component"}}})
    world.eventually(GRAPH, "chat", is_ready)


def test_graphs_stay_where_they_began_while_grove_comes_and_goes(
    world: World, kinds: ControlPlane
) -> None:
    frontend = service("frontend")
    world.create(GRAPH, graph("before", Frontend=frontend))
    before = world.eventually(GRAPH, "before", is_ready)
    assert RECORD not in _annotations(before)
    with installed(kinds, ("grove",), _GROVE):
        world.eventually(GRAPH, "before", lambda it: "component" == _annotations(it).get(RECORD))

        world.create(GRAPH, graph("during", Frontend=frontend))
        world.eventually(GRAPH, "during", lambda it: "grove" == _annotations(it).get(RECORD))
        world.eventually(PodCliqueSet.KIND, "during")
        world.patch(GRAPH, "before", {"spec": {"services": {"Frontend": {"replicas": 2}}}})
        world.eventually(
            GRAPH, "before", lambda it: is_ready(it) and 2 == it["status"]["observedGeneration"]
        )
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
    with installed(kinds, ("grove",), _GROVE):
        world.eventually(PodCliqueSet.KIND, "during")
        world.eventually(GRAPH, "during", lambda it: UNAVAILABLE != _reason(it))


def _annotations(body: Object) -> dict[str, str]:
    found: dict[str, str] = body["metadata"].get("annotations", {})
    return found


def _reason(body: Object) -> str:
    return str(condition(body, "Ready").get("reason", ""))
