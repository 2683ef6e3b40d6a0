"""The rules of fields that only v1beta1 has, in the paths of that version."""

from typing import Any

import pytest

from dynamo_operator.graph.validate_v1beta1 import written_problems, written_update_problems, written_warnings
from kube_runtime.types.meta import Object

FORCED: Object = {"experimental": {"grove": {"forceScalingGroup": True}}}
TEMPLATE: Object = {"podTemplate": {"spec": {"containers": [{"name": "main"}, {"name": "front"}]}}}
FORCE = "experimental.grove.forceScalingGroup"


def graph(**component: Any) -> Object:
    components = [{"name": "Frontend"}, {"name": "w", **component}]
    return {"kind": "DynamoGraphDeployment", "spec": {"components": components}}


CASES: list[tuple[Object, list[str]]] = [
    ({}, []),
    ({"frontendSidecar": "front", **TEMPLATE}, []),
    ({"frontendSidecar": "front"}, ["podTemplate.spec.containers: is required when frontendSidecar is set"]),
    ({"frontendSidecar": "", **TEMPLATE}, ["frontendSidecar: must not be empty"]),
    (
        {"frontendSidecar": "x", **TEMPLATE},
        ["frontendSidecar: must match a podTemplate.spec.containers name"],
    ),
    (FORCED, [f"{FORCE}: is currently supported only for Grove-backed DynamoGraphDeployment components"]),
]


@pytest.mark.parametrize(("component", "expected"), CASES)
def test_a_component_of_a_graph_and_one_on_its_own(component: Object, expected: list[str]) -> None:
    alone = {"kind": "DynamoComponentDeployment", "spec": component}
    for document, at in ((graph(**component), "spec.components[1]."), (alone, "spec.")):
        found = [str(problem) for problem in written_problems(document, may_be_on_grove=False)]
        assert [f"{at}{text}" for text in expected] == found


def test_a_scaling_group_may_be_forced_on_grove_and_not_toggled() -> None:
    assert [] == [*written_problems(graph(**FORCED), may_be_on_grove=True)]
    (problem,) = written_update_problems(graph(), graph(**FORCED))
    assert f"spec.components[1].{FORCE}" == problem.path
    assert (
        "cannot be toggled after creation; delete and recreate the DynamoGraphDeployment" in problem.message
    )
    assert [] == [*written_update_problems(graph(**FORCED), graph(**FORCED))]


def test_fields_without_effect_are_reported() -> None:
    found = written_warnings(graph(frontendSidecar="front", **FORCED))
    assert ["spec.components[1].frontendSidecar", f"spec.components[1].{FORCE}"] == [it.path for it in found]
