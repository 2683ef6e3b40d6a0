"""The objects of a DynamoNimDeployment: what is particular to that generation."""

from typing import Any

import msgspec
import pytest

from dynamo_legacy.api import DynamoDeployment
from dynamo_legacy.render import (
    GraphConfig,
    MissingDependency,
    claims,
    components,
    parse_graph_config,
    services_only,
    unknown_services,
)
from dynamo_legacy.validation import shared_size_problem
from dynamo_operator.settings import RenderSettings
from specs.legacy import main, nim, rendered


def test_variables_keep_their_order_and_where_they_come_from() -> None:
    envs = [
        {"name": "Z", "value": "1"},
        {"name": "A", "value": "$(Z)"},
        {"name": "Z", "value": "2"},
        {"name": "K", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}},
        {"name": "PORT", "value": "8080"},
    ]
    container = main(nim(envs=envs))
    assert container["env"][:4] == [envs[0], envs[1], envs[3], envs[4]]
    assert [entry["name"] for entry in container["env"][4:]] == [
        "YATAI_T_DEPLOYMENT_UID",
        "YATAI_BENTO_DEPLOYMENT_NAME",
        "YATAI_BENTO_DEPLOYMENT_NAMESPACE",
    ]
    assert container["ports"][0]["containerPort"] == 8080


def test_no_user_label_is_one_that_selects() -> None:
    mine = {"yatai.ai/selector": "x", "yatai.ai/bento-deployment": "y", "team": "z"}
    objects = rendered(nim(labels=mine, extraPodMetadata={"labels": mine}))
    template = objects["Deployment"]["spec"]["template"]["metadata"]["labels"]
    assert template["yatai.ai/selector"] == template["yatai.ai/bento-deployment"] == "service1"
    assert template["team"] == "z"
    assert objects["Service"]["spec"]["selector"] == {"yatai.ai/bento-deployment": "service1"}
    assert objects["Deployment"]["spec"]["selector"] == {"matchLabels": {"yatai.ai/selector": "service1"}}


def test_an_autoscaler_keeps_the_replicas() -> None:
    component = nim(replicas=7, autoscaling={"enabled": True, "minReplicas": 2, "maxReplicas": 4})
    new, running = rendered(component), rendered(component, live=3)
    assert new["Deployment"]["spec"]["replicas"] == 2
    assert running["Deployment"]["spec"]["replicas"] == 3
    parked = rendered(component, live=0)["Deployment"]
    assert parked["spec"]["replicas"] == 2  # an autoscaler leaves 0 alone
    assert new["HorizontalPodAutoscaler"]["spec"] == {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "service1"},
        "minReplicas": 2,
        "maxReplicas": 4,
        "metrics": [
            {
                "type": "Resource",
                "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
            }
        ],
    }


def test_a_claim() -> None:
    pvc = {"create": True, "size": "10Gi", "volumeAccessMode": "ReadWriteOnce", "mountPoint": "/d"}
    component = nim(pvc=pvc)
    [claim] = claims(component)
    assert claim["metadata"]["name"] == "service1"
    assert "storageClassName" not in claim["spec"]
    assert {"name": "service1", "mountPath": "/d"} in main(component)["volumeMounts"]
    assert claims(nim(pvc={"name": "data", "mountPoint": "/d"})) == ()


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
                "service2": {"deploymentSelectorKey": "name", "deploymentSelectorValue": "service2"}
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
def test_only_a_plain_entry_service_is_reached_from_outside(namespace: str, expected: str) -> None:
    by_name = specs(deployment(), ENTRY.replace("NAMESPACE", namespace))
    first = by_name["test-dynamodeployment-service1"]
    assert first["ingress"] == {"enabled": True}
    assert first["externalServices"] == {
        "service2": {"deploymentSelectorKey": "dynamo", "deploymentSelectorValue": f"service2/{expected}"}
    }
    assert by_name["test-dynamodeployment-service2"]["dynamoNamespace"] == expected
    assert "ingress" not in by_name["test-dynamodeployment-service2"]
    of_dynamo = ENTRY.replace("entry_service: service1", "entry_service: service2")
    assert all("ingress" not in spec for spec in specs(deployment(), of_dynamo).values())


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
def test_variables_of_a_service_win(specific: dict[str, str], expected: list[tuple[str, str]]) -> None:
    made = deployment(envs=[{"name": "FOO", "value": "BAR"}], services={"service2": {"envs": [specific]}})
    envs = specs(made, TWO_SERVICES)["test-dynamodeployment-service2"]["envs"]
    assert [(entry["name"], entry["value"]) for entry in envs] == expected


def test_services_that_the_graph_does_not_have() -> None:
    made = deployment(services={"Service1": {}, "service2": {}})
    assert unknown_services(made, parse_graph_config(TWO_SERVICES)) == ("Service1",)


def test_without_a_configuration_the_services_are_the_graph() -> None:
    made = deployment(services={"A": {"replicas": 2}, "B": {}})
    graph = services_only(made, "graphs.agg:A")
    assert [component["spec"]["dynamoTag"] for component in components(made, graph)] == ["graphs.agg:A"] * 2
    assert components(made, GraphConfig()) == ()


def test_variables_of_all_services_have_a_limit_together() -> None:
    graph = parse_graph_config(TWO_SERVICES)
    made = deployment(envs=[{"name": "A", "value": "x" * 600}])
    assert shared_size_problem(made, graph, RenderSettings()) == ""
    problem = shared_size_problem(made, graph, RenderSettings(largest_object_bytes=250))
    assert problem.startswith("spec.envs: ")
    assert "in each of 2 services" in problem
