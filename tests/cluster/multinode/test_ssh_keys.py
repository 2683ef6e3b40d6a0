"""The SSH keys of TensorRT-LLM are where graphs need them, and nowhere else."""

from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.multinode.graphs import KEYS, encoded, graph, secret
from cluster.operator_process import OperatorProcess
from cluster.world import GRAPH, World
from dynamo_operator.shared.cluster import SshKeys
from kube_runtime.types.meta import Object

SECRET = SshKeys.KIND

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operator")]


def another(name: str) -> Object:
    return {**graph("trtllm"), "metadata": {"name": name}}


def holds(text: str, body: Object) -> bool:
    data: dict[str, str] = body["data"]
    return encoded(text) == data["private.key"]


def test_graphs_of_a_namespace_share_a_copy_that_follows_its_source(source: World, place: World) -> None:
    for name in ("a", "b"):
        place.create(GRAPH, another(name))
        place.eventually(GRAPH, name, is_ready)
    copy = place.eventually(SECRET, KEYS, lambda body: len(body["metadata"]["ownerReferences"]) == 2)
    assert holds("old", copy)
    assert all(not each.get("controller") for each in copy["metadata"]["ownerReferences"])
    source.apply(SECRET, secret("new"))
    place.eventually(SECRET, KEYS, lambda body: holds("new", body))
    place.delete(GRAPH, "a")
    place.eventually(SECRET, KEYS, lambda body: len(body["metadata"]["ownerReferences"]) == 1)
    place.delete(GRAPH, "b")
    place.gone(SECRET, KEYS)


def test_the_log_never_has_a_key(operator: OperatorProcess, source: World, place: World) -> None:
    source.apply(SECRET, secret("unmistakable"))
    place.create(GRAPH, graph("trtllm"))
    place.eventually(SECRET, KEYS, lambda body: holds("unmistakable", body))
    log: Path = operator.log
    for text in ("unmistakable", encoded("unmistakable")):
        assert text not in log.read_text()
