"""Former specs of a graph on a real API server, and the way back to one."""

import pytest

from cluster.conditions import is_ready
from cluster.graph.graphs import graph, service, worker
from cluster.person import Person
from cluster.world import GRAPH, World
from dynamo_operator import labels
from dynamo_operator.features.history import CHANGE_CAUSE
from kube_runtime.types.kinds import ControllerRevision, Deployment
from kube_runtime.types.meta import Object

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]

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
