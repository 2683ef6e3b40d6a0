"""The rules of a graph that only Grove makes necessary."""

from typing import Any

import pytest

from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.names import COMPONENT, GROVE, recorded
from dynamo_operator.settings import RenderSettings
from kube_runtime.kind import Object
from specs import IMAGE, a_graph, a_service

SPREAD = a_service(
    multinode={"nodeCount": 2},
    extraPodSpec={"mainContainer": {"image": IMAGE, "args": ["python3 -m dynamo.sglang"]}},
)


def problems(services: dict[str, Object], provider: str = GROVE, **spec: Any) -> list[str]:
    graph = recorded(a_graph(services, **spec), provider)
    return [str(problem) for problem in graph_problems(graph, RenderSettings())]


def test_several_nodes_are_fine() -> None:
    assert [] == problems({"w": SPREAD})


@pytest.mark.parametrize("suffix", ["-ldr", "-wkr"])
def test_a_service_may_not_take_the_name_of_a_clique(suffix: str) -> None:
    both = {"w": SPREAD, f"w{suffix}": a_service()}
    assert [
        f'spec.services.w{suffix}: "w" and "w{suffix}" would both create a clique "w{suffix}"'
    ] == (problems(both))
    assert [] == problems(both, COMPONENT)


def test_a_queue_must_fit_into_a_label() -> None:
    metadata = {"annotations": {"nvidia.com/kai-scheduler-queue": "not a label"}}
    [problem] = problems({"w": a_service()}, metadata=metadata)
    assert problem.startswith("metadata.annotations[nvidia.com/kai-scheduler-queue]: ")
    assert [] == problems({"w": a_service()}, COMPONENT, metadata=metadata)
