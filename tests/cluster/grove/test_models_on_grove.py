"""A model on a graph that Grove runs: its pods are found, and of a replica on several nodes the leader only.

No controller of Grove runs here, so the test makes the pods, with the labels that Grove gives them.
"""

import pytest

from cluster.graph.graphs import service
from cluster.models.conftest import fleet, shared_fleet, shared_operator
from cluster.models.test_guide import hosts, said
from cluster.models.test_troubleshooting import BASE, lora, until
from cluster.world import MODEL, PODS, World
from dynamo_operator import labels, names
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.cluster import PodCliqueSet
from kube_runtime.types.kinds import Service
from simulated.lora_fleet import Fleet

__all__ = ["fleet", "shared_fleet", "shared_operator"]

pytestmark = [pytest.mark.cluster, pytest.mark.usefixtures("operated", "operator")]


def pod(world: World, name: str, clique: str) -> None:
    """A pod as Grove makes it for one replica of a service on two nodes."""
    found = {
        labels.COMPONENT: "Worker",
        labels.GRAPH: "g",
        labels.BASE_MODEL_HASH: names.model_hash(BASE),
        "grove.io/podclique": clique,
        "grove.io/podcliquescalinggroup-replica-index": "0",
    }
    spec = {"containers": [{"name": "main", "image": "worker"}]}
    world.create(PODS, {"metadata": {"name": name, "labels": found}, "spec": spec})


def test_only_the_leader_of_a_replica_is_asked(world: World, fleet: Fleet) -> None:
    worker = service(
        "worker", modelRef={"name": BASE}, multinode={"nodeCount": 2}, resources={"limits": {"gpu": "1"}}
    )
    body = {"metadata": {"name": "g"}, "spec": {"backendFramework": "sglang", "services": {"Worker": worker}}}
    container = {"command": ["python3", "-m", "dynamo.sglang"], "args": ["--tp", "2"]}
    worker["extraPodSpec"]["mainContainer"] |= container
    world.create(DynamoGraphDeployment.KIND, body)
    world.eventually(PodCliqueSet.KIND, "g")
    world.eventually(Service.KIND, names.model_service_name(BASE))
    pod(world, "g-0-worker-0-worker-ldr-a", "g-0-worker-0-worker-ldr")
    pod(world, "g-0-worker-0-worker-wkr-b", "g-0-worker-0-worker-wkr")
    world.create(MODEL, lora())
    until(world, "AllEndpointsReady", "All 1 endpoint(s) are ready")
    (leader,) = said(world)["endpoints"]
    assert "g-0-worker-0-worker-ldr-a" == leader["podName"]
    assert ["POST /v1/loras"] == fleet.asked()
    assert {"my-custom-lora": "s3://my-bucket/my-lora"} == fleet.workers[hosts(said(world))[0]].loaded
