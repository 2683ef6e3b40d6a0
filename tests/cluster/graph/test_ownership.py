"""`dynamoctl diff` and `apply` on objects that kubectl, controllers and GitOps tools write, too."""

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.graph.test_change import file_of
from cluster.person import Person
from cluster.world import GRAPH, World
from dynamo_graphs import Cluster, Graph
from dynamo_graphs.ownership import LAST_APPLIED
from kube_runtime.errors import Conflict
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

Kubectl = Callable[..., str]
ARGO = "argocd-controller"
REPLICAS: Object = {
    "apiVersion": GRAPH.api_version,
    "kind": GRAPH.name,
    "metadata": {"name": "chat"},
    "spec": {"services": {"Decode": {"replicas": 7}}},
}
"""What Argo CD has in Git."""


def a_graph(replicas: int = 1, mode: str = "") -> Object:
    envs = [{"name": "MODE", "value": mode}] if mode else []
    decode = worker("decode", replicas=replicas, **({"envs": envs} if envs else {}))
    return graph(Frontend=service("frontend"), Decode=decode)


def decode_of(body: Object) -> Object:
    decode: Object = body["spec"]["services"]["Decode"]
    return decode


def managers(body: Object) -> set[tuple[str, str]]:
    return {(entry["manager"], entry["operation"]) for entry in body["metadata"]["managedFields"]}


@pytest.fixture(params=["apply", "create", "apply --server-side", "replace"])
def written(request: pytest.FixtureRequest, kubectl: Kubectl, tmp_path: Path) -> None:
    """A graph of two replicas with an env variable and a label, as a command of kubectl writes it."""
    body = a_graph(2, "fast")
    body["metadata"]["labels"] = {"team": "a"}
    command = request.param.split()
    if command == ["replace"]:
        kubectl("create", "-f", file_of(tmp_path, a_graph()))
    kubectl(*command, "-f", file_of(tmp_path, body))


@pytest.mark.usefixtures("written")
def test_what_kubectl_wrote_is_compared_changed_and_removed(
    world: World, admin: Person, tmp_path: Path
) -> None:
    file = file_of(tmp_path, a_graph(3))
    code, (change,) = admin.json("diff", "-f", file)
    shown = "\n".join(change["diff"])
    assert (0, "change", {"spec.services.Decode.replicas"}) == (
        code,
        change["verb"],
        {owned["path"] for owned in change["overwritten"]},
    )
    assert "-        value: fast" in shown
    assert "-    team: a" in shown
    before = world.read(GRAPH, "chat")
    assert (2, "a") == (decode_of(before)["replicas"], before["metadata"]["labels"]["team"])

    code, text, said = admin.run("apply", "-f", file)
    assert (0, f"{GRAPH.name} {admin.namespace}/chat configured\n", "") == (code, text, said)
    after = world.read(GRAPH, "chat")
    assert 3 == decode_of(after)["replicas"]
    assert "envs" not in decode_of(after)
    assert "labels" not in after["metadata"]
    assert {("dynamoctl", "Apply")} == managers(after)
    assert f"{GRAPH.name} {admin.namespace}/chat unchanged\n" == admin.run("apply", file)[1]
    assert 0 == admin.run("diff", file, "--exit-code")[0]


def test_kubectl_and_dynamoctl_apply_in_turn(
    world: World, admin: Person, kubectl: Kubectl, tmp_path: Path
) -> None:
    def by_kubectl(body: Object) -> Object:
        kubectl("apply", "-f", file_of(tmp_path, body))
        return decode_of(world.read(GRAPH, "chat"))

    def by_dynamoctl(body: Object) -> Object:
        assert (0, "") == admin.run("apply", "-f", file_of(tmp_path, body))[::2]
        return decode_of(world.read(GRAPH, "chat"))

    assert 1 == by_kubectl(a_graph())["replicas"]
    assert "fast" == by_dynamoctl(a_graph(2, "fast"))["envs"][0]["value"]
    after = by_kubectl(a_graph(4))
    assert (4, None) == (after["replicas"], after.get("envs")), "kubectl removes what dynamoctl added"
    assert "slow" == by_kubectl(a_graph(4, "slow"))["envs"][0]["value"]
    assert None is by_dynamoctl(a_graph(4)).get("envs"), "and the other way around"
    stored = world.read(GRAPH, "chat")
    record = json.loads(stored["metadata"]["annotations"][LAST_APPLIED])
    assert "envs" not in decode_of(record)
    assert {("dynamoctl", "Apply")} == managers(stored)


def test_single_fields_that_a_person_sets_stay_and_the_file_overwrites_the_rest(
    world: World, admin: Person, kubectl: Kubectl, tmp_path: Path
) -> None:
    file = file_of(tmp_path, a_graph())
    assert 0 == admin.run("apply", "-f", file)[0]
    kubectl("label", GRAPH.plural, "chat", "team=a")
    scaled = {"spec": {"services": {"Decode": {"replicas": 5}}}}
    kubectl("patch", GRAPH.plural, "chat", "--type=merge", "-p", json.dumps(scaled))
    code, text, _ = admin.run("diff", "-f", file)
    assert (0, True) == (code, "overwrites what kubectl-patch has set: spec.services.Decode.replicas" in text)
    assert (0, "") == admin.run("apply", "-f", file)[::2]
    after = world.read(GRAPH, "chat")
    assert (1, "a") == (decode_of(after)["replicas"], after["metadata"]["labels"]["team"])

    assert 0 == admin.run("scale", "chat/Decode", "--replicas=7")[0]
    assert 0 == admin.run("suspend", "chat")[0]
    assert (0, "") == admin.run("apply", "-f", file)[::2]
    after = world.read(GRAPH, "chat")
    assert 1 == decode_of(after)["replicas"]
    assert "nvidia.com/suspend" in str(after["metadata"]["annotations"]), "an apply does not resume it"


def test_fields_of_a_gitops_tool_are_a_conflict_before_anything_is_written(
    world: World, admin: Person, kubectl: Kubectl, tmp_path: Path
) -> None:
    kubectl("apply", "-f", file_of(tmp_path, a_graph(1, "fast")))
    world.apply(GRAPH, REPLICAS, ARGO)
    before = world.read(GRAPH, "chat")
    config: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "beside"}}
    file = file_of(tmp_path, config, a_graph(3))
    code, text, _ = admin.run("diff", "-f", file)
    path = "spec.services.Decode.replicas"
    advice = "change it in the Git repository"
    assert (0, True) == (code, f"conflict with {ARGO}: {path} ({advice}, or" in text)
    assert "+      replicas: 3" in text
    code, text, said = admin.run("apply", "-f", file)
    assert (1, "") == (code, text)
    assert (
        f"error: {GRAPH.name} {admin.namespace}/chat: conflict: {ARGO} owns {path} ({advice}); "
        "--force-conflicts, or force=True in Python, overwrites it\n"
    ) == said
    assert before["metadata"]["managedFields"] == world.read(GRAPH, "chat")["metadata"]["managedFields"]
    assert "beside" not in kubectl("get", "configmaps", "-oname")

    file = file_of(tmp_path, a_graph(7))
    assert (0, "") == admin.run("apply", "-f", file)[::2], "an equal value is no conflict"
    assert (ARGO, "Apply") in managers(world.read(GRAPH, "chat"))
    file = file_of(tmp_path, a_graph(3))
    assert 0 == admin.run("apply", "-f", file, "--force-conflicts")[0]
    assert 3 == decode_of(world.read(GRAPH, "chat"))["replicas"]


def test_a_python_program_takes_over_what_kubectl_applied(
    kinds: ControlPlane, world: World, kubectl: Kubectl, tmp_path: Path
) -> None:
    kubectl("apply", "-f", file_of(tmp_path, a_graph(1, "fast")))
    cluster = Cluster(namespace=world.namespace, kubeconfig=kinds.kubeconfig)
    edited = copy.deepcopy(a_graph(2))
    wanted = Graph.from_dict({"apiVersion": GRAPH.api_version, "kind": GRAPH.name, **edited})
    change = wanted.diff(cluster)
    assert ["kubectl-client-side-apply"] == [owned.manager for owned in change.overwritten]
    assert "configured" == wanted.apply(cluster).verb
    after = decode_of(world.read(GRAPH, "chat"))
    assert (2, None) == (after["replicas"], after.get("envs"))
    world.apply(GRAPH, REPLICAS, ARGO)
    with pytest.raises(Conflict, match=f"{ARGO} owns spec.services.Decode.replicas"):
        wanted.apply(cluster)
    assert "configured" == wanted.apply(cluster, force=True).verb
