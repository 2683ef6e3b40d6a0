"""Whatever way a graph has come, it ends as one that is created with its last spec.

Random users edit graphs, several at a time, sometimes faster than the operator follows. The edits of one
sequence follow from its number, so a failure can be repeated. `make long` plays 200, `make test` 20.
"""

import os
import random
import ssl
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from copy import deepcopy
from pathlib import Path

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import service, worker
from cluster.graph.test_graph import GRAPH
from cluster.operator_process import OFF, OperatorProcess
from cluster.world import World
from dynamo_graphs.api import labels
from faults.ending import Ending, ending
from faults.proxy import Proxy, kubeconfig
from faults.scenarios import NEWER, a_graph
from faults.stage import AT_ONCE, IS_LONG, at_rest, namespace
from kube_runtime.apply.status_patch import BUSY_SECONDS
from kube_runtime.kind import Object
from simulated.storage import merged

SEQUENCES = int(os.environ.get("DYNAMO_TEST_SEQUENCES", "200" if IS_LONG else "20"))
EDITS = (3, 8)
QUIET_SECONDS = BUSY_SECONDS + 0.6
"""One operator for several users is busy, and then a status waits for so long."""
NAMES = ("Frontend", "Decode", "Prefill", "Spare")
IMAGES = (NEWER, "example.com/runtime:1", "example.com/runtime:2")
PROBE = {"httpGet": {"path": "/live", "port": 9090}, "periodSeconds": 7}
INGRESS = {"enabled": True, "host": "chat", "ingressControllerClassName": "nginx"}

pytestmark = pytest.mark.cluster


def a_service(name: str) -> Object:
    """A service as it is when it is added."""
    if name == "Frontend":
        return service("frontend")
    return worker(name.lower(), resources=None) if name != "Spare" else service("worker")


FIELDS: dict[str, tuple[object, ...]] = {
    "replicas": (0, 1, 1, 2),
    "extraPodSpec": tuple({"mainContainer": {"image": each}} for each in IMAGES),
    "envs": (None, [], [{"name": "A", "value": "1"}], [{"name": "B", "value": "2"}]),
    "labels": (None, {"team": "search"}, {"team": None, "tier": "gold"}),
    "annotations": (None, {"note": "x"}, {"note": "y", "more": "z"}),
    "livenessProbe": (None, PROBE, {**PROBE, "periodSeconds": 9}),
    "readinessProbe": (None, PROBE),
    "ingress": (None, INGRESS, {"enabled": False}),
    "extraPodMetadata": (None, {"labels": {"a": "b"}}, {"annotations": {"c": "d"}}),
    "sharedMemory": (None, {"size": "1Gi", "disabled": None}, {"disabled": True, "size": None}),
    "modelRef": (None, {"name": "Qwen/Qwen3-0.6B"}),
}


def edit(graph: Object, dice: random.Random) -> Object:
    """A merge patch that keeps the graph valid."""
    return dice.choices((of_services, of_graph, of_service), (3, 4, 4))[0](graph, dice)


def of_services(graph: Object, dice: random.Random) -> Object:
    """One service more or fewer."""
    present = tuple(graph["spec"]["services"])
    absent = tuple(each for each in NAMES if each not in present)
    if absent and (len(present) == 1 or dice.random() < 0.5):
        name = dice.choice(absent)
        return {"spec": {"services": {name: a_service(name)}}}
    return {"spec": {"services": {dice.choice(present): None}}}


def of_graph(_: Object, dice: random.Random) -> Object:
    """What concerns all services."""
    name = dice.choice(("suspend", "replicas", "restart", "envs"))
    values = {
        "replicas": (None, 0, 1, 2),
        "restart": (None, {"id": f"{dice.random()}"}),
        "envs": (None, [{"name": "ALL", "value": "1"}]),
    }
    if name == "suspend":
        return {"metadata": {"annotations": {labels.SUSPEND: dice.choice((None, "true"))}}}
    return {"spec": {name: dice.choice(values[name])}}


def of_service(graph: Object, dice: random.Random) -> Object:
    """One field of one service."""
    field, name = dice.choice(tuple(FIELDS)), dice.choice(tuple(graph["spec"]["services"]))
    return {"spec": {"services": {name: {field: dice.choice(FIELDS[field])}}}}


def is_settled(world: World) -> bool:
    """Whether the operator is through with the newest spec."""
    body = world.get(GRAPH, "chat")
    if body is None or "status" not in body:
        return False
    if body["status"].get("observedGeneration") != body["metadata"]["generation"]:
        return False
    if body["metadata"].get("annotations", {}).get(labels.SUSPEND) == "true":
        is_suspended = condition(body, "Suspended").get("status") == "True"
        reported = body["status"].get("services", {}).values()
        return is_suspended and not any("message" in each for each in reported)
    restart = body["status"].get("restart") or {}
    return is_ready(body) and restart.get("phase") != "Restarting"


def edited(proxy: Proxy, number: int) -> tuple[Object, Ending, list[Object]]:
    """What a random user has made of a graph: its last text, the end, and the edits."""
    dice = random.Random(number)  # noqa: S311 - the same edits in each run
    body, edits = a_graph(), list[Object]()
    with namespace(proxy) as world:
        world.create(GRAPH, body)
        for _ in range(dice.randint(*EDITS)):
            if dice.random() < 0.3:
                world.until(lambda: is_settled(world))
            else:
                time.sleep(dice.uniform(0.0, 0.5))
            patch = edit(body, dice)
            edits.append(patch)
            body = merged(body, patch)
            world.patch(GRAPH, "chat", patch)
        at_rest(world, proxy, is_settled, quiet_seconds=QUIET_SECONDS)
        return body, ending(world, with_history=False), edits


def made(proxy: Proxy, body: Object) -> Ending:
    """The end of a graph that is created with this text."""
    with namespace(proxy) as world:
        world.create(GRAPH, body)
        at_rest(world, proxy, is_settled, quiet_seconds=QUIET_SECONDS)
        return ending(world, with_history=False)


def difference(proxy: Proxy, number: int) -> str:
    """What the way of a sequence of edits has left behind; empty when nothing."""
    try:
        body, end, edits = edited(proxy, number)
        afresh = made(proxy, deepcopy(body))
    except AssertionError as error:
        return f"sequence {number}: {error}"
    told = afresh.difference(end)
    return f"sequence {number}: {edits}\n{told}" if told else ""


@pytest.fixture
def proxy(kinds: ControlPlane, tls: ssl.SSLContext, tmp_path: Path) -> Iterator[Proxy]:
    """A way to the API server on which writes can be seen, and an operator of all namespaces behind it."""
    with Proxy(kinds.server, tls).running() as running:
        config = kubeconfig(running, tmp_path / "config")
        with OperatorProcess(config, tmp_path / "operator.log", OFF) as operator:
            operator.ready()
            yield running
            assert operator.ended is None
            assert '"level": "error"' not in operator.log.read_text(encoding="utf-8")


@pytest.mark.timeout(600 + 30 * SEQUENCES)
def test_edits_end_as_the_last_spec_created_afresh(proxy: Proxy, measured: list[str]) -> None:
    with ThreadPoolExecutor(AT_ONCE) as pool:
        told = [each for each in pool.map(lambda n: difference(proxy, n), range(SEQUENCES)) if each]
    measured.append(f"differential: {SEQUENCES - len(told)} of {SEQUENCES} sequences end alike")
    assert [] == told, "\n".join(told)
