"""Whatever way a graph has come, it ends as one that is created with its last spec.

Random users edit graphs, several at a time, sometimes faster than the operator follows. `make long` plays
200 sequences, `make test` 8.
"""

import random
from collections.abc import Iterator
from pathlib import Path

import pytest

from cluster.conditions import condition, is_ready
from cluster.conftest import ControlPlane
from cluster.graph.graphs import service, worker
from cluster.world import GRAPH, World
from dynamo_operator import labels
from faults.differential import Subject, operated_through_proxy, sequences
from faults.proxy import Proxy
from faults.scenarios import NEWER, a_graph
from kube_runtime.types.meta import Object

SEQUENCES = sequences(in_full=200, sample=8)
NAMES = ("Frontend", "Decode", "Prefill", "Spare")
IMAGES = (NEWER, "example.com/runtime:1", "example.com/runtime:2")
PROBE = {"httpGet": {"path": "/live", "port": 9090}, "periodSeconds": 7}
INGRESS = {"enabled": True, "host": "chat", "ingressControllerClassName": "nginx"}

pytestmark = pytest.mark.cluster


def a_service(name: str) -> Object:
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
    field, name = dice.choice(tuple(FIELDS)), dice.choice(tuple(graph["spec"]["services"]))
    return {"spec": {"services": {name: {field: dice.choice(FIELDS[field])}}}}


def is_settled(world: World) -> bool:
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


GRAPHS = Subject(GRAPH, a_graph, edit, is_settled)


@pytest.fixture
def proxy(kinds: ControlPlane, tmp_path: Path) -> Iterator[Proxy]:
    with operated_through_proxy(kinds, tmp_path) as running:
        yield running


@pytest.mark.timeout(600 + 30 * SEQUENCES)
def test_edits_end_as_the_last_spec_created_afresh(proxy: Proxy, measured: list[str]) -> None:
    told = GRAPHS.differences(proxy, SEQUENCES)
    measured.append(f"differential: {SEQUENCES - len(told)} of {SEQUENCES} sequences end alike")
    assert [] == told, "\n".join(told)
