"""A disruption budget of a graph is made, settles, follows the graph and goes."""

import pytest

from cluster.audit import Audit
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph
from cluster.world import GRAPH, World
from kube_runtime.types.kinds import PodDisruptionBudget

BUDGETS = PodDisruptionBudget.KIND

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def test_a_budget_settles_follows_its_graph_and_goes_with_the_wish(world: World, kinds: ControlPlane) -> None:
    body = graph()
    body["spec"]["labels"] = {"team": "serving"}
    key = min(body["spec"]["services"])
    name = f"chat-{key.lower()}"
    body["spec"]["services"][key]["disruptionBudget"] = {"maxUnavailable": "25%"}
    world.create(GRAPH, body)
    made = world.eventually(BUDGETS, name, lambda each: each.get("status", {}).get("observedGeneration") == 1)
    assert "25%" == made["spec"]["maxUnavailable"]
    assert "serving" == made["metadata"]["labels"]["team"]
    Audit(kinds.audit_log).falls_silent(world.namespace)
    world.patch(
        GRAPH,
        "chat",
        {"spec": {"services": {key: {"disruptionBudget": {"maxUnavailable": None, "minAvailable": 1}}}}},
    )
    changed = world.eventually(BUDGETS, name, lambda each: "minAvailable" in each["spec"])
    assert "maxUnavailable" not in changed["spec"]
    world.patch(GRAPH, "chat", {"spec": {"services": {key: {"disruptionBudget": None}}}})
    world.gone(BUDGETS, name)
