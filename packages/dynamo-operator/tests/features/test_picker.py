"""The rules of endpoint pickers."""

from typing import Any

import pytest

from dynamo_operator.graph.validate import graph_problems
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.meta import Object
from specs import a_graph, a_service

SETTINGS = RenderSettings(epp_cluster_role_name="epp")
CONFIG = {"config": {"plugins": [{"type": "picker"}], "schedulingProfiles": []}}


def problems(services: dict[str, Object], settings: RenderSettings = SETTINGS, **spec: Any) -> list[str]:
    return [str(problem) for problem in graph_problems(a_graph(services, **spec), settings)]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"eppConfig": {"configMapRef": {"name": "a b"}}}, 'configMapRef.name: invalid name "a b"'),
        ({"eppConfig": {"configMapRef": {"name": 1}}}, "configMapRef.name: expected a string"),
        ({"eppConfig": {"configMapRef": {"name": "a", "key": 1}}}, "configMapRef.key: expected a string"),
    ],
)
def test_one_problem_is_reported(fields: Object, expected: str) -> None:
    [problem] = problems({"e": a_service("epp", **fields)})
    assert expected in problem


def test_a_graph_has_one_picker() -> None:
    picker = a_service("epp", eppConfig=CONFIG)
    assert [
        'spec.services.b.componentType: a graph has at most one endpoint picker, and "a" already is one'
    ] == problems({"b": picker, "a": picker})


def test_a_picker_needs_a_role_unless_the_installation_gives_it_one() -> None:
    picker = {"e": a_service("epp", eppConfig=CONFIG)}
    [problem] = problems(picker, RenderSettings())
    assert "EPP ClusterRole name is required in cluster-wide mode" in problem
    assert [] == problems(picker, RenderSettings(restricted_namespace="prod"))


def test_the_configuration_of_another_type_is_ignored() -> None:
    assert [] == problems({"w": a_service("worker", eppConfig={})})
