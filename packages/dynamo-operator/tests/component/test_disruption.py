"""The limit of a PodDisruptionBudget, and the budget of a component without a graph."""

from typing import Any

import pytest

from dynamo_operator.component.render import budget_limit, component_parts
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from specs import a_component

ONE = RenderSettings(disruption_budget_max_unavailable="1")


def limit(settings: RenderSettings = ONE, **spec: Any) -> Object:
    return budget_limit(a_component(**spec).spec, settings)


@pytest.mark.parametrize(("text", "bound"), [("1", 1), ("25%", "25%")])
def test_the_default_limit_applies_to_several_replicas(text: str, bound: object) -> None:
    settings = RenderSettings(disruption_budget_max_unavailable=text)
    assert {"maxUnavailable": bound} == limit(settings, replicas=2)
    assert [{}, {}, {}] == [limit(settings, replicas=replicas) for replicas in (None, 0, 1)]
    assert {} == limit(RenderSettings(), replicas=3)
    assert {} == limit(settings, replicas=2, multinode={"nodeCount": 2})


@pytest.mark.parametrize(
    ("budget", "bound"),
    [
        ({"minAvailable": "50%"}, {"minAvailable": "50%"}),
        ({"minAvailable": "2"}, {"minAvailable": 2}),
        ({"maxUnavailable": 0}, {"maxUnavailable": 0}),
    ],
)
def test_the_budget_of_the_service_overrides_the_default(budget: Object, bound: Object) -> None:
    assert bound == limit(replicas=1, disruptionBudget=budget)
    assert {} == limit(replicas=3, disruptionBudget={})


def test_a_component_of_a_graph_has_no_budget_of_its_own() -> None:
    own = {"labels": {"nvidia.com/dynamo-graph-deployment-name": "chat"}}
    with_graph, _ = component_parts(a_component(metadata=own, replicas=2), Facts(), ONE)
    alone, _ = component_parts(a_component(replicas=2), Facts(), ONE)
    budgets = [it for it in (*with_graph, *alone) if it["kind"] == "PodDisruptionBudget"]
    assert [{"nvidia.com/selector": "w"}] == [it["spec"]["selector"]["matchLabels"] for it in budgets]
