"""`dynamoctl scale`, `suspend`, `resume` and `rollout` on a real cluster: what becomes of a command."""

from collections.abc import Callable

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.person import Person
from cluster.world import PODS, World
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Kind, Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

GRAPH = DynamoGraphDeployment.KIND


def _read(world: World, kind: Kind, name: str) -> Object:
    found = world.get(kind, name)
    assert found is not None
    return found


def replicas(count: int) -> Callable[[Object], bool]:
    return lambda deployment: deployment["spec"]["replicas"] == count


def test_a_service_is_scaled_by_the_graph(world: World, admin: Person) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)
    decode = f"{world.namespace}/chat/Decode"
    assert (0, f"Scaling {decode} from 1 to 3 replicas.\n", "") == admin.run(
        "scale", "chat/Decode", "--replicas=3"
    )
    world.eventually(Deployment.KIND, "chat-decode", replicas(3))
    version = _read(world, GRAPH, "chat")["metadata"]["generation"]
    assert (0, f"{decode} is already set to 3 replicas.\n", "") == admin.run(
        "scale", "dgd/chat/Decode", "--replicas", "3"
    )
    assert version == _read(world, GRAPH, "chat")["metadata"]["generation"]
    assert 0 == admin.run("rollout", "status", "chat")[0]


def test_a_service_is_scaled_by_its_adapter(world: World, admin: Person) -> None:
    scaled = worker("decode", scalingAdapter={"enabled": True})
    world.create(GRAPH, graph(Frontend=service("frontend"), Decode=scaled))
    world.eventually(GRAPH, "chat", is_ready)
    code, text, _ = admin.run("scale", "chat/Decode", "--replicas=2")
    assert (0, True) == (code, "through scaling adapter chat-decode" in text)
    world.eventually(Deployment.KIND, "chat-decode", replicas(2))
    adapter = _read(world, DynamoGraphDeploymentScalingAdapter.KIND, "chat-decode")
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
    assert replicas(1)(_read(world, Deployment.KIND, "chat-decode"))
    assert (0, "") == admin.run("rollout", "resume", "chat")[::2]
    world.eventually(Deployment.KIND, "chat-decode", replicas(2))


def test_a_component_can_be_paused_and_only_a_graph_suspended(world: World, admin: Person) -> None:
    world.create(GRAPH, graph())
    world.eventually(GRAPH, "chat", is_ready)
    code, text, _ = admin.run("rollout", "pause", "dcd/chat-decode")
    assert (0, True) == (code, text.startswith("Pausing component "))
    code, _, said = admin.run("suspend", "dcd/chat-decode")
    assert (2, True) == (code, 'unsupported kind "dcd" (expected dgd)' in said)


def test_a_restart(world: World, admin: Person) -> None:
    world.create(GRAPH, graph())
    before = world.eventually(GRAPH, "chat", is_ready)
    assert 0 == admin.run("rollout", "restart", "chat")[0]
    after = world.eventually(
        GRAPH,
        "chat",
        lambda it: it["status"].get("restart", {}).get("phase") == "Completed" and is_ready(it),
    )
    assert "restart" not in before["spec"]
    assert after["status"]["restart"]["observedID"] == after["spec"]["restart"]["id"]


WRONG = (
    (("scale", "nope/Decode", "--replicas=1"), 1, "graph nope not found in namespace"),
    (("scale", "chat/Decoed", "--replicas=1"), 1, 'did you mean "Decode"?'),
    (("scale", "chat", "--replicas=1"), 2, 'invalid target "chat" (expected GRAPH/SERVICE'),
    (("scale", "chat/Decode", "--replicas", "-1"), 2, "expected a whole number from 0 to"),
    (("scale", "chat/Decode", "--replicas=2.5"), 2, "expected a whole number from 0 to"),
    (("scale", "chat/Decode", "--replicas=4294967296"), 2, "expected a whole number from 0 to"),
    (("scale", "chat/Decode"), 2, "--replicas"),
    (("scale", "../Decode", "--replicas=1"), 2, 'invalid target "../Decode"'),
    (("rollout", "restart", "dm/chat"), 2, "unsupported kind"),
    (("rollout", "undo", "chat"), 1, "graph"),
    (("rollout", "abort", "chat"), 2, "abort"),
)


def test_wrong_input_changes_nothing(world: World, admin: Person) -> None:
    made = world.create(GRAPH, graph())
    for arguments, code, said in WRONG:
        found, text, complaint = admin.run(*arguments)
        assert (code, "") == (found, text)
        assert complaint.startswith("error: ")
        assert 1 == complaint.count("\n")
        assert said in complaint
    assert made["metadata"]["generation"] == _read(world, GRAPH, "chat")["metadata"]["generation"]


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
