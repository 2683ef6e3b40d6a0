"""Who gets a disruption budget, over which pods, and who makes it."""

from collections.abc import Sequence
from typing import Any

import pytest

from dynamo_graphs.offline import graph_tree
from dynamo_operator.component.render import component_parts
from dynamo_operator.component.service import component_object
from dynamo_operator.features.disruption import graph_disruption_budgets
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from specs import a_component, a_graph, a_service

ONE = RenderSettings(disruption_budget_max_unavailable="1")


def budgets(objects: Sequence[Object]) -> dict[str, Object]:
    found = (each for each in objects if each["kind"] == "PodDisruptionBudget")
    return {each["metadata"]["name"]: each["spec"] for each in found}


def of_graph(settings: RenderSettings = ONE, **service: Any) -> dict[str, Object]:
    return budgets(graph_disruption_budgets(a_graph({"W": a_service(**service)}), settings))


def test_without_a_wish_and_without_a_default_there_is_none() -> None:
    assert {} == of_graph(RenderSettings(), replicas=3)


@pytest.mark.parametrize(("text", "bound"), [("1", 1), ("25%", "25%")])
def test_the_default_is_for_several_replicas(text: str, bound: object) -> None:
    settings = RenderSettings(disruption_budget_max_unavailable=text)
    assert bound == of_graph(settings, replicas=2)["chat-w"]["maxUnavailable"]
    assert [{}, {}, {}] == [of_graph(settings, replicas=each) for each in (None, 0, 1)]


@pytest.mark.parametrize(
    ("budget", "bound"),
    [
        ({"minAvailable": "50%"}, {"minAvailable": "50%"}),
        ({"minAvailable": "2"}, {"minAvailable": 2}),
        ({"maxUnavailable": 0}, {"maxUnavailable": 0}),
    ],
)
def test_the_service_says_it_better(budget: Object, bound: Object) -> None:
    [spec] = of_graph(replicas=1, disruptionBudget=budget).values()
    assert bound == {name: spec[name] for name in ("minAvailable", "maxUnavailable") if name in spec}
    assert {} == of_graph(replicas=3, disruptionBudget={})


def test_it_counts_the_pods_of_its_service_in_every_dynamo_namespace() -> None:
    graph = a_graph({"W": a_service(replicas=2), "V": a_service(replicas=2)})
    objects = graph_tree(graph, Facts(), ONE)
    pods = {
        each["metadata"]["name"]: each["spec"]["template"]["metadata"]["labels"]
        for each in objects
        if each["kind"] == "Deployment"
    }
    found = budgets(objects)
    assert {"chat-v", "chat-w"} == found.keys()
    for name, spec in found.items():
        selected = spec["selector"]["matchLabels"]
        assert "nvidia.com/dynamo-namespace" not in selected
        assert [name] == [each for each, own in pods.items() if selected.items() <= own.items()]


def test_pods_of_groups_and_on_grove_have_none() -> None:
    assert {} == of_graph(replicas=2, multinode={"nodeCount": 2})
    found = graph_tree(a_graph({"W": a_service(replicas=2)}), Facts(grove_served=True), ONE)
    assert {} == budgets(found)


def test_a_component_of_a_graph_leaves_it_to_the_graph() -> None:
    own = {"labels": {"nvidia.com/dynamo-graph-deployment-name": "chat"}}
    with_graph, _ = component_parts(a_component(metadata=own, replicas=2), Facts(), ONE)
    alone, _ = component_parts(a_component(replicas=2), Facts(), ONE)
    assert {} == budgets(with_graph)
    assert {"nvidia.com/selector": "w"} == budgets(alone)["w"]["selector"]["matchLabels"]


def test_a_component_made_by_a_graph_does_not_say_it_again() -> None:
    graph = a_graph({"W": a_service(disruptionBudget={"maxUnavailable": 1})})
    component = component_object(graph, "W", ONE)
    assert "disruptionBudget" not in component["spec"]
