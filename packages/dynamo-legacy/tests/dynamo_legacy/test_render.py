"""The objects of a DynamoNimDeployment: what is particular to that generation."""

from typing import Any

import msgspec
import pytest

from dynamo_legacy.api import DynamoDeployment, DynamoNimDeployment, DynamoNimSpec
from dynamo_legacy.render import (
    GraphConfig,
    MissingDependency,
    claims,
    components,
    nim_objects,
    parse_graph_config,
    services_only,
    unknown_services,
)
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.validation import shared_size_problem
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.meta import Object

IMAGE = DynamoNimSpec(tag="graph:v1", image="reg.example.com/x:1", image_pull_secrets=({"name": "pull"},))


def nim(name: str = "service1", **spec: Any) -> DynamoNimDeployment:
    body = {
        "metadata": {"name": name, "namespace": "ml", "uid": "u-1"},
        "spec": {"dynamoNim": "graph--v1", "dynamoTag": "graphs.agg:Frontend", **spec},
    }
    return msgspec.convert(body, DynamoNimDeployment)


def rendered(
    component: DynamoNimDeployment,
    settings: RenderSettings = RenderSettings(),  # noqa: B008  # frozen
    legacy: LegacySettings = LegacySettings(),  # noqa: B008
    live: int | None = None,
) -> dict[str, Object]:
    around, workloads = nim_objects(component, IMAGE, Facts(), settings, legacy, live)
    return {manifest["kind"]: manifest for manifest in (*around, *workloads)}


def pod(component: DynamoNimDeployment, legacy: LegacySettings = LegacySettings()) -> Object:  # noqa: B008
    spec: Object = rendered(component, legacy=legacy)["Deployment"]["spec"]["template"]["spec"]
    return spec


def main(component: DynamoNimDeployment, legacy: LegacySettings = LegacySettings()) -> Object:  # noqa: B008
    container: Object = pod(component, legacy)["containers"][-1]
    return container


@pytest.mark.parametrize(
    ("resources", "requests", "limits", "shared"),
    [
        ({}, {"cpu": "300m", "memory": "500Mi"}, {"cpu": "500m", "memory": "1Gi"}, "512Mi"),
        (
            {"limits": {"cpu": "10", "memory": "20Gi", "gpu": "1"}},
            {"cpu": "300m", "memory": "500Mi"},
            {"cpu": "10", "memory": "20Gi", "nvidia.com/gpu": "1"},
            "10Gi",
        ),
        (
            {"requests": {"cpu": "3", "gpu": "2"}, "limits": {"memory": "100Mi"}},
            {"cpu": "3"},
            {"memory": "100Mi"},
            "50Mi",
        ),
        ({"requests": {"memory": "2Gi"}}, {"cpu": "300m", "memory": "2Gi"}, {"cpu": "500m"}, "64Mi"),
    ],
)
def test_resources_and_shared_memory(
    resources: Object, requests: Object, limits: Object, shared: str
) -> None:
    component = nim(resources=resources)
    assert main(component)["resources"] == {"requests": requests, "limits": limits}
    [volume] = pod(component)["volumes"]
    assert volume["emptyDir"] == {"medium": "Memory", "sizeLimit": shared}


@pytest.mark.parametrize(
    ("wanted", "class_name", "suffix", "host"),
    [
        ({"enabled": True}, "nginx", "", "service1.local"),
        ({"enabled": True, "hostPrefix": "pre-"}, "nginx", "dev.example.com", "pre-service1.dev.example.com"),
        ({"enabled": True, "host": "disagg", "hostSuffix": "example.com"}, "c", "x", "disagg.example.com"),
        ({"enabled": False}, "nginx", "", None),
        ({"enabled": True}, "", "", None),
    ],
)  # fmt: skip
def test_the_ingress(wanted: Object, class_name: str, suffix: str, host: str | None) -> None:
    settings = RenderSettings(ingress_class_name=class_name)
    objects = rendered(nim(ingress=wanted), settings, LegacySettings(ingress_host_suffix=suffix))
    ingress = objects.get("Ingress")
    assert (ingress and ingress["spec"]["rules"][0]["host"]) == host
    if ingress:
        backend = ingress["spec"]["rules"][0]["http"]["paths"][0]["backend"]
        assert backend == {"service": {"name": "service1", "port": {"number": 3000}}}


def test_a_gateway_of_the_operator_makes_a_virtual_service() -> None:
    settings = RenderSettings(virtual_service_gateway="istio-system/ingress-alb")
    objects = rendered(nim(ingress={"enabled": True}), settings)
    assert objects["VirtualService"]["spec"]["gateways"] == ["istio-system/ingress-alb"]
    own_class = {"enabled": True, "ingressControllerClassName": "nginx"}
    assert "VirtualService" not in rendered(nim(ingress=own_class), settings)


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


def test_the_dynamo_namespace_is_where_the_process_looks_first() -> None:
    component = nim(
        serviceName="Worker",
        dynamoNamespace="ns",
        envs=[{"name": "DYN_DEPLOYMENT_CONFIG", "value": '{"Worker":{"ServiceArgs":{"workers":3}}}'}],
    )
    deployment = rendered(component)["Deployment"]
    assert deployment["spec"]["replicas"] == 3
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert msgspec.json.decode(container["env"][0]["value"]) == {
        "Worker": {"ServiceArgs": {"workers": 3, "dynamo": {"namespace": "ns"}}}
    }


def test_the_command() -> None:
    component = nim(
        serviceName="Worker", dynamoNamespace="ns", envs=[{"name": "DYNAMO_CONFIG_PATH", "value": "/c.yaml"}]
    )
    [line] = main(component)["args"]
    assert line == (
        "cd src && uv run dynamo serve --service-name Worker graphs.agg:Frontend "
        "--Worker.ServiceArgs.dynamo.namespace=ns -f /c.yaml"
    )
    assert "command" not in main(nim(dynamoTag=""))


@pytest.mark.parametrize("prefix", ["yatai.ai/", "nvidia.com/"])
def test_switches(prefix: str) -> None:
    switches = {
        "deployment-strategy": "RampedSlowRollout",
        "enable-container-ptrace": "true",
        "run-container-as-root": "true",
        "enable-host-network": "true",
        "enable-debug-mode": "true",
        "enable-host-pid": "yes",
    }
    component = nim(annotations={f"{prefix}{name}": text for name, text in switches.items()} | {"a": "b"})
    deployment = rendered(component)["Deployment"]
    assert deployment["spec"]["strategy"] == {
        "type": "RollingUpdate",
        "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0},
    }
    spec = pod(component)
    assert spec["hostNetwork"] is True
    assert "hostPID" not in spec
    assert "shareProcessNamespace" not in spec
    [container] = spec["containers"]
    assert container["securityContext"] == {
        "capabilities": {"add": ["SYS_PTRACE"]},
        "runAsUser": 0,
        "runAsNonRoot": False,
    }
    template = deployment["spec"]["template"]["metadata"]
    assert template["annotations"] == {
        "a": "b",
        "yatai.ai/bento-repository": "graph",
        "yatai.ai/bento-version": "v1",
    }


def test_the_restricted_security_context() -> None:
    context = main(nim(), LegacySettings(restricted_security_context=True))["securityContext"]
    assert (context["runAsUser"], context["runAsGroup"]) == (1034, 1000)
    assert context["capabilities"] == {"drop": ["ALL"]}


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


def test_pull_secrets_are_those_of_the_image_and_the_user() -> None:
    component = nim(extraPodSpec={"imagePullSecrets": [{"name": "mine"}, {"name": "pull"}]})
    assert pod(component)["imagePullSecrets"] == [{"name": "pull"}, {"name": "mine"}]


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
def test_a_plain_entry_service_is_reached_from_outside(namespace: str, expected: str) -> None:
    by_name = specs(deployment(), ENTRY.replace("NAMESPACE", namespace))
    first = by_name["test-dynamodeployment-service1"]
    assert first["ingress"] == {"enabled": True}
    assert first["externalServices"] == {
        "service2": {"deploymentSelectorKey": "dynamo", "deploymentSelectorValue": f"service2/{expected}"}
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
