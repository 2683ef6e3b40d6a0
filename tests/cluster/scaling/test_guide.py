"""The instructions of `docs/scaling.md` work, in the order in which users read them."""

import pytest
import yaml

from cluster.conditions import is_ready
from cluster.guides import commands, manifests
from cluster.scaling.test_scaling import Kubectl, events
from cluster.world import ADAPTER, GRAPH, World

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

PAGE = "scaling.md"
NOT_INSTALLED = {"ScaledObject", "Application"}


def test_the_commands_work_on_the_graph_of_the_page(world: World, kubectl: Kubectl) -> None:
    (graph,) = [each for each in manifests(PAGE) if each["kind"] == GRAPH.name]
    by_hand, scaled = commands(PAGE)[:3], commands(PAGE)[3:]
    world.create(GRAPH, graph)
    world.eventually(ADAPTER, "chat-decode")
    for command in scaled:
        kubectl(*command)
    world.eventually(ADAPTER, "chat-decode", lambda body: body["status"].get("replicas") == 1)
    world.eventually(GRAPH, "chat", is_ready)
    services = graph["spec"]["services"]
    services["decode"]["scalingAdapter"]["enabled"] = False
    world.patch(GRAPH, "chat", {"spec": {"services": services}})
    world.gone(ADAPTER, "chat-decode")
    for command in by_hand:
        kubectl(*command)
    world.eventually(
        GRAPH,
        "chat",
        lambda body: (
            is_ready(body)
            and body["spec"]["replicas"] == 1
            and body["status"]["services"]["decode"]["replicas"] == 2
        ),
    )
    # Events are written after the decisions that they report, and not by the worker that decided.
    expected = {"Scaled", "CreateDynamoGraphDeploymentScalingAdapter"}
    world.until(lambda: expected <= {reason for _, reason, _ in events(world)})


def test_the_api_server_takes_the_manifests(world: World, kubectl: Kubectl) -> None:
    for each in manifests(PAGE):
        if each["kind"] not in NOT_INSTALLED:
            text = yaml.safe_dump(each)
            kubectl("create", "--dry-run=server", "--validate=strict", "--filename=-", input=text)
    kinds = [each["kind"] for each in manifests(PAGE)]
    assert {"HorizontalPodAutoscaler", GRAPH.name, *NOT_INSTALLED} == set(kinds)


def test_every_autoscaler_of_the_page_has_the_adapter_as_its_target() -> None:
    targets = [each["spec"].get("scaleTargetRef") for each in manifests(PAGE)]
    target = {"apiVersion": ADAPTER.api_version, "kind": ADAPTER.name, "name": "chat-decode"}
    assert [target, target] == [each for each in targets if each]
