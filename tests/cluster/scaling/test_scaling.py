"""Scaling a service through its adapter: by hand, by an autoscaler, with GitOps, as docs/scaling.md says."""

import json
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from cluster.conditions import condition, is_ready
from cluster.graph.graphs import graph, service, worker
from cluster.guides import commands, manifests
from cluster.world import ADAPTER, COMPONENT, DEPLOYMENT, EVENTS, GRAPH, World
from devcluster.components import KubectlError
from kube_runtime.types.meta import Kind, Object
from kube_runtime.wire import path_of

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

Kubectl = Callable[..., str]
AUTOSCALER = Kind("autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers")
NAME = "chat-decode"
SELECTOR = "nvidia.com/dynamo-graph-deployment-name=chat,nvidia.com/dynamo-component=decode"


def manifest(*, is_scaled: bool = True, **decode: Any) -> Object:
    """A frontend and a worker with an adapter, as a user keeps it in Git."""
    decode.setdefault("scalingAdapter", {"enabled": is_scaled})
    body = graph("chat", frontend=service("frontend"), decode=worker("decode", **decode))
    return {"apiVersion": GRAPH.api_version, "kind": GRAPH.name, **body}


def without_number(body: Object) -> Object:
    del body["spec"]["services"]["decode"]["replicas"]
    return body


def says(status: str, reason: str) -> Callable[[Object], bool]:
    def does(body: Object) -> bool:
        ready = condition(body, "Ready")
        return (status, reason) == (ready.get("status"), ready.get("reason"))

    return does


def own_number(body: Object) -> int | None:
    found: int | None = body["spec"]["services"]["decode"].get("replicas")
    return found


def events(world: World) -> set[tuple[str, str, str]]:
    return {(each["involvedObject"]["name"], each["reason"], each["message"]) for each in world.list(EVENTS)}


def scaled_to(world: World, replicas: int) -> Object:
    """The adapter, once it says that so many exist, and the graph and the workload agree."""

    def agree() -> Object | None:
        adapter, deployment = world.get(ADAPTER, NAME), world.get(DEPLOYMENT, NAME)
        stored = world.get(GRAPH, "chat")
        if adapter is None or deployment is None or stored is None:
            return None
        said = {
            adapter["spec"]["replicas"],
            adapter.get("status", {}).get("replicas"),
            own_number(stored),
            deployment["spec"]["replicas"],
        }
        return adapter if {replicas} == said and says("True", "scaled")(adapter) else None

    found: Object = world.until(agree, what=lambda: str(world.get(ADAPTER, NAME)))
    return found


def started(world: World, **decode: Any) -> None:
    world.create(GRAPH, manifest(**decode))
    world.eventually(GRAPH, "chat", is_ready)
    world.eventually(ADAPTER, NAME, says("True", "scaled"))


def test_scale_with_kubectl(world: World, kubectl: Kubectl) -> None:
    started(world)
    kubectl("scale", "dgdsa/chat-decode", "--replicas=4")
    found = scaled_to(world, 4)
    assert SELECTOR == found["status"]["selector"]
    assert "lastScaleTime" in found["status"]
    header, row = kubectl("get", "dgdsa").splitlines()
    assert ["NAME", "DGD", "SERVICE", "REPLICAS", "AGE"] == header.split()
    assert ["chat-decode", "chat", "decode", "4"] == row.split()[:-1]
    text = "Scaled service decode from 1 to 4 replicas, requested by kubectl"
    told = {("chat", "Scaled", text), (NAME, "Scaled", text)}
    world.until(lambda: told <= events(world))
    scale = json.loads(kubectl("get", "--raw", f"{path_of(ADAPTER, world.namespace, NAME)}/scale"))
    assert {"replicas": 4, "selector": SELECTOR} == scale["status"]


def test_an_apply_that_leaves_the_number_out_keeps_it(world: World, kubectl: Kubectl) -> None:
    started(world, replicas=2)
    kubectl("scale", "dgdsa/chat-decode", "--replicas=4")
    scaled_to(world, 4)
    for again in (manifest(replicas=2), without_number(manifest())):
        world.apply(GRAPH, again)
        world.eventually(GRAPH, "chat", lambda body: own_number(body) == 4)
    scaled_to(world, 4)
    stored = world.apply(GRAPH, without_number(manifest()))
    assert 4 == own_number(stored), "it is not even gone for a moment"


def test_an_apply_of_another_number_is_put_back(world: World, kubectl: Kubectl) -> None:
    started(world)
    kubectl("scale", "dgdsa/chat-decode", "--replicas=4")
    scaled_to(world, 4)
    with pytest.raises(KubectlError, match=r"decode.replicas") as refusal:
        kubectl("apply", "--server-side", "--filename=-", input=json.dumps(manifest(replicas=3)))
    assert "dynamo-operator-scaling" in str(refusal.value)
    before = generation(world)
    world.apply(GRAPH, manifest(replicas=3))
    world.eventually(GRAPH, "chat", lambda body: own_number(body) == 4)
    scaled_to(world, 4)
    assert before == generation(world), "the workload was never given the other number"


def generation(world: World) -> int:
    component = world.read(COMPONENT, NAME)
    found: int = component["metadata"]["generation"]
    return found


def test_client_side_apply_is_put_back(world: World, kubectl: Kubectl) -> None:
    kubectl("apply", "--filename=-", input=json.dumps(manifest(replicas=2)))
    world.eventually(ADAPTER, NAME, says("True", "scaled"))
    kubectl("scale", "dgdsa/chat-decode", "--replicas=4")
    scaled_to(world, 4)
    before = generation(world)
    for again in (manifest(replicas=2), without_number(manifest())):
        kubectl("apply", "--filename=-", input=json.dumps(again))
        world.eventually(GRAPH, "chat", lambda body: own_number(body) == 4)
    scaled_to(world, 4)
    assert before == generation(world)


def test_a_service_that_an_apply_takes_out_is_gone(world: World, kubectl: Kubectl) -> None:
    world.apply(GRAPH, manifest())
    world.eventually(ADAPTER, NAME, says("True", "scaled"))
    kubectl("scale", "dgdsa/chat-decode", "--replicas=2")
    scaled_to(world, 2)
    smaller = manifest()
    del smaller["spec"]["services"]["decode"]
    world.apply(GRAPH, smaller)
    left = world.eventually(GRAPH, "chat", lambda body: "decode" not in body["spec"]["services"])
    assert ["frontend"] == list(left["spec"]["services"])
    world.gone(ADAPTER, NAME)
    world.gone(DEPLOYMENT, NAME)
    world.eventually(GRAPH, "chat", is_ready)


def test_an_autoscaler_of_kubernetes_scales_through_the_adapter(world: World) -> None:
    started(world)
    target = {"apiVersion": ADAPTER.api_version, "kind": ADAPTER.name, "name": NAME}
    spec = {"minReplicas": 3, "maxReplicas": 5, "scaleTargetRef": target}
    world.create(AUTOSCALER, {"metadata": {"name": "decode"}, "spec": spec})
    world.eventually(GRAPH, "chat", lambda body: own_number(body) == 3)
    scaled_to(world, 3)
    said = world.eventually(AUTOSCALER, "decode")
    assert "True" == condition(said, "AbleToScale")["status"]
    text = "Scaled service decode from 1 to 3 replicas, requested by kube-controller-manager"
    world.until(lambda: ("chat", "Scaled", text) in events(world))


PAGE = "scaling.md"
NOT_INSTALLED = {"ScaledObject", "Application"}


def test_the_commands_work_on_the_graph_of_the_page(world: World, kubectl: Kubectl) -> None:
    (graph,) = [each for each in manifests(PAGE) if each["kind"] == GRAPH.name]
    by_hand, scaled = commands(PAGE)[:2], commands(PAGE)[2:]
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
    world.patch(GRAPH, "chat", {"spec": {"services": {"decode": {"replicas": 2}}}})
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
