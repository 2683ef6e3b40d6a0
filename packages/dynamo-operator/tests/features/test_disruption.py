"""The PodDisruptionBudgets of a graph, and the pods that they select."""

from dynamo_graphs.offline import graph_tree
from dynamo_operator.component.service import component_object
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from specs import a_graph, a_service

ONE = RenderSettings(disruption_budget_max_unavailable="1")


def test_a_budget_selects_the_pods_of_its_service_in_every_dynamo_namespace() -> None:
    graph = a_graph({"W": a_service(replicas=2), "V": a_service(replicas=2)})
    objects = graph_tree(graph, Facts(), ONE)
    pods = {
        it["metadata"]["name"]: it["spec"]["template"]["metadata"]["labels"]
        for it in objects
        if it["kind"] == "Deployment"
    }
    budgets = {it["metadata"]["name"]: it["spec"] for it in objects if it["kind"] == "PodDisruptionBudget"}
    assert {"chat-v", "chat-w"} == budgets.keys()
    for name, spec in budgets.items():
        selected = spec["selector"]["matchLabels"]
        assert "nvidia.com/dynamo-namespace" not in selected
        assert [name] == [pod for pod, own in pods.items() if selected.items() <= own.items()]


def test_a_graph_on_grove_has_no_budgets() -> None:
    objects = graph_tree(a_graph({"W": a_service(replicas=2)}), Facts(grove_served=True), ONE)
    assert "PodDisruptionBudget" not in {it["kind"] for it in objects}


def test_the_components_of_a_graph_carry_no_budget() -> None:
    graph = a_graph({"W": a_service(disruptionBudget={"maxUnavailable": 1})})
    component = component_object(graph, "W", ONE)
    assert "disruptionBudget" not in component["spec"]
