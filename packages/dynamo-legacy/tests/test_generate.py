"""From the configuration of a graph to components: the vectors of that generation, and what overrides do."""

from typing import Any

import msgspec
import pytest

from dynamo_legacy.api import DynamoDeployment
from dynamo_legacy.names import nim_name
from dynamo_legacy.render import (
    GraphConfig,
    MissingDependency,
    components,
    parse_graph_config,
    services_only,
    unknown_services,
)
from dynamo_legacy.validation import shared_size_problem
from dynamo_operator.settings import RenderSettings

TWO_SERVICES = """
service: dynamonim:MyService1
services:
- name: service1
  dependencies:
  - service: service2
  config:
    dynamo: {enabled: true, namespace: default, name: service1}
    resources: {cpu: 1, memory: 1Gi, gpu: 0, custom: {}}
    autoscaling: {min_replicas: 1, max_replicas: 5}
- name: service2
  config:
    dynamo: {enabled: false}
"""
ENTRY = """
service: dynamonim:MyService1
entry_service: service1
services:
- name: service1
  dependencies: [{service: service2}]
- name: service2
  config:
    dynamo: {enabled: true, namespace: NAMESPACE, name: service2}
"""


def deployment(**spec: Any) -> DynamoDeployment:
    body = {
        "metadata": {"name": "test-dynamodeployment", "namespace": "ml"},
        "spec": {"dynamoNim": "dynamonim:ac4e234", **spec},
    }
    return msgspec.convert(body, DynamoDeployment)


def specs(made: DynamoDeployment, text: str) -> dict[str, Any]:
    return {
        component["metadata"]["name"]: component["spec"]
        for component in components(made, parse_graph_config(text))
    }


def test_what_a_graph_says_of_its_services() -> None:
    resources = {"cpu": "1", "memory": "1Gi", "gpu": "0"}
    assert specs(deployment(), TWO_SERVICES) == {
        "test-dynamodeployment-service1": {
            "dynamoNim": "dynamonim--ac4e234",
            "dynamoTag": "dynamonim:MyService1",
            "serviceName": "service1",
            "dynamoNamespace": "default",
            "resources": {"requests": resources, "limits": resources},
            "autoscaling": {"enabled": True, "minReplicas": 1, "maxReplicas": 5},
            "externalServices": {
                "service2": {
                    "deploymentSelectorKey": "name",
                    "deploymentSelectorValue": "service2",
                }
            },
        },
        "test-dynamodeployment-service2": {
            "dynamoNim": "dynamonim--ac4e234",
            "dynamoTag": "dynamonim:MyService1",
            "serviceName": "service2",
        },
    }


@pytest.mark.parametrize(
    ("namespace", "expected"), [("default", "default"), ("''", "dynamo-test-dynamodeployment")]
)
def test_a_plain_entry_service_is_reached_from_outside(namespace: str, expected: str) -> None:
    by_name = specs(deployment(), ENTRY.replace("NAMESPACE", namespace))
    first = by_name["test-dynamodeployment-service1"]
    assert first["ingress"] == {"enabled": True}
    assert first["externalServices"] == {
        "service2": {
            "deploymentSelectorKey": "dynamo",
            "deploymentSelectorValue": f"service2/{expected}",
        }
    }
    assert by_name["test-dynamodeployment-service2"]["dynamoNamespace"] == expected
    assert "ingress" not in by_name["test-dynamodeployment-service2"]


def test_a_dynamo_entry_service_is_not() -> None:
    text = ENTRY.replace("entry_service: service1", "entry_service: service2")
    assert all("ingress" not in spec for spec in specs(deployment(), text).values())


def test_a_dependency_has_to_be_in_the_graph() -> None:
    text = TWO_SERVICES.replace("- service: service2", "- service: service3")
    with pytest.raises(MissingDependency, match="dependency service3 not found"):
        specs(deployment(), text)


def test_workers_are_replicas_unless_somebody_else_says_how_many() -> None:
    text = "services: [{name: A, config: {workers: 3}}]"
    assert specs(deployment(), text)["test-dynamodeployment-a"]["replicas"] == 3
    overridden = deployment(services={"A": {"replicas": 0}})
    assert specs(overridden, text)["test-dynamodeployment-a"]["replicas"] == 0


def test_an_override_wins_with_false_and_null_too_but_not_over_the_tag() -> None:
    override = {
        "autoscaling": {"enabled": False},
        "resources": {"requests": None, "limits": {"cpu": "2"}},
        "dynamoTag": "other:Class",
        "dynamoNim": "other",
    }
    made = deployment(services={"service1": override})
    spec = specs(made, TWO_SERVICES)["test-dynamodeployment-service1"]
    assert spec["autoscaling"] == {"enabled": False, "minReplicas": 1, "maxReplicas": 5}
    assert spec["resources"] == {"limits": {"cpu": "2", "memory": "1Gi", "gpu": "0"}}
    assert (spec["dynamoTag"], spec["dynamoNim"]) == ("dynamonim:MyService1", "dynamonim--ac4e234")


@pytest.mark.parametrize(
    ("specific", "expected"),
    [
        ({"name": "FOO", "value": "QUX"}, [("FOO", "QUX")]),
        ({"name": "BAZ", "value": "QUX"}, [("FOO", "BAR"), ("BAZ", "QUX")]),
    ],
)
def test_variables_of_a_service_win(
    specific: dict[str, str], expected: list[tuple[str, str]]
) -> None:
    made = deployment(
        envs=[{"name": "FOO", "value": "BAR"}], services={"service2": {"envs": [specific]}}
    )
    envs = specs(made, TWO_SERVICES)["test-dynamodeployment-service2"]["envs"]
    assert [(entry["name"], entry["value"]) for entry in envs] == expected


def test_services_that_the_graph_does_not_have() -> None:
    made = deployment(services={"Service1": {}, "service2": {}})
    assert unknown_services(made, parse_graph_config(TWO_SERVICES)) == ("Service1",)


def test_without_a_configuration_the_services_are_the_graph() -> None:
    made = deployment(services={"A": {"replicas": 2}, "B": {}})
    graph = services_only(made, "graphs.agg:A")
    assert [component["spec"]["dynamoTag"] for component in components(made, graph)] == [
        "graphs.agg:A"
    ] * 2
    assert components(made, GraphConfig()) == ()


@pytest.mark.parametrize("tag", ["a", "a:b:c", ":b", "a:", "-:b", "a/b:" + "c" * 260])
def test_a_tag_without_a_name_is_refused(tag: str) -> None:
    with pytest.raises(ValueError, match="invalid tag"):
        nim_name(tag)


def test_the_name_of_a_tag() -> None:
    assert nim_name("frontend:jh2o6dqzpsgfued4") == "frontend--jh2o6dqzpsgfued4"
    assert nim_name("My_Graph:V1") == "my-graph--v1"


def test_variables_of_all_services_have_a_limit_together() -> None:
    graph = parse_graph_config(TWO_SERVICES)
    made = deployment(envs=[{"name": "A", "value": "x" * 600}])
    assert shared_size_problem(made, graph, RenderSettings()) == ""
    problem = shared_size_problem(made, graph, RenderSettings(largest_object_bytes=1000))
    assert problem.startswith("spec.envs: ")
    assert "in each of 2 services" in problem
