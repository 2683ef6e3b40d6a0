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


def test_all_problems_are_found_at_once_in_the_order_of_their_paths() -> None:
    reported = problems(replicas=-1, sharedMemory={}, ingress={"enabled": True})
    assert ["spec.ingress.host", "spec.replicas", "spec.sharedMemory.size"] == [
        problem.partition(" ")[0] for problem in reported
    ]


REQUIRED_NODES = "requiredDuringSchedulingIgnoredDuringExecution"
NO_TERMS: Object = {"nodeAffinity": {REQUIRED_NODES: {"nodeSelectorTerms": []}}}

CASES: dict[str, Object] = {
    f"{REQUIRED_NODES}.nodeSelectorTerms: expected at least one entry": {
        "extraPodSpec": pod(affinity=NO_TERMS)
    },
    'spec.extraPodSpec.serviceAccount: invalid name "A b" of a ServiceAccount': {
        "extraPodSpec": pod(serviceAccount="A b")
    },
    'spec.extraPodSpec.serviceAccountName: "dgdr-profiling-job" is the ServiceAccount of profiling': {
        "extraPodSpec": pod(serviceAccountName="dgdr-profiling-job")
    },
    "(expected componentType planner)": {
        "extraPodSpec": pod(serviceAccountName="planner-serviceaccount"),
        "componentType": "worker",
    },
    f"{MAIN}.image: missing image (there is no default)": {
        "extraPodSpec": {"mainContainer": {"args": ["x"]}}
    },
    f"{MAIN}.image: missing image": {"extraPodSpec": None},
    "spec.extraPodSpec.mainContainer.args: missing command: a multinode component": {
        "multinode": {"nodeCount": 2}
    },
    "spec.componentType: an endpoint picker must belong to a graph": {
        "componentType": "epp",
        "eppConfig": {"config": {}},
    },
    'spec.componentType: invalid label value "a b"': {"componentType": "a b"},
    'spec.labels[a b]: invalid key "a b"': {"labels": {"a b": "c"}},
    'spec.extraPodMetadata.labels[a]: invalid label value "b c"': {
        "extraPodMetadata": {"labels": {"a": "b c"}}
    },
    'did you mean "kubernetes"?': {"annotations": {"nvidia.com/dynamo-discovery-backend": "kubernete"}},
    "must not both be 0": {
        "annotations": {
            "nvidia.com/deployment-rolling-update-max-surge": "0",
            "nvidia.com/deployment-rolling-update-max-unavailable": "0%",
        }
    },
    'invalid bound "some"': {"annotations": {"nvidia.com/deployment-rolling-update-max-surge": "some"}},
    'spec.ingress.host: invalid host name "a_b.local"': {"ingress": {"enabled": True, "host": "a_b"}},
    'detected "vllm" from command but explicitly configured as "sglang"': {
        "backendFramework": "sglang",
        "extraPodSpec": pod({"args": ["python3 -m dynamo.vllm"]}),
    },
    "multiple backend frameworks detected from command: [sglang vllm]": {
        "extraPodSpec": pod({"args": ["python3 -m dynamo.vllm; python3 -m dynamo.sglang"]})
    },
    "spec.volumeMounts[0].mountPoint is required when useAsCompilationCache is false": {
        "volumeMounts": [{"name": "a"}]
    },
    "because sglang has no default": {
        "backendFramework": "sglang",
        "volumeMounts": [{"name": "a", "useAsCompilationCache": True}],
    },
    'spec.volumeMounts[1].mountPoint: duplicate path "/x", already the mount point of PVC "a"': {
        "volumeMounts": [{"name": "a", "mountPoint": "/x"}, {"name": "b", "mountPoint": "/x"}]
    },
    f'{MAIN}.volumeMounts[0].mountPath: duplicate path "/x", already the mount point of PVC "a"': {
        "volumeMounts": [{"name": "a", "mountPoint": "/x"}],
        "extraPodSpec": pod(
            {"volumeMounts": [{"name": "own", "mountPath": "/x"}]}, volumes=[{"name": "own"}]
        ),
    },
    "spec.extraPodSpec.volumes[0].name": {
        "volumeMounts": [{"name": "a", "mountPoint": "/x"}],
        "extraPodSpec": pod(volumes=[{"name": "a", "emptyDir": {}}]),
    },
    'spec.extraPodSpec.volumes[0].name: duplicate volume "shared-memory"': {
        "extraPodSpec": pod(volumes=[{"name": "shared-memory", "emptyDir": {}}])
    },
    f'{MAIN}.volumeMounts[0].name: volume "gone" not found': {
        "extraPodSpec": pod({"volumeMounts": [{"name": "gone", "mountPath": "/x"}]})
    },
    'spec.resources.claims[0].name: "fabric" not found in extraPodSpec.resourceClaims': {
        "resources": {"claims": [{"name": "fabric"}]}
    },
    "spec.envs[0].name: missing name of an environment variable": {"envs": [{"value": "x"}]},
    f"{MAIN}.env[0].valueFrom: value and valueFrom must not both be set": {
        "extraPodSpec": pod({"env": [{"name": "A", "value": "x", "valueFrom": {"fieldRef": {}}}]})
    },
    'containers[0].name: duplicate container name "main", already used by the main container': {
        "extraPodSpec": pod(containers=[{"name": "main", "image": "x"}])
    },
    'spec.extraPodSpec.containers[0].env[1].name: duplicate variable "A"': {
        "extraPodSpec": pod(containers=[{"name": "s", "image": "x", "env": [{"name": "A"}, {"name": "A"}]}])
    },
    f'{MAIN}.env[1].name: duplicate variable "A"': {
        "extraPodSpec": pod({"env": [{"name": "A"}, {"name": "A"}]})
    },
    f"{MAIN}.ports[1].containerPort: duplicate port 80/TCP": {
        "extraPodSpec": pod({"ports": [{"containerPort": 80}, {"containerPort": 80}]})
    },
    "spec.livenessProbe: missing handler (expected one of exec, httpGet, tcpSocket, grpc)": {
        "livenessProbe": {"periodSeconds": 3}
    },
    "spec.readinessProbe: more than one handler: exec and tcpSocket": {
        "readinessProbe": {"exec": {"command": ["x"]}, "tcpSocket": {"port": 1}}
    },
    "spec.extraPodSpec.restartPolicy": {"extraPodSpec": pod(restartPolicy="Never")},
    "spec.extraPodSpec.containers: expected a list": {"extraPodSpec": pod(containers={"name": "x"})},
    f"{MAIN}.command: expected a list": {"extraPodSpec": pod({"command": "python3"})},
    "spec.envs[0].value: invalid JSON": {"envs": [{"name": "DYN_DEPLOYMENT_CONFIG", "value": "{"}]},
    "invalid JSON: it is nested too deeply": {
        "envs": [{"name": "DYN_DEPLOYMENT_CONFIG", "value": "[" * 200_000}]
    },
    "spec.envs[0].value[W].ServiceArgs.resources.gpu: expected a string": {
        "envs": [
            {"name": "DYN_DEPLOYMENT_CONFIG", "value": '{"W": {"ServiceArgs": {"resources": {"gpu": 1}}}}'}
        ]
    },
}


@pytest.mark.parametrize("expected", CASES)
def test_one_problem_is_reported(expected: str) -> None:
    reported = problems(**CASES[expected])
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
    "a plain component": a_service(),
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
    "a variable twice, the later one wins": {"envs": [{"name": "A"}, {"name": "A", "value": "x"}]},
    "an ingress that is off": {"ingress": {"enabled": False}},
    "nulls in the pod spec": {"extraPodSpec": pod({"args": None}, containers=None, volumes=None)},
}


@pytest.mark.parametrize("spec", FINE.values(), ids=FINE)
def test_this_is_fine(spec: Object) -> None:
    assert [] == problems(**spec)
