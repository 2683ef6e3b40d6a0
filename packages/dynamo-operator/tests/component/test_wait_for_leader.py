"""Which pods of a group wait for their leader before they start."""

from typing import Any

import pytest

from dynamo_graphs.offline import graph_tree
from dynamo_operator.component.wait_for_leader import CONTAINER, WITHIN_SECONDS, script
from dynamo_operator.names import GROVE, on_provider
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from specs import a_graph

SETTINGS = RenderSettings(mpi_secret_name="keys", mpi_secret_namespace="dynamo")
RAY = ("--tensor-parallel-size", "16")
DATA_PARALLEL = ("--data-parallel-size", "16")


def objects(module: str, *args: str, on_grove: bool = False, **service: Any) -> list[Object]:
    command = {"command": ["python3", "-m", module], "args": [*args]}
    worker = {
        "componentType": "worker",
        "multinode": {"nodeCount": 2},
        "resources": {"limits": {"gpu": "8", "cpu": "4"}, "requests": {"memory": "1Gi"}},
        "extraPodSpec": {"mainContainer": {"image": "i", **command}, **service},
    }
    graph = a_graph({"W": worker})
    graph = on_provider(graph, GROVE) if on_grove else graph
    return list(graph_tree(graph, Facts(grove_served=on_grove), SETTINGS))


def pods(found: list[Object]) -> tuple[Object, Object]:
    """The specs of leader and worker."""
    for each in found:
        if each["kind"] == "LeaderWorkerSet":
            template = each["spec"]["leaderWorkerTemplate"]
            return template["leaderTemplate"]["spec"], template["workerTemplate"]["spec"]
        if each["kind"] == "PodCliqueSet":
            leader, worker = (clique["spec"] for clique in each["spec"]["template"]["cliques"])
            return leader["podSpec"], worker["podSpec"]
    raise AssertionError("no pods")


@pytest.mark.parametrize("on_grove", [False, True])
@pytest.mark.parametrize(
    ("args", "said"), [(RAY, ["6379", "1800", "ray"]), (DATA_PARALLEL, ["13445", "1800"])]
)
def test_the_workers_of_vllm_wait_and_the_leader_does_not(
    args: tuple[str, ...], said: list[str], *, on_grove: bool
) -> None:
    found = objects("dynamo.vllm", *args, on_grove=on_grove)
    leader, worker = pods(found)
    [step] = worker["initContainers"]
    [main] = worker["containers"]
    assert "initContainers" not in leader
    assert said == step["args"][1:]
    assert (main["image"], main["env"]) == (step["image"], step["env"])
    assert {"limits": {"cpu": "4"}, "requests": {"memory": "1Gi"}} == step["resources"]
    assert str(WITHIN_SECONDS) in step["args"]
    [mount] = (each for each in step["volumeMounts"] if each["name"] == CONTAINER)
    [volume] = (each for each in worker["volumes"] if each["name"] == CONTAINER)
    [held] = (each for each in found if each["kind"] == "ConfigMap")
    assert held["metadata"]["name"] == volume["configMap"]["name"]
    assert f"{mount['mountPath']}/{next(iter(held['data']))}" == step["command"][1]
    assert script() in held["data"].values()


@pytest.mark.parametrize("module", ["dynamo.sglang", "dynamo.trtllm", "dynamo.vllm", "mine"])
def test_pods_of_other_commands_do_not_wait_for_a_leader(module: str) -> None:
    found = objects(module)
    assert [False, False] == ["initContainers" in each for each in pods(found)]
    assert [] == [each for each in found if each["kind"] == "ConfigMap"]


def test_the_users_own_steps_come_first_and_one_of_that_name_takes_the_place_of_ours() -> None:
    mine = {"name": "download", "image": "d"}
    _, worker = pods(objects("dynamo.vllm", *RAY, initContainers=[mine]))
    assert ["download", CONTAINER] == [each["name"] for each in worker["initContainers"]]
    own = {"name": CONTAINER, "image": "o"}
    _, worker = pods(objects("dynamo.vllm", *RAY, initContainers=[own]))
    assert [own] == worker["initContainers"]
