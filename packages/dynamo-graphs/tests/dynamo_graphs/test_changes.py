"""Which pods a changed graph restarts: only those whose rendered template differs."""

import copy

import pytest

from dynamo_graphs.changes import Effect, differences, effects, workloads
from dynamo_graphs.ownership import comparable
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object

GRAPH: Object = {
    "apiVersion": "nvidia.com/v1alpha1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"namespace": "prod", "name": "chat"},
    "spec": {
        "services": {
            name: {
                "componentType": type_,
                "replicas": 2,
                "extraPodSpec": {"mainContainer": {"image": "example.com/it:1"}},
            }
            for name, type_ in (("Frontend", "frontend"), ("Decode", "worker"))
        }
    },
}


def changed(**fields: object) -> Object:
    graph = copy.deepcopy(GRAPH)
    graph["spec"]["services"]["Decode"].update(fields)
    return graph


def impact(after: Object, before: Object = GRAPH) -> list[Effect]:
    facts, settings = Facts(lws_served=True), RenderSettings()
    return effects(workloads(before, facts, settings), workloads(after, facts, settings))


def test_another_image_restarts_its_service_alone() -> None:
    image = {"mainContainer": {"image": "example.com/it:2"}}
    (effect,) = impact(changed(extraPodSpec=image))
    assert ("Decode", "restart") == (effect.service, effect.verb)
    path = "spec.containers.main.image: example.com/it:1 → example.com/it:2"
    assert f"2 replicas: {path}" == effect.text


def test_a_change_of_replicas_restarts_no_pod() -> None:
    assert [] == impact(copy.deepcopy(GRAPH))
    assert [Effect("Decode", "scale", "2 → 5")] == impact(changed(replicas=5))


def test_several_nodes_are_another_workload() -> None:
    main = {"image": "example.com/it:1", "command": ["python3"], "args": ["-m", "dynamo.vllm"]}
    graph = changed(
        multinode={"nodeCount": 2}, resources={"limits": {"gpu": "1"}}, extraPodSpec={"mainContainer": main}
    )
    (effect,) = impact(graph)
    assert ("Decode", "restart") == (effect.service, effect.verb)
    assert effect.text.startswith("2 replicas: ")


def test_an_added_and_a_removed_service_are_effects() -> None:
    graph = copy.deepcopy(GRAPH)
    services = graph["spec"]["services"]
    services["Prefill"] = services.pop("Decode")
    found = [(each.service, each.verb) for each in impact(graph)]
    assert [("Decode", "delete"), ("Prefill", "create")] == found


def test_a_graph_that_cannot_be_rendered() -> None:
    with pytest.raises(ValueError, match=r"spec\.services\.Decode"):
        impact(changed(replicas=-1))


def test_list_entries_are_compared_by_name() -> None:
    before = {"env": [{"name": "a", "value": "1"}, {"name": "b", "value": "2"}]}
    after = {"env": [{"name": "b", "value": "3"}, {"name": "c", "value": "4"}]}
    assert [
        "env.a: {'name': 'a', 'value': '1'} → nothing",
        "env.b.value: 2 → 3",
        "env.c: nothing → {'name': 'c', 'value': '4'}",
    ] == list(differences(before, after))


def test_what_the_api_server_writes_is_not_compared() -> None:
    live = copy.deepcopy(GRAPH)
    live["metadata"] |= {
        "uid": "u",
        "resourceVersion": "7",
        "generation": 3,
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"},
        "managedFields": [],
    }
    live["status"] = {"state": "pending"}
    assert comparable(GRAPH) == comparable(live)
