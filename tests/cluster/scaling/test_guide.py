"""The instructions of `docs/scaling.md` work, in the order in which users read them."""

import re
import shlex
from pathlib import Path

import pytest
import yaml

from cluster.conditions import is_ready
from cluster.graph.test_graph import GRAPH
from cluster.scaling.test_scaling import ADAPTER, Kubectl, events
from cluster.world import World
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

PAGE = Path(__file__).parents[3] / "docs" / "scaling.md"
BLOCK = re.compile(r"```(yaml|console)\n(.*?)```", re.DOTALL)
NOT_INSTALLED = {"ScaledObject", "Application"}


def blocks() -> list[tuple[str, str]]:
    return BLOCK.findall(PAGE.read_text(encoding="utf-8"))


def manifests() -> list[Object]:
    return [yaml.safe_load(text) for kind, text in blocks() if kind == "yaml"]


def commands() -> list[list[str]]:
    lines = "".join(text for kind, text in blocks() if kind == "console").splitlines()
    return [shlex.split(line.removeprefix("$ kubectl ")) for line in lines]


def test_the_commands_work_on_the_graph_of_the_page(world: World, kubectl: Kubectl) -> None:
    (graph,) = [each for each in manifests() if each["kind"] == GRAPH.name]
    by_hand, scaled = commands()[:3], commands()[3:]
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
    for each in manifests():
        if each["kind"] not in NOT_INSTALLED:
            text = yaml.safe_dump(each)
            kubectl("create", "--dry-run=server", "--validate=strict", "--filename=-", input=text)
    kinds = [each["kind"] for each in manifests()]
    assert {"HorizontalPodAutoscaler", GRAPH.name, *NOT_INSTALLED} == set(kinds)


def test_every_autoscaler_of_the_page_has_the_adapter_as_its_target() -> None:
    targets = [each["spec"].get("scaleTargetRef") for each in manifests()]
    target = {"apiVersion": ADAPTER.api_version, "kind": ADAPTER.name, "name": "chat-decode"}
    assert [target, target] == [each for each in targets if each]
