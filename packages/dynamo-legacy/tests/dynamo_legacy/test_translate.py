"""Settings of the older generation under today's names, as the pods show them."""

import msgspec
import pytest

from dynamo_legacy.settings import LegacySettings
from dynamo_operator.settings import RenderSettings
from kube_runtime.types.meta import Object
from specs.legacy import main, nim, pod, rendered


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


def test_pull_secrets_are_those_of_the_image_and_the_user() -> None:
    component = nim(extraPodSpec={"imagePullSecrets": [{"name": "mine"}, {"name": "pull"}]})
    assert pod(component)["imagePullSecrets"] == [{"name": "pull"}, {"name": "mine"}]
