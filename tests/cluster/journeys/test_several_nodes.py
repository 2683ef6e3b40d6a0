"""Graphs over several nodes: the user journeys of multinode components.

No controllers of other projects run here. What these would create is in `grove` and, with
the real LeaderWorkerSet controller, in `multinode`.
"""

from collections.abc import Iterator

import pytest

from cluster.conditions import condition
from cluster.conftest import ControlPlane
from cluster.installed import installed
from cluster.journeys.user import User
from cluster.world import DEPLOYMENT, GRAPH
from dynamo_operator.shared.cluster import GROVE, LeaderWorkerSet, PodCliqueSet, PodGroup, Queue
from kube_runtime.types.meta import Object

pytestmark = pytest.mark.cluster

SET = PodCliqueSet.KIND
GROUPS, PLACES = LeaderWorkerSet.KIND, PodGroup.KIND

BIG = """
    apiVersion: nvidia.com/v1alpha1
    kind: DynamoGraphDeployment
    metadata: {name: big, annotations: {ANNOTATIONS}}
    spec:
      backendFramework: vllm
      services:
        Frontend:
          componentType: frontend
          replicas: 1
          extraPodSpec: {mainContainer: {image: "reg.example.com/vllm-runtime:1.0"}}
        decode:
          componentType: worker
          replicas: 2
          multinode: {nodeCount: 2}
          resources: {limits: {gpu: "4"}}
          extraPodSpec:
            mainContainer:
              image: reg.example.com/vllm-runtime:1.0
              command: [python3, -m, dynamo.vllm]
              args: [--model, acme/chat-70b, --tensor-parallel-size, "8"]
    """


def big(**annotations: str) -> str:
    said = ", ".join(f'nvidia.com/{name.replace("_", "-")}: "{each}"' for name, each in annotations.items())
    return BIG.replace("ANNOTATIONS", said)


def test_j37_no_orchestrator(user: User) -> None:
    """Installing LeaderWorkerSet and Volcano is enough, the operator need not start again: S11."""
    user.apply(big())
    text = "failed to reconcile Dynamo components deployments: no multinode orchestrator available"
    failed = user.says("big", text)
    assert text == condition(failed)["message"]
    assert "failed" == failed["status"]["state"]
    assert [] == user.world.list(DEPLOYMENT)
    quoted = big().replace("nodeCount: 2", 'nodeCount: "2"')
    assert "nodeCount" in user.refused(manifest=quoted)
    words = user.refused(manifest=big().replace("nodeCount: 2", "nodeCount: 1"))
    assert "should be greater than or equal to 2" in words
    with installed(user.cluster, ("lws", "podgroup"), (GROUPS, PLACES)):
        user.world.eventually(GROUPS, "big-decode-0")


@pytest.fixture
def grove(kinds: ControlPlane) -> Iterator[None]:
    """Grove and the KAI scheduler's queue `dynamo`."""
    with installed(kinds, ("grove", "kai"), (*GROVE.kinds, Queue.KIND)):
        queue(kinds, "dynamo")
        yield


def queue(cluster: ControlPlane, name: str) -> None:
    body = f'{{"apiVersion": "{Queue.KIND.api_version}", "kind": "Queue", "metadata": {{"name": "{name}"}}}}'
    cluster.kubectl("create", "--filename=-", input=body)


def cliques(body: Object) -> dict[str, Object]:
    return {each["name"]: each for each in body["spec"]["template"]["cliques"]}


@pytest.mark.usefixtures("grove")
def test_j35_and_j38_grove_and_its_queues(user: User) -> None:
    user.apply(big(workload_provider="grove"))
    made = user.world.eventually(SET, "big")
    found = cliques(made)
    assert {"frontend": 1, "decode-ldr": 1, "decode-wkr": 1} == {
        name: each["spec"]["replicas"] for name, each in found.items()
    }
    groups = made["spec"]["template"]["podCliqueScalingGroups"]
    assert [("decode", 2)] == [(each["name"], each["replicas"]) for each in groups]
    waiting = user.world.eventually(GRAPH, "big", lambda it: "services" in it.get("status", {}))
    services = waiting["status"]["services"]
    assert ("PodCliqueScalingGroup", "big-0-decode") == (
        services["decode"]["componentKind"],
        services["decode"]["componentName"],
    )
    assert "PodClique" == services["Frontend"]["componentKind"]
    assert {("dynamo", "kai-scheduler")} == queues(made)
    user.kubectl("delete", "dgd/big")
    user.world.gone(SET, "big")

    user.apply(big(workload_provider="grove", kai_scheduler_queue="research"))
    text = "queue 'research' not found in cluster. Ensure the queue exists before using kai-scheduler"
    failed = user.says("big", text)
    assert condition(failed)["message"].endswith(text)
    assert "failed" == failed["status"]["state"]
    queue(user.cluster, "research")
    assert {("research", "kai-scheduler")} == queues(user.world.eventually(SET, "big"))


def queues(body: Object) -> set[tuple[str, str]]:
    return {
        (each["labels"]["kai.scheduler/queue"], each["spec"]["podSpec"]["schedulerName"])
        for each in cliques(body).values()
    }
