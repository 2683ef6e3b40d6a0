"""Every rule of a component: what is refused, where, and in which words."""

from collections.abc import Iterator
from typing import Any

import pytest

from dynamo_operator.component.validate import component_problems
from dynamo_operator.component.validate_pod import REQUIRED_LISTS
from dynamo_operator.settings import RenderSettings
from kube_runtime.schema import embedded
from kube_runtime.types.meta import Object
from specs import IMAGE, a_component, a_service

SETTINGS = RenderSettings()
MAIN = "spec.extraPodSpec.mainContainer"


def problems(**spec: Any) -> list[str]:
    reported = component_problems(a_component(**spec), SETTINGS)
    return [str(problem) for problem in reported]


def pod(main: Object | None = None, **fields: Any) -> Object:
    return {"mainContainer": {"image": IMAGE, **(main or {})}, **fields}


def test_a_plain_component_has_no_problems() -> None:
    assert [] == problems(**a_service())


def test_all_problems_are_found_at_once_in_the_order_of_their_paths() -> None:
    reported = problems(replicas=-1, sharedMemory={}, ingress={"enabled": True})
    assert ["spec.ingress.host", "spec.replicas", "spec.sharedMemory.size"] == [
        problem.partition(" ")[0] for problem in reported
    ]


REQUIRED_NODES = "requiredDuringSchedulingIgnoredDuringExecution"
NO_TERMS: Object = {"nodeAffinity": {REQUIRED_NODES: {"nodeSelectorTerms": []}}}

CASES: dict[str, tuple[Object, str]] = {
    "a list without entries": (
        {"extraPodSpec": pod(affinity=NO_TERMS)},
        f"{REQUIRED_NODES}.nodeSelectorTerms: expected at least one entry",
    ),
    "a ServiceAccount under its old name": (
        {"extraPodSpec": pod(serviceAccount="A b")},
        'spec.extraPodSpec.serviceAccount: invalid name "A b" of a ServiceAccount',
    ),
    "the ServiceAccount of profiling": (
        {"extraPodSpec": pod(serviceAccountName="dgdr-profiling-job")},
        'spec.extraPodSpec.serviceAccountName: "dgdr-profiling-job" is the ServiceAccount of profiling',
    ),
    "the ServiceAccount of planners": (
        {"extraPodSpec": pod(serviceAccountName="planner-serviceaccount"), "componentType": "worker"},
        "(expected componentType planner)",
    ),
    "an amount of which there is not enough in the world": (
        {"resources": {"limits": {"gpu": "1e400"}}},
        'spec.resources.limits.gpu: invalid quantity "1e400"',
    ),
    "an amount without an end": (
        {"resources": {"limits": {"cpu": "1e999999999"}}},
        'spec.resources.limits.cpu: invalid quantity "1e999999999"',
    ),
    "no image": (
        {"extraPodSpec": {"mainContainer": {"args": ["x"]}}},
        f"{MAIN}.image: missing image (there is no default)",
    ),
    "no pod spec": ({"extraPodSpec": None}, f"{MAIN}.image: missing image"),
    "several nodes": (
        {"multinode": {"nodeCount": 2}},
        "spec.extraPodSpec.mainContainer.args: missing command: a multinode component",
    ),
    "an endpoint picker without a graph": (
        {"componentType": "epp", "eppConfig": {"config": {}}},
        "spec.componentType: an endpoint picker must belong to a graph",
    ),
    "a type that is not a label": ({"componentType": "a b"}, 'spec.componentType: invalid label value "a b"'),
    "an invalid label key": ({"labels": {"a b": "c"}}, 'spec.labels[a b]: invalid key "a b"'),
    "an invalid value": (
        {"extraPodMetadata": {"labels": {"a": "b c"}}},
        'spec.extraPodMetadata.labels[a]: invalid label value "b c"',
    ),
    "an unknown discovery backend": (
        {"annotations": {"nvidia.com/dynamo-discovery-backend": "kubernete"}},
        'did you mean "kubernetes"?',
    ),
    "an update that can replace nothing": (
        {
            "annotations": {
                "nvidia.com/deployment-rolling-update-max-surge": "0",
                "nvidia.com/deployment-rolling-update-max-unavailable": "0%",
            }
        },
        "must not both be 0",
    ),
    "an invalid bound": (
        {"annotations": {"nvidia.com/deployment-rolling-update-max-surge": "some"}},
        'invalid bound "some"',
    ),
    "an invalid host": (
        {"ingress": {"enabled": True, "host": "a_b"}},
        'spec.ingress.host: invalid host name "a_b.local"',
    ),
    "a mismatch of backends": (
        {"backendFramework": "sglang", "extraPodSpec": pod({"args": ["python3 -m dynamo.vllm"]})},
        'detected "vllm" from command but explicitly configured as "sglang"',
    ),
    "two backends": (
        {"extraPodSpec": pod({"args": ["python3 -m dynamo.vllm; python3 -m dynamo.sglang"]})},
        "multiple backend frameworks detected from command: [sglang vllm]",
    ),
    "a mount without a place": (
        {"volumeMounts": [{"name": "a"}]},
        "spec.volumeMounts[0].mountPoint is required when useAsCompilationCache is false",
    ),
    "a cache without a default place": (
        {"backendFramework": "sglang", "volumeMounts": [{"name": "a", "useAsCompilationCache": True}]},
        "because sglang has no default",
    ),
    "two PVCs at one path": (
        {"volumeMounts": [{"name": "a", "mountPoint": "/x"}, {"name": "b", "mountPoint": "/x"}]},
        'spec.volumeMounts[1].mountPoint: duplicate path "/x", already the mount point of PVC "a"',
    ),
    "a PVC and an own volume at one path": (
        {
            "volumeMounts": [{"name": "a", "mountPoint": "/x"}],
            "extraPodSpec": pod(
                {"volumeMounts": [{"name": "own", "mountPath": "/x"}]}, volumes=[{"name": "own"}]
            ),
        },
        f'{MAIN}.volumeMounts[0].mountPath: duplicate path "/x", already the mount point of PVC "a"',
    ),
    "a volume named like a PVC": (
        {
            "volumeMounts": [{"name": "a", "mountPoint": "/x"}],
            "extraPodSpec": pod(volumes=[{"name": "a", "emptyDir": {}}]),
        },
        "spec.extraPodSpec.volumes[0].name",
    ),
    "a volume named like shared memory": (
        {"extraPodSpec": pod(volumes=[{"name": "shared-memory", "emptyDir": {}}])},
        'spec.extraPodSpec.volumes[0].name: duplicate volume "shared-memory"',
    ),
    "a mount without a volume": (
        {"extraPodSpec": pod({"volumeMounts": [{"name": "gone", "mountPath": "/x"}]})},
        f'{MAIN}.volumeMounts[0].name: volume "gone" not found',
    ),
    "no quantity": (
        {"resources": {"limits": {"cpu": "abc"}}},
        'spec.resources.limits.cpu: invalid quantity "abc"',
    ),
    "half a device": (
        {"resources": {"limits": {"gpu": "500m"}}},
        'spec.resources.limits.gpu: invalid quantity "500m" of nvidia.com/gpu (expected a whole number)',
    ),
    "more requested than allowed": (
        {"resources": {"requests": {"memory": "2Gi"}, "limits": {"memory": "1Gi"}}},
        "spec.resources.requests.memory: the request of memory must not exceed its limit",
    ),
    "devices that differ": (
        {
            "resources": {"requests": {"gpu": "1"}},
            "extraPodSpec": pod({"resources": {"limits": {"nvidia.com/gpu": 2}}}),
        },
        "spec.resources.requests.gpu: request and limit of nvidia.com/gpu must be equal",
    ),
    "a resource that does not exist": (
        {"resources": {"limits": {"custom": {"gpus": "1"}}}},
        'spec.resources.limits.custom[gpus]: unknown resource "gpus"',
    ),
    "a resource claim that the pod lacks": (
        {"resources": {"claims": [{"name": "fabric"}]}},
        'spec.resources.claims[0].name: "fabric" not found in extraPodSpec.resourceClaims',
    ),
    "a variable without a name": (
        {"envs": [{"value": "x"}]},
        "spec.envs[0].name: missing name of an environment variable",
    ),
    "a variable with two sources": (
        {"extraPodSpec": pod({"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {}}}]})},
        f"{MAIN}.env[0].valueFrom: value and valueFrom must not both be set",
    ),
    "a side container named like the main one": (
        {"extraPodSpec": pod(containers=[{"name": "main", "image": "x"}])},
        'containers[0].name: duplicate container name "main", already used by the main container',
    ),
    "a variable twice in a side container": (
        {
            "extraPodSpec": pod(
                containers=[{"name": "s", "image": "x", "env": [{"name": "A"}, {"name": "A"}]}]
            )
        },
        'spec.extraPodSpec.containers[0].env[1].name: duplicate variable "A"',
    ),
    "a variable twice in the main container": (
        {"extraPodSpec": pod({"env": [{"name": "A"}, {"name": "A"}]})},
        f'{MAIN}.env[1].name: duplicate variable "A"',
    ),
    "a port twice": (
        {"extraPodSpec": pod({"ports": [{"containerPort": 80}, {"containerPort": 80}]})},
        f"{MAIN}.ports[1].containerPort: duplicate port 80/TCP",
    ),
    "a probe without a handler": (
        {"livenessProbe": {"periodSeconds": 3}},
        "spec.livenessProbe: missing handler (expected one of exec, httpGet, tcpSocket, grpc)",
    ),
    "a probe with two handlers": (
        {"readinessProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}},
        "spec.readinessProbe: more than one handler: exec and tcpSocket",
    ),
    "a pod that ends": ({"extraPodSpec": pod(restartPolicy="Never")}, "spec.extraPodSpec.restartPolicy"),
    "a pod spec of the wrong type": (
        {"extraPodSpec": pod(containers={"name": "x"})},
        "spec.extraPodSpec.containers: expected a list",
    ),
    "a command that is text": (
        {"extraPodSpec": pod({"command": "python3"})},
        f"{MAIN}.command: expected a list",
    ),
    "sizes that are not JSON": (
        {"envs": [{"name": "DYN_DEPLOYMENT_CONFIG", "value": "{"}]},
        "spec.envs[0].value: invalid JSON",
    ),
    "sizes that are nested without end": (
        {"envs": [{"name": "DYN_DEPLOYMENT_CONFIG", "value": "[" * 200_000}]},
        "spec.envs[0].value: invalid JSON",
    ),
    "sizes of the wrong type": (
        {
            "envs": [
                {
                    "name": "DYN_DEPLOYMENT_CONFIG",
                    "value": '{"W": {"ServiceArgs": {"resources": {"gpu": 1}}}}',
                }
            ]
        },
        "spec.envs[0].value[W].ServiceArgs.resources.gpu: expected a string",
    ),
}


@pytest.mark.parametrize(("spec", "expected"), CASES.values(), ids=CASES)
def test_one_problem_is_reported(spec: Object, expected: str) -> None:
    reported = problems(**spec)
    assert 1 == len(reported), reported
    assert expected in reported[0]


def required_lists(schema: Object) -> Iterator[str]:
    for name, field in schema.get("properties", {}).items():
        if name in schema.get("required", ()) and field.get("type") == "array":
            yield name
        yield from required_lists(field)
    for keyword in {"items", "additionalProperties"} & schema.keys():
        yield from required_lists(schema[keyword])


def test_the_lists_that_need_an_entry_are_those_that_the_schema_of_a_pod_requires() -> None:
    assert {*REQUIRED_LISTS} == {*required_lists(embedded("ExtraPodSpec"))}


FINE: dict[str, Object] = {
    "part of a probe over a default": {"extraPodSpec": pod({"livenessProbe": {"periodSeconds": 3}})},
    "a volume twice at two paths": {
        "volumeMounts": [{"name": "a", "mountPoint": "/x"}, {"name": "a", "mountPoint": "/y"}]
    },
    "the same mount twice": {
        "volumeMounts": [{"name": "a", "mountPoint": "/x"}, {"name": "a", "mountPoint": "/x"}]
    },
    "own shared memory": {
        "extraPodSpec": pod(
            {"volumeMounts": [{"name": "shared-memory", "mountPath": "/dev/shm"}]},  # noqa: S108
            volumes=[{"name": "shared-memory", "emptyDir": {"medium": "Memory"}}],
        )
    },
    "an explicit choice between two backends": {
        "backendFramework": "vllm",
        "extraPodSpec": pod({"args": ["python3 -m dynamo.vllm; python3 -m dynamo.sglang"]}),
    },
    "devices under requests only": {"resources": {"requests": {"gpu": "2"}}},
    "amounts written in two ways": {"resources": {"requests": {"cpu": "1"}, "limits": {"cpu": "1000m"}}},
    "a variable twice, the later one wins": {"envs": [{"name": "A"}, {"name": "A", "value": "x"}]},
    "an ingress that is off": {"ingress": {"enabled": False}},
    "nulls in the pod spec": {"extraPodSpec": pod({"args": None}, containers=None, volumes=None)},
}


@pytest.mark.parametrize("spec", FINE.values(), ids=FINE)
def test_this_is_fine(spec: Object) -> None:
    assert [] == problems(**spec)
