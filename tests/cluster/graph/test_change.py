"""`dynamoctl diff`, `apply`, `scale`, `suspend`, `resume` and `rollout` on a real cluster."""

import copy
import json
from collections.abc import Callable
from pathlib import Path

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.person import Person, dynamoctl
from cluster.world import GRAPH, PODS, World
from dynamo_operator import labels
from dynamo_operator.features.history import CHANGE_CAUSE
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from kube_runtime.types.kinds import ControllerRevision, Deployment
from kube_runtime.types.meta import Kind, Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def file_of(folder: Path, *objects: Object) -> str:
    path = folder / "graph.yaml"
    heads = {"apiVersion": GRAPH.api_version, "kind": GRAPH.name}
    path.write_text("---\n".join(json.dumps(heads | each) + "\n" for each in objects))
    return str(path)


def test_apply_waits_and_diff_shows_what_restarts(world: World, admin: Person, tmp_path: Path) -> None:
    body = graph(Frontend=service("frontend"), Decode=worker("decode"))
    config: Object = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "beside"},
        "data": {"a": "1"},
    }
    file = file_of(tmp_path, config, body)
    code, found = admin.json("diff", "-f", file)
    assert (0, ["create", "create"]) == (code, [each["verb"] for each in found])
    assert {("Decode", "create"), ("Frontend", "create")} == {
        (each["service"], each["verb"]) for each in found[1]["effects"]
    }
    code, text, _ = admin.run("apply", "-f", file, "--wait", "--timeout", "180s")
    start = f"ConfigMap {admin.namespace}/beside created\n{GRAPH.name} {admin.namespace}/chat created\n"
    assert (0, start) == (code, text[: len(start)])
    assert is_ready(world.get(GRAPH, "chat") or {})
    code, text, _ = admin.run("apply", file)
    assert (0, 2) == (code, text.count(" unchanged\n"))
    assert 0 == admin.run("diff", file, "--exit-code")[0]
    edited = copy.deepcopy(body)
    edited["spec"]["services"]["Decode"]["envs"] = [{"name": "A", "value": "1"}]
    edited["spec"]["services"]["Frontend"]["replicas"] = 2
    file = file_of(tmp_path, config, edited)
    code, found = admin.json("diff", file)
    assert [("Decode", "restart"), ("Frontend", "scale")] == [
        (each["service"], each["verb"]) for each in found[1]["effects"]
    ]
    code, text, said = admin.run("diff", file, "--exit-code")
    assert (1, True) == (code, "+  replicas: 2" in text.replace("      ", "  "))
    assert "0 to create, 1 to change\n" == said.splitlines(keepends=True)[-1]
    assert "envs" not in (world.get(GRAPH, "chat") or {})["spec"]["services"]["Decode"]


def test_fields_of_another_manager_are_a_conflict(world: World, admin: Person, tmp_path: Path) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend")))
    body = graph(Frontend=service("frontend") | {"replicas": 3})
    code, _, said = admin.run("apply", file_of(tmp_path, body))
    assert (1, True) == (code, "leave it out of the file); --force-conflicts" in said)
    assert 0 == admin.run("apply", file_of(tmp_path, body), "--force-conflicts")[0]


def test_what_is_refused_is_listed_by_its_lines_and_nothing_is_written(
    world: World, admin: Person, tmp_path: Path
) -> None:
    file = tmp_path / "all.yaml"
    file.write_text(
        """\
apiVersion: v1
kind: ConfigMap
metadata: {name: beside}
---
apiVersion: nvidia.com/v1alpha1
kind: DynamoGraphDeployment
metadata: {name: chat}
spec:
  services:
    Decode:
      replcias: 2
      replicas: two
---
apiVersion: v1
kind: Service
metadata: {name: beside}
spec: {ports: [{port: 99999999}]}
"""
    )
    unknown = f'{file}:11:7: spec.services.Decode.replcias: unknown field; did you mean "replicas"?'
    wrong = f'{file}:12:7: spec.services.Decode.replicas: expected an integer, got the text "two"'
    for command in ("apply", "diff"):
        code, text, said = admin.run(command, "-f", str(file))
        assert (1, "") == (code, text)
        assert {f"error: {unknown}", f"error: {wrong}"} < {*said.splitlines()}
        assert f"error: {file}:14:1: " in said.splitlines()[-1], "the API server's own words, with the place"
    assert world.get(Kind("", "v1", "ConfigMap"), "beside") is None


def test_a_namespace_and_what_is_in_it_come_in_one_file(admin: Person, tmp_path: Path) -> None:
    file = tmp_path / "all.yaml"
    name = f"{admin.namespace}-new"
    both: list[Object] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}},
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", "namespace": name}},
    ]
    file.write_text("\n---\n".join(map(json.dumps, both)))
    done = dynamoctl("diff", "-f", file, f"--kubeconfig={admin.kubeconfig}")
    assert (0, 2) == (done.returncode, done.stdout.count("  create"))
    done = dynamoctl("apply", "-f", file, f"--kubeconfig={admin.kubeconfig}")
    assert (0, f"Namespace {name} created\nConfigMap {name}/a created\n") == (done.returncode, done.stdout)


def test_a_graph_that_does_not_become_ready_in_time(admin: Person, tmp_path: Path) -> None:
    stuck = worker("decode", extraPodMetadata={"annotations": {"fake-kubelet": "no-image"}})
    file = file_of(tmp_path, graph(Decode=stuck))
    code, text, said = admin.run("apply", file, "--wait", "--timeout", "6s")
    assert (1, True) == (code, "error: not ready within 6 s" in said)
    assert "→ If the image's name is wrong: `kubectl edit dgd chat -n " in text
    code, text, said = admin.run("why", "--all")
    assert (1, True, "1 not ready\n") == (code, "image_pull_failed" in text, said)
    code, found = admin.json("why", "--all")
    assert (1, ["chat"]) == (code, [each["name"] for each in found])


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


REVISION = ControllerRevision.KIND
ENVS = {"services": {"Decode": {"envs": [{"name": "MODE", "value": "fast"}]}}}


def numbers(world: World) -> list[int]:
    return sorted(each["revision"] for each in world.list(REVISION))


def envs(body: Object) -> list[Object]:
    found: list[Object] = body["spec"]["services"]["Decode"].get("envs", [])
    return found


def test_a_change_is_undone_and_the_numbers_stay(world: World, admin: Person) -> None:
    scaled = worker("decode", scalingAdapter={"enabled": True})
    body = graph(Frontend=service("frontend"), Decode=scaled)
    world.create(GRAPH, body)
    first = world.eventually(GRAPH, "chat", is_ready)
    note = {"annotations": {CHANGE_CAUSE: "faster"}}
    world.patch(GRAPH, "chat", {"metadata": note, "spec": ENVS})
    world.until(lambda: numbers(world) == [1, 2])
    assert 0 == admin.run("scale", "chat/Decode", "--replicas=3")[0]
    world.eventually(GRAPH, "chat", lambda it: it["spec"]["services"]["Decode"]["replicas"] == 3)
    world.eventually(GRAPH, "chat", is_ready)
    assert [1, 2] == numbers(world), "a number makes no revision"

    code, found = admin.json("rollout", "history", "chat")
    assert (0, [1, 2], ["", "faster"]) == (
        code,
        [each["revision"] for each in found],
        [each["cause"] for each in found],
    )
    assert any("services.Decode.envs" in each for each in found[1]["changes"])
    assert "MODE" not in admin.run("rollout", "history", "chat", "--revision=1")[1]

    code, text, _ = admin.run("rollout", "undo", "chat", "--dry-run")
    assert (0, True, True) == (code, "-        value: fast" in text, "restart  Decode" in text)
    assert envs(world.get(GRAPH, "chat") or {}), "a dry run changes nothing"
    code, text, _ = admin.run("rollout", "undo", "chat")
    assert (0, f"Rolling back {world.namespace}/chat to revision 1.\n") == (code, text)
    world.until(lambda: numbers(world) == [2, 3])
    after = world.eventually(GRAPH, "chat", is_ready)
    assert envs(first) == envs(after) == []
    assert 3 == after["spec"]["services"]["Decode"]["replicas"]
    world.eventually(Deployment.KIND, "chat-decode", lambda it: it["spec"]["replicas"] == 3)
    text = admin.run("rollout", "undo", "chat", "--to-revision=3")[1]
    assert f"{world.namespace}/chat already has the spec of revision 3.\n" == text
    code, _, said = admin.run("rollout", "undo", "chat", "--to-revision=1")
    assert (1, True) == (code, "revision 1 not found (revisions: 2, 3)" in said)


def test_a_service_that_was_removed_comes_back(world: World, admin: Person) -> None:
    world.create(GRAPH, graph(Frontend=service("frontend"), Decode=worker("decode", replicas=2)))
    world.eventually(GRAPH, "chat", is_ready)
    world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": None}}})
    world.until(lambda: numbers(world) == [1, 2])
    assert 0 == admin.run("rollout", "undo", "chat")[0]
    world.eventually(Deployment.KIND, "chat-decode", lambda it: it["spec"]["replicas"] == 2)


def test_without_a_history_there_is_none(world: World, admin: Person) -> None:
    body = graph()
    body["metadata"]["annotations"] = {labels.REVISION_HISTORY_LIMIT: "0"}
    world.create(GRAPH, body)
    world.eventually(GRAPH, "chat", is_ready)
    assert [] == world.list(REVISION)
    code, _, said = admin.run("rollout", "history", "chat")
    assert (1, True) == (code, "keeps no history" in said)
    world.patch(GRAPH, "chat", {"metadata": {"annotations": {labels.REVISION_HISTORY_LIMIT: "2"}}})
    world.until(lambda: numbers(world) == [1])
