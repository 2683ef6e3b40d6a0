"""Workers that the operator replaces itself, one generation after the other, on a real API server."""

import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.audit import Audit
from cluster.conditions import is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import graph, service, worker
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import COMPONENT, DEPLOYMENT, GRAPH, PODS, World
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

MODE = "nvidia.com/worker-rollout"
CURRENT = "nvidia.com/current-worker-hash"
GENERATION = "nvidia.com/dynamo-worker-hash"
WORKERS = 4


@pytest.fixture
def operator(kinds: ControlPlane, namespace: str, tmp_path: Path) -> Iterator[OperatorProcess]:
    flags = (*OFF, f"--restrictedNamespace={namespace}")
    with OperatorProcess(kinds.kubeconfig, tmp_path / "operator.log", flags) as process:
        process.ready()
        yield process
        assert "Traceback" not in process.log.read_text(encoding="utf-8")


def managed(name: str = "chat", mode: str = "managed") -> Object:
    """A frontend and four workers; surge and unavailable are one each."""
    decode = worker("decode", replicas=WORKERS, resources=None)
    body = graph(name, Frontend=service("frontend"), Decode=decode)
    body["metadata"]["annotations"] = {MODE: mode}
    return body


def said(text: str, **more: str) -> Object:
    """A change of the workers, which makes another generation."""
    decode: Object = {"envs": [{"name": "SAID", "value": text}]}
    if more:
        decode["extraPodMetadata"] = {"annotations": more}
    return {"spec": {"services": {"Decode": decode}}}


def workers(world: World) -> dict[str, Object]:
    """The components of workers that are not going away, by generation; "" under the plain name."""
    found = {}
    for each in world.list(COMPONENT):
        if each["spec"]["serviceName"] == "Decode" and "deletionTimestamp" not in each["metadata"]:
            found[each["metadata"]["labels"].get(GENERATION, "")] = each
    return found


def only_generation(world: World) -> str:
    (found,) = workers(world)
    return found


def rolling(body: Object) -> dict[str, Any]:
    return dict(body["status"].get("rollingUpdate", {}))


def is_rolled_out_to(body: Object, generation: str) -> bool:
    found = rolling(body)
    return found.get("phase") == "Completed" and found.get("toHash") == generation


def pods(world: World, *, is_ready_only: bool = False) -> list[Object]:
    return [
        each
        for each in world.list(PODS)
        if each["metadata"]["labels"].get("nvidia.com/dynamo-component") == "Decode"
        and "deletionTimestamp" not in each["metadata"]
        and (not is_ready_only or _serves(each))
    ]


def _serves(pod: Object) -> bool:
    conditions = pod["status"].get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


@contextmanager
def watched(world: World) -> Iterator[list[tuple[int, int]]]:
    """How many pods of workers there were and how many served, polled."""
    seen: list[tuple[int, int]] = []
    is_over = threading.Event()

    def look() -> None:
        while not is_over.wait(0.05):
            found = pods(world)
            seen.append((len(found), sum(map(_serves, found))))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        is_over.set()
        thread.join()


def environment(world: World, deployment: str) -> dict[str, str]:
    found = world.read(DEPLOYMENT, deployment)
    (container,) = found["spec"]["template"]["spec"]["containers"]
    return {each["name"]: each.get("value", "") for each in container["env"]}


def out_of_bounds(seen: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of the counts of pods, and of those that serve, the ones that surge and unavailable do not allow."""
    return [(total, serving) for total, serving in seen if total > WORKERS + 1 or serving < WORKERS - 1]


def started(world: World, body: Object | None = None) -> str:
    """The one generation of a graph that is made and gets ready; it is `managed()` unless it is given."""
    world.create(GRAPH, body or managed())
    world.eventually(GRAPH, "chat", is_ready)
    return only_generation(world)


def begun(world: World, generations: int) -> None:
    world.until(
        lambda: len(workers(world)) == generations, what=lambda: f"generations: {sorted(workers(world))}"
    )


def test_a_change_replaces_the_workers_within_its_bounds(
    world: World, operator: OperatorProcess, kinds: ControlPlane
) -> None:
    first = started(world)
    frontend = world.read(DEPLOYMENT, "chat-frontend")
    with watched(world) as seen:
        world.patch(GRAPH, "chat", said("second"))
        begun(world, 2)
        (second,) = set(workers(world)) - {first}
        under_way = world.eventually(GRAPH, "chat", lambda it: rolling(it).get("phase") == "InProgress")
        assert not is_ready(under_way)
        assert first == under_way["metadata"]["annotations"][CURRENT]
        done = world.eventually(GRAPH, "chat", lambda it: is_rolled_out_to(it, second))
    assert [] == out_of_bounds(seen)
    assert second == done["metadata"]["annotations"][CURRENT]
    assert first == rolling(done)["fromHash"]
    assert ["Decode"] == rolling(done)["updatedServices"]
    assert rolling(done)["startTime"] <= rolling(done)["endTime"]
    assert [second] == list(workers(world))
    after = world.read(DEPLOYMENT, "chat-frontend")
    assert frontend["metadata"]["generation"] == after["metadata"]["generation"]
    world.eventually(GRAPH, "chat", is_ready)
    Audit(kinds.audit_log).falls_silent(world.namespace)


def test_a_generation_that_does_not_start_leaves_the_old_one_serving_and_can_be_taken_back(
    world: World, operator: OperatorProcess
) -> None:
    first = started(world)
    with watched(world) as seen:
        world.patch(GRAPH, "chat", said("broken", **{"fake-kubelet": "never-starts"}))
        begun(world, 2)
        time.sleep(3)
        back = {"envs": None, "extraPodMetadata": None}
        world.patch(GRAPH, "chat", {"spec": {"services": {"Decode": back}}})
        world.eventually(GRAPH, "chat", lambda it: is_rolled_out_to(it, first))
    assert [] == out_of_bounds(seen)
    world.eventually(GRAPH, "chat", is_ready)
    assert [first] == list(workers(world))
    assert WORKERS == len(pods(world, is_ready_only=True))


def test_workers_under_plain_names_are_adopted_without_a_new_pod(
    world: World, operator: OperatorProcess
) -> None:
    world.create(GRAPH, managed(mode="native"))
    world.eventually(GRAPH, "chat", is_ready)
    before = {each["metadata"]["name"] for each in pods(world)}
    world.patch(GRAPH, "chat", {"metadata": {"annotations": {MODE: "managed"}}})
    world.eventually(GRAPH, "chat", lambda it: CURRENT in it["metadata"]["annotations"])
    # An annotation makes no new generation: the graph stays ready while the frontend is changed.
    plain = f"{world.namespace}-chat"
    world.until(lambda: environment(world, "chat-frontend").get("DYN_NAMESPACE_PREFIX") == plain)
    world.eventually(GRAPH, "chat", is_ready)
    assert [""] == list(workers(world))
    assert before == {each["metadata"]["name"] for each in pods(world)}
    world.patch(GRAPH, "chat", said("second"))
    begun(world, 2)
    (second,) = set(workers(world)) - {""}
    world.eventually(GRAPH, "chat", lambda it: is_rolled_out_to(it, second))
    assert [second] == list(workers(world))
    assert plain == environment(world, "chat-frontend")["DYN_NAMESPACE_PREFIX"]


def test_a_service_that_says_no_number_keeps_its_one_replica(world: World, operator: OperatorProcess) -> None:
    body = managed()
    del body["spec"]["services"]["Decode"]["replicas"]
    world.create(GRAPH, body)
    world.eventually(GRAPH, "chat", is_ready)
    with watched(world) as seen:
        world.patch(GRAPH, "chat", said("second"))
        begun(world, 2)
        world.eventually(GRAPH, "chat", lambda it: rolling(it).get("phase") == "Completed")
    assert all(total <= 2 and serving >= 1 for total, serving in seen), seen
    world.eventually(GRAPH, "chat", is_ready)
