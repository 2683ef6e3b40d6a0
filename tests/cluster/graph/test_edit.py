"""`dynamoctl scale`, `suspend`, `resume` and `rollout` on a real cluster: what becomes of a command."""

from collections.abc import Callable

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.person import Person
from cluster.world import GRAPH, PODS, World
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def replicas(count: int) -> Callable[[Object], bool]:
    return lambda deployment: deployment["spec"]["replicas"] == count


def test_a_service_is_scaled_by_its_adapter(world: World, admin: Person) -> None:
    scaled = worker("decode", scalingAdapter={"enabled": True})
    world.create(GRAPH, graph(Frontend=service("frontend"), Decode=scaled))
    world.eventually(GRAPH, "chat", is_ready)
    code, text, _ = admin.run("scale", "chat/Decode", "--replicas=2")
    assert (0, True) == (code, "through scaling adapter chat-decode" in text)
    world.eventually(Deployment.KIND, "chat-decode", replicas(2))
    adapter = world.read(DynamoGraphDeploymentScalingAdapter.KIND, "chat-decode")
    assert 2 == adapter["spec"]["replicas"]
    assert 0 == admin.run("rollout", "pause", "dgdsa/chat-decode")[0]
    _, _, said = admin.run("scale", "chat/Decode", "--replicas=3")
    assert "note: the scaling adapter chat-decode is paused; " in said


def test_a_graph_is_suspended_and_resumed(world: World, admin: Person) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)
    assert f"Suspending graph {world.namespace}/chat.\n" == (admin.run("suspend", "chat")[1])
    world.eventually(GRAPH, "chat", lambda it: condition(it, "Suspended").get("status") == "True")
    world.eventually(Deployment.KIND, "chat-decode", replicas(0))
    assert not [pod for pod in world.list(PODS) if "deletionTimestamp" not in pod["metadata"]]
    _, text, said = admin.run("scale", "chat/Decode", "--replicas=2")
    assert "to 2 replicas" in text
    assert "note: the graph chat is suspended; `dynamoctl resume dgd/chat` ends that\n" == said
    assert (0, "") == admin.run("resume", "chat")[::2]
    world.eventually(Deployment.KIND, "chat-decode", replicas(2))
    assert f"Graph {world.namespace}/chat is not suspended.\n" == (admin.run("resume", "chat")[1])


def test_a_rollout_is_paused_and_resumed(world: World, admin: Person) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)
    assert 0 == admin.run("rollout", "pause", "chat")[0]
    world.eventually(GRAPH, "chat", lambda it: condition(it, "Progressing")["reason"] == "paused")
    _, _, said = admin.run("scale", "chat/Decode", "--replicas=2")
    assert "note: the graph chat is paused; `dynamoctl rollout resume dgd/chat` ends that\n" == said
    assert replicas(1)(world.read(Deployment.KIND, "chat-decode"))
    assert (0, "") == admin.run("rollout", "resume", "chat")[::2]
    world.eventually(Deployment.KIND, "chat-decode", replicas(2))


def test_who_may_not_write_reads_that(kinds: ControlPlane, world: World, kubectl: Callable[..., str]) -> None:
    world.create(GRAPH, graph())
    kubectl("create", "serviceaccount", "reader")
    account = f"--serviceaccount={world.namespace}:reader"
    kubectl("create", "role", "reader", "--verb=get", "--resource=dynamographdeployments.nvidia.com")
    kubectl("create", "rolebinding", "reader", "--role=reader", account)
    file = kinds.instance.service_account_kubeconfig(world.namespace, "reader")
    code, text, said = Person(file, world.namespace).run("suspend", "chat")
    assert (1, "") == (code, text)
    assert 'cannot patch resource "dynamographdeployments"' in said
