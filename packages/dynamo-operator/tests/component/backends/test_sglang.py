"""SGLang on several nodes: every process connects to the leader and knows its rank."""

import pytest

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.pod import pod_spec
from dynamo_operator.component.render import component_plan
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object
from specs import IMAGE, a_component


def a_worker(nodes: int) -> DynamoComponentDeployment:
    main = {"image": IMAGE, "command": ["python3", "-m", "dynamo.sglang"], "args": ["--model", "m"]}
    return a_component(
        componentType="worker", multinode={"nodeCount": nodes}, extraPodSpec={"mainContainer": main}
    )


def leader_and_worker(nodes: int) -> list[Object]:
    plan = component_plan(a_worker(nodes), Facts(lws_served=True), RenderSettings())
    _, group = plan.orchestrator.workloads(plan)
    template = group["spec"]["leaderWorkerTemplate"]
    return [template[name]["spec"]["containers"][-1] for name in ("leaderTemplate", "workerTemplate")]


@pytest.mark.parametrize("nodes", [2, 4])
def test_processes_know_the_leader_and_their_number(nodes: int) -> None:
    leader, worker = leader_and_worker(nodes)
    group = ["--dist-init-addr", "$(LWS_LEADER_ADDRESS):29500", "--nnodes", str(nodes), "--node-rank", "0"]
    assert ["--model", "m", *group] == leader["args"]
    to_leader = f"--dist-init-addr $LWS_LEADER_ADDRESS:29500 --nnodes {nodes} --node-rank $(LWS_WORKER_INDEX)"
    assert f"exec python3 -m dynamo.sglang --model m {to_leader}" == worker["args"][-1]
    assert "readinessProbe" in leader
    assert "readinessProbe" not in worker


def test_on_one_node_nothing_is_added() -> None:
    plan = component_plan(a_worker(1), Facts(), RenderSettings())
    (main,) = pod_spec(plan, None)["containers"]
    assert ["--model", "m"] == main["args"]
