"""A problem of an object that was written in v1beta1 has its path there, whatever its conversion is."""

from typing import Any

import pytest

from dynamo_operator.shared.problems import Problem
from dynamo_operator.shared.written import Written, message
from dynamo_operator.versions.conversion import convert
from kube_runtime.types.meta import Object

MAIN: Object = {
    "name": "main",
    "image": "r/vllm:1.2.0",
    "env": [{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
    "resources": {"limits": {"cpu": "1", "nvidia.com/gpu": "2", "rdma/ib": "1"}},
    "volumeMounts": [{"name": "data", "mountPath": "/data"}, {"name": "models", "mountPath": "/models"}],
    "livenessProbe": {"httpGet": {"port": 1}},
}
SIDE: Object = {"name": "side", "image": "r/side:1", "env": [{"name": "C", "value": "3"}]}
DECODE: Object = {
    "name": "Decode",
    "type": "decode",
    "replicas": 2,
    "sharedMemorySize": "1Gi",
    "compilationCache": {"pvcName": "cache", "mountPath": "/cache"},
    "scalingAdapter": {},
    "experimental": {"gpuMemoryService": {"mode": "InterPod"}},
    "podTemplate": {
        "metadata": {"labels": {"a.b/c": "d"}},
        "spec": {"containers": [SIDE, MAIN], "nodeSelector": {"x": "y"}},
    },
}
GRAPH: Object = {
    "apiVersion": "nvidia.com/v1beta1",
    "kind": "DynamoGraphDeployment",
    "metadata": {"name": "chat"},
    "spec": {"components": [{"name": "Frontend", "type": "frontend"}, DECODE], "env": [{"name": "S"}]},
}
_, WHOLE = GRAPH["spec"]["components"]
COMPONENT: Object = {**GRAPH, "kind": "DynamoComponentDeployment", "spec": WHOLE}


def written(document: Object) -> Written:
    return Written(document, convert(document, "nvidia.com/v1alpha1"))


IN_COMPONENT = {
    "": "",
    ".replicas": ".replicas",
    ".componentType": ".type",
    ".subComponentType": ".type",
    ".multinode.nodeCount": ".multinode.nodeCount",
    ".sharedMemory.size": ".sharedMemorySize",
    ".scalingAdapter.enabled": ".scalingAdapter",
    ".scalingAdapter": ".scalingAdapter",
    ".gpuMemoryService.mode": ".experimental.gpuMemoryService.mode",
    ".resources": "@.resources",
    ".resources.limits.cpu": "@.resources.limits.cpu",
    ".resources.limits.gpu": "@.resources.limits[nvidia.com/gpu]",
    ".resources.limits.custom[rdma/ib]": "@.resources.limits[rdma/ib]",
    ".envs": "@.env",
    ".envs[1].name": "@.env[1].name",
    ".envFromSecret": "@.envFrom",
    ".livenessProbe.httpGet.port": "@.livenessProbe.httpGet.port",
    ".extraPodSpec.mainContainer.image": "@.image",
    ".extraPodSpec.mainContainer": "@",
    ".extraPodSpec.containers[0].env[0].name": ".podTemplate.spec.containers[0].env[0].name",
    ".extraPodSpec.nodeSelector[x]": ".podTemplate.spec.nodeSelector[x]",
    ".extraPodMetadata.labels[a.b/c]": ".podTemplate.metadata.labels[a.b/c]",
    ".volumeMounts[0].name": ".compilationCache.pvcName",
    ".volumeMounts[0].mountPoint": ".compilationCache.mountPath",
    ".volumeMounts[2].mountPoint": "@.volumeMounts[1].mountPath",
    ".volumeMounts[1].name": "@.volumeMounts[0].name",
    ".volumeMounts": "@.volumeMounts",
}


@pytest.mark.parametrize(("seen", "expected"), IN_COMPONENT.items())
def test_a_field_of_a_component_in_a_graph_and_on_its_own(seen: str, expected: str) -> None:
    expected = expected.replace("@", ".podTemplate.spec.containers[1]")
    assert f"spec.components[1]{expected}" == written(GRAPH).path(f"spec.services.Decode{seen}")
    assert f"spec{expected}" == written(COMPONENT).path(f"spec{seen}")


BY_NAME = {
    ".volumeMounts[2].mountPoint": "@.volumeMounts[models].mountPath",
    ".volumeMounts[1].name": "@.volumeMounts[data].name",
    ".envs[1].name": "@.env[B].name",
    ".extraPodSpec.containers[0].env[0].name": ".podTemplate.spec.containers[side].env[0].name",
}


@pytest.mark.parametrize(("seen", "expected"), (IN_COMPONENT | BY_NAME).items())
def test_a_field_of_an_object_that_is_known_in_v1alpha1_only(seen: str, expected: str) -> None:
    expected = expected.replace("@", ".podTemplate.spec.containers[main]")
    own = [Written({}, convert(document, "nvidia.com/v1alpha1")) for document in (GRAPH, COMPONENT)]
    assert f"spec.components[Decode]{expected}" == own[0].path(f"spec.services.Decode{seen}")
    assert f"spec{expected}" == own[1].path(f"spec{seen}")


OTHERS: list[tuple[Any, str, str]] = [
    (GRAPH, "spec", "spec"),
    (GRAPH, "metadata.annotations[a.b/c]", "metadata.annotations[a.b/c]"),
    (GRAPH, "spec.services", "spec.components"),
    (GRAPH, "spec.services.Gone.replicas", "spec.components"),
    (GRAPH, "spec.envs[0].name", "spec.env[0].name"),
    (GRAPH, "spec.restart.strategy.order[1]", "spec.restart.strategy.order[1]"),
    (
        GRAPH,
        "spec.services.Frontend.resources.limits.gpu",
        "spec.components[0].podTemplate.spec.containers.resources",
    ),
    (GRAPH, "spec.pvcs[0].name", "metadata.annotations[nvidia.com/dgd-spec].spec.pvcs[0].name"),
    (
        GRAPH,
        "spec.services.Frontend.ingress.host",
        "metadata.annotations[nvidia.com/dgd-spec].spec.services.Frontend.ingress.host",
    ),
    ({"kind": "DynamoGraphDeploymentRequest"}, "spec.profilingConfig.config.sla.ttft", "spec.sla.ttft"),
    ({"kind": "DynamoGraphDeploymentRequest"}, "spec.profilingConfig.config.sla.isl", "spec.workload.isl"),
    (
        {"kind": "DynamoGraphDeploymentRequest"},
        "spec.profilingConfig.outputPVC",
        "metadata.annotations[nvidia.com/dgdr-spec].spec.profilingConfig.outputPVC",
    ),
    ({"kind": "DynamoGraphDeploymentScalingAdapter"}, "spec.dgdRef.serviceName", "spec.dgdRef.componentName"),
]


@pytest.mark.parametrize(("document", "seen", "expected"), OTHERS)
def test_a_field_of_another_object(document: Object, seen: str, expected: str) -> None:
    own = Written(document, document) if "spec" not in document else written(document)
    assert own.path(seen).startswith(expected)


@pytest.mark.parametrize(
    ("seen", "expected"),
    [
        ("spec.services must have at least one service", "must have at least one component"),
        ("spec.services[a.b].replicas must be non-negative", "must be non-negative"),
        (
            "spec.services[w]: EPP component must have exactly 1 replica",
            "EPP component must have exactly 1 replica",
        ),
        (
            "service topology is immutable and cannot be modified after creation: services added: [a b]",
            "component topology is immutable and cannot be modified after creation: components added: [a b]",
        ),
        (
            '"service" not found in extraPodSpec.resourceClaims',
            '"service" not found in podTemplate.spec.resourceClaims',
        ),
        ('must match gpuMemoryService.mode "intraPod"', 'must match gpuMemoryService.mode "IntraPod"'),
        (
            "Changing spec.backendFramework may cause trouble",
            "Changing spec.backendFramework may cause trouble",
        ),
        ("ServiceAccount", "ServiceAccount"),
    ],
)
def test_a_message_has_the_words_of_the_version(seen: str, expected: str) -> None:
    assert expected == message(seen)


def test_a_problem_is_shown_with_its_place() -> None:
    seen = "spec.services.Decode.replicas", "spec.services[Decode].replicas must be non-negative"
    assert "spec.components[1].replicas: must be non-negative" == str(written(GRAPH).problem(Problem(*seen)))
