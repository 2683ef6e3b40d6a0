"""Rules of a component on several nodes, and of resources; others are in `tests/reviews/rows.py`."""

from typing import Any

import pytest

from dynamo_operator.component.validate import component_problems, lacks_orchestrator
from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from specs import IMAGE, a_component, a_graph, a_service

SETTINGS = RenderSettings(mpi_secret_name="mpi-keys")
TRTLLM = {"mainContainer": {"image": IMAGE, "command": ["python3", "-m", "dynamo.trtllm"]}}
TWO_NODES: dict[str, Any] = {"multinode": {"nodeCount": 2}}


def problems(settings: RenderSettings = SETTINGS, **spec: Any) -> list[str]:
    component = a_component(**{**TWO_NODES, "componentType": "worker", **spec})
    return [str(problem) for problem in component_problems(component, settings)]


def test_a_multinode_component_without_a_command_is_invalid() -> None:
    message = "missing command: a multinode component has no default"
    path = "spec.extraPodSpec.mainContainer.args"
    assert [f"{path}: {message}"] == problems()
    for command in (["/bin/sh", "-c"], ["bash", "-lc"]):
        main = {"image": IMAGE, "command": command}
        assert [f"{path}: {message}"] == problems(extraPodSpec={"mainContainer": main})
    main = {"image": IMAGE, "command": ["/opt/own"]}
    assert [] == problems(extraPodSpec={"mainContainer": main})


def test_multinode_tensorrt_llm_requires_gpus_in_resources() -> None:
    message = "missing GPUs: multinode TensorRT-LLM starts one process per GPU"
    assert [f"spec.resources.limits.gpu: {message}"] == problems(extraPodSpec=TRTLLM)
    limits = {"limits": {"gpu.example.com/x": "4"}}
    other = {"mainContainer": {**TRTLLM["mainContainer"], "resources": limits}}
    cases: tuple[dict[str, Any], ...] = (
        {"resources": {"limits": {"gpu": "4"}}, "extraPodSpec": TRTLLM},
        {"resources": {"requests": {"gpu": "4"}}, "extraPodSpec": TRTLLM},
        {"resources": {"limits": {"custom": {"nvidia.com/gpu": "4"}}}, "extraPodSpec": TRTLLM},
        {"resources": {"limits": {"gpuType": "gpu.example.com/x"}}, "extraPodSpec": other},
    )
    for spec in cases:
        assert [] == problems(**spec)


def test_tensorrt_llm_needs_the_keys_of_the_operator() -> None:
    [problem] = problems(RenderSettings(), resources={"limits": {"gpu": "4"}}, extraPodSpec=TRTLLM)
    assert problem.startswith("spec.multinode.nodeCount: multinode TensorRT-LLM requires SSH keys")


def test_other_components_need_neither_gpus_nor_keys() -> None:
    main = {"image": IMAGE, "args": ["python3 -m dynamo.sglang"]}
    assert [] == problems(RenderSettings(), extraPodSpec={"mainContainer": main})


def test_the_numbers_of_groups_and_nodes_have_a_limit() -> None:
    pod = {"mainContainer": {"image": IMAGE, "args": ["date"]}}
    message = "spec.replicas: a multinode component has at most 1000 replicas"
    assert [message] == problems(replicas=1001, extraPodSpec=pod)
    message = "spec.multinode.nodeCount: a component spans at most 1000 nodes"
    assert [message] == problems(multinode={"nodeCount": 2**31 - 1}, extraPodSpec=pod)
    assert [] == problems(replicas=1000, multinode={"nodeCount": 1000}, extraPodSpec=pod)


def test_a_group_takes_names_from_other_services() -> None:
    pod = {"mainContainer": {"image": IMAGE, "args": ["date"]}}
    services = {
        "W": a_service(**TWO_NODES, replicas=2, extraPodSpec=pod),
        "W-1": a_service(),
        "W-2": a_service(),
    }
    reported = [str(problem) for problem in graph_problems(a_graph(services), SETTINGS)]
    assert ['spec.services.W-1: "W" and "W-1" would both create objects named "chat-w-1"'] == reported


def test_several_nodes_need_the_api_of_groups_and_one_does_not() -> None:
    several, single = a_component(**TWO_NODES).spec, a_component().spec
    assert lacks_orchestrator(several, Facts())
    assert not lacks_orchestrator(several, Facts(lws_served=True))
    assert not lacks_orchestrator(single, Facts())


def test_groups_must_not_be_more_together_than_can_be_cached() -> None:
    env = [{"name": f"NAME_{number}", "value": "x" * 40} for number in range(3000)]
    main = {"image": IMAGE, "args": ["run"], "env": env}
    assert [] == problems(extraPodSpec={"mainContainer": main}, replicas=300)
    (problem,) = problems(extraPodSpec={"mainContainer": main}, replicas=400)
    assert problem.startswith("spec.replicas: 400 multinode replicas with templates of ")


RESOURCES: dict[str, dict[str, Any]] = {
    'spec.resources.limits.gpu: invalid quantity "1e400"': {"resources": {"limits": {"gpu": "1e400"}}},
    'spec.resources.limits.cpu: invalid quantity "1e999999999"': {
        "resources": {"limits": {"cpu": "1e999999999"}}
    },
    'spec.resources.limits.cpu: invalid quantity "abc"': {"resources": {"limits": {"cpu": "abc"}}},
    'spec.resources.limits.gpu: invalid quantity "500m" of nvidia.com/gpu (expected a whole number)': {
        "resources": {"limits": {"gpu": "500m"}}
    },
    "spec.resources.requests.memory: the request of memory must not exceed its limit": {
        "resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}
    },
    "spec.resources.requests.gpu: request and limit of nvidia.com/gpu must be equal": {
        "resources": {"requests": {"gpu": "1"}},
        "extraPodSpec": {"mainContainer": {"image": IMAGE, "resources": {"limits": {"nvidia.com/gpu": 2}}}},
    },
    'spec.resources.limits.custom[gpus]: unknown resource "gpus"': {
        "resources": {"limits": {"custom": {"gpus": "1"}}}
    },
}


@pytest.mark.parametrize("expected", RESOURCES)
def test_a_wrong_resource_is_reported_at_its_path(expected: str) -> None:
    (problem,) = component_problems(a_component(**RESOURCES[expected]), SETTINGS)
    assert expected in str(problem)


@pytest.mark.parametrize(
    "resources",
    [{"requests": {"gpu": "2"}}, {"requests": {"cpu": "1"}, "limits": {"cpu": "1000m"}}],
    ids=["devices under requests only", "amounts written in two ways"],
)
def test_resources_without_problems(resources: Any) -> None:
    assert () == component_problems(a_component(resources=resources), SETTINGS)
