"""A LoRA is loaded into real workers, listed by them, and unloaded when its object goes."""

import json
from pathlib import Path

import pytest

from cluster.conditions import is_ready
from cluster.world import World
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from e2e.cluster import RealCluster, pods
from e2e.graphs import container, graph, idle_frontend, worker
from kube_runtime.types.meta import Object

GRAPH = DynamoGraphDeployment.KIND
MODEL = DynamoModel.KIND
PROGRAM = Path(__file__).with_name("lora_worker.py")
LORAS = {"name": "DYN_LORA_ENABLED", "value": "true"}
pytestmark = pytest.mark.cluster


def listed(cluster: RealCluster, world: World) -> list[set[str]]:
    return [
        set(cluster.inside.get(f"{each['status']['podIP']}:9090", "/v1/loras").json["loras"])
        for each in pods(world, "Worker")
    ]


def test_an_adapter_is_loaded_listed_and_unloaded_by_every_worker(cluster: RealCluster, world: World) -> None:
    script = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "program", "namespace": world.namespace},
        "data": {PROGRAM.name: PROGRAM.read_text()},
    }
    cluster.kubectl("apply", "--filename=-", input=json.dumps(script))
    main = container(
        *("python3", f"/program/{PROGRAM.name}"), volumeMounts=[{"name": "program", "mountPath": "/program"}]
    )
    pod = {"mainContainer": main, "volumes": [{"name": "program", "configMap": {"name": "program"}}]}
    served = worker(pod=pod, replicas=2, modelRef={"name": "base"}, envs=[LORAS])
    body = graph("adapters", Frontend=idle_frontend(), Worker=served)
    body["spec"]["backendFramework"] = "vllm"
    world.create(GRAPH, body)
    world.eventually(GRAPH, "adapters", is_ready, within_seconds=120)
    assert [set(), set()] == listed(cluster, world)

    spec = {
        "modelName": "poet",
        "baseModelName": "base",
        "modelType": "lora",
        "source": {"uri": "file:///loras/poet"},
    }
    world.create(MODEL, {"metadata": {"name": "poet"}, "spec": spec})
    world.eventually(MODEL, "poet", all_loaded)
    assert [{"poet"}, {"poet"}] == listed(cluster, world)

    world.delete(MODEL, "poet")
    world.gone(MODEL, "poet")
    assert [set(), set()] == listed(cluster, world)


def all_loaded(body: Object) -> bool:
    """Whether the status says that both workers have it."""
    status: Object = body.get("status", {})
    return (2, 2) == (status.get("readyEndpoints"), status.get("totalEndpoints"))
