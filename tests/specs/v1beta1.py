"""Objects in v1beta1 that the CRDs accept or refuse, and the words with which they refuse them.

The same cases are checked offline and sent to a real API server.
"""

from dataclasses import dataclass
from typing import Any

from kube_runtime.types.meta import Object

GRAPH, COMPONENT = "DynamoGraphDeployment", "DynamoComponentDeployment"
REQUEST, ADAPTER = "DynamoGraphDeploymentRequest", "DynamoGraphDeploymentScalingAdapter"
_ENGINE = {"name": "main", "image": "r/vllm:1.2.0", "args": ["run"]}


@dataclass(frozen=True, slots=True)
class Case:
    """A spec, and what the refusal says; "" if it is accepted. With `before` the spec replaces that one."""

    kind: str
    spec: Any
    refused: str = ""
    before: Any = None

    @property
    def document(self) -> Object:
        metadata = {"name": "x", "namespace": "default"}
        return {
            "apiVersion": "nvidia.com/v1beta1",
            "kind": self.kind,
            "metadata": metadata,
            "spec": self.spec,
        }


def component(**fields: Any) -> Object:
    return {"name": "Decode", "type": "decode", **fields}


def containers(*others: Object, **pod: Any) -> Object:
    """A pod template with these containers beside the main one."""
    return {"podTemplate": {"spec": {"containers": [_ENGINE, *others], **pod}}}


def graph(*components: Object, refused: str = "", before: Any = None, **spec: Any) -> Case:
    return Case(GRAPH, {"components": list(components or [component()]), **spec}, refused, before)


def alone(refused: str = "", /, before: Any = None, **fields: Any) -> Case:
    return Case(COMPONENT, fields, refused, before)


def experimental(refused: str = "", /, **fields: Any) -> Case:
    return graph(component(experimental=fields), refused=refused)


def policy(refused: str = "", /, **fields: Any) -> Case:
    return graph(experimental={"kvTransferPolicy": {"domain": "rack", **fields}}, refused=refused)


_EXECUTOR = "nvidia.com/vllm-distributed-executor-backend"
_RESTART = "spec.restart must be unset on create; set spec.restart.id after creation to request a restart"
_MIN_AVAILABLE = "minAvailable must be less than or equal to replicas unless replicas is 0"
_KEPT = "minAvailable is immutable after creation"
_EPP = {"configMapRef": {"name": "c", "key": "k"}}
_IDENTITY = {"model": "m", "backendFramework": "vllm"}
_ONE_KEY = "exactly one of labelKey or clusterTopologyName is required"


def _annotated(value: str) -> Object:
    return {"podTemplate": {"metadata": {"annotations": {_EXECUTOR: value}}, "spec": {"containers": []}}}


CASES: dict[str, Case] = {
    "a graph": graph(component(), component(name="Frontend", type="frontend"), backendFramework="vllm"),
    "no components": Case(GRAPH, {}),
    "a component without a name": graph({"type": "worker"}, refused="spec.components[0].name"),
    "a name with a dot": graph(component(name="a.b"), refused="spec.components[0].name"),
    "a name of 64 characters": graph(component(name="a" * 64), refused="spec.components[0].name"),
    "a type of v1alpha1": graph(component(type="main"), refused="spec.components[0].type"),
    "a field of v1alpha1": graph(component(componentType="worker"), refused="componentType"),
    "a framework": graph(backendFramework="tgi", refused="spec.backendFramework"),
    "25 components": graph(*(component(name=f"c{number}") for number in range(25))),
    "26 components": graph(*(component(name=f"c{number}") for number in range(26)), refused="25"),
    "a name twice": graph(component(), component(), refused="uplicate"),
    "names that differ in case": graph(
        component(), component(name="decode"), refused="component names must be unique case-insensitively"
    ),
    "two pickers": graph(
        *(component(name=name, type="epp", eppConfig=_EPP) for name in ("a", "b")),
        refused="at most one component may have type epp",
    ),
    "a picker": graph(component(type="epp", eppConfig=_EPP)),
    "a picker with a document": graph(
        component(
            type="epp",
            eppConfig={
                "config": {
                    "plugins": [{"type": "t", "parameters": {"a": [1]}}],
                    "schedulingProfiles": [],
                    "later": 1,
                }
            },
        )
    ),
    "a configuration without a picker": graph(
        component(eppConfig=_EPP), refused="eppConfig may only be set when type is epp"
    ),
    "no configuration": graph(
        component(type="epp", eppConfig={}), refused="exactly one of configMapRef or config must be specified"
    ),
    "a restart of a new graph": graph(restart={"id": "1"}, refused=_RESTART),
    "a restart later": graph(restart={"id": "1"}, before={"components": [component()]}),
    "a restart without an id": graph(
        restart={"id": ""}, before={"components": [component()]}, refused="spec.restart.id"
    ),
    "a topology": graph(topologyConstraint={"clusterTopologyName": "t", "packDomain": "zone"}),
    "a topology without a name": graph(topologyConstraint={"packDomain": "z"}, refused="clusterTopologyName"),
    "a domain": graph(component(topologyConstraint={"packDomain": "Rack"}), refused="packDomain"),
    "a policy by label": policy(labelKey="topology.kubernetes.io/rack"),
    "a policy by topology": policy(clusterTopologyName="t"),
    "a policy by neither": policy(_ONE_KEY),
    "a policy by both": policy(_ONE_KEY, labelKey="a", clusterTopologyName="t"),
    "a policy with a weight": policy(labelKey="a", enforcement="preferred", preferredWeight=0.5),
    "a weight is missing": policy(
        "preferredWeight is required when enforcement is preferred", labelKey="a", enforcement="preferred"
    ),
    "a weight too many": policy(
        "preferredWeight may only be set when enforcement is preferred", labelKey="a", preferredWeight=0.5
    ),
    "a weight over 1": policy("preferredWeight", labelKey="a", enforcement="preferred", preferredWeight=1.5),
    "a label with a long prefix": policy(
        "labelKey prefix must be 253 characters or less", labelKey=f"{'a.' * 127}a/b"
    ),
    "fewer must run": graph(component(replicas=3, minAvailable=2)),
    "all must run, without a number": graph(component(minAvailable=1)),
    "more must run than there are": graph(component(replicas=2, minAvailable=3), refused=_MIN_AVAILABLE),
    "two must run, without a number": graph(component(minAvailable=2), refused=_MIN_AVAILABLE),
    "none run": graph(component(replicas=0, minAvailable=3)),
    "how many must run, later": graph(component(minAvailable=1), before={"components": [component()]}),
    "how many must run, changed": graph(
        component(replicas=2, minAvailable=2),
        before={"components": [component(replicas=2, minAvailable=1)]},
        refused=_KEPT,
    ),
    "how many must run, removed": graph(
        component(), before={"components": [component(minAvailable=1)]}, refused=_KEPT
    ),
    "a sidecar": graph(component(**containers({"name": "side", "image": "r/side:1"}))),
    "a sidecar without an image": graph(
        component(**containers({"name": "side"})), refused="sidecar containers must specify a non-empty image"
    ),
    "a main container without an image": graph(
        component(podTemplate={"spec": {"containers": [{"name": "main"}]}})
    ),
    "an init container without an image": graph(
        component(**containers(initContainers=[{"name": "i"}])),
        refused="init containers must specify a non-empty image",
    ),
    "a container twice": graph(component(**containers(_ENGINE)), refused="uplicate"),
    "a template without containers": graph(component(podTemplate={"spec": {}}), refused="containers"),
    "an unknown field of pods": graph(component(**containers(nodeSelectr={})), refused="nodeSelectr"),
    "an executor": graph(component(**_annotated("Ray"))),
    "an unknown executor": graph(
        component(**_annotated("dask")),
        refused="podTemplate backend annotation must be mp or ray, case-insensitively",
    ),
    "one node": graph(component(multinode={"nodeCount": 1}), refused="nodeCount"),
    "shared memory": graph(component(sharedMemorySize="16Gi"), component(name="b", sharedMemorySize=0)),
    "shared memory in words": graph(component(sharedMemorySize="much"), refused="sharedMemorySize"),
    "a version": graph(component(runtimeVersionOverride="1.2.3")),
    "a version with a letter": graph(
        component(runtimeVersionOverride="v1.2.3"), refused="runtimeVersionOverride"
    ),
    "an adapter and a cache": graph(component(scalingAdapter={}, compilationCache={"pvcName": "c"})),
    "a cache without a PVC": graph(component(compilationCache={"pvcName": ""}), refused="pvcName"),
    "GPU memory": experimental(
        gpuMemoryService={"extraClientContainers": ["side"]}, failover={}, grove={"forceScalingGroup": True}
    ),
    "a client in another mode": experimental(
        "extraClientContainers is only supported with mode=IntraPod",
        gpuMemoryService={"mode": "InterPod", "extraClientContainers": ["side"]},
    ),
    "a client twice": experimental("uplicate", gpuMemoryService={"extraClientContainers": ["a", "a"]}),
    "a pod as a client": experimental(
        "extraClientPods is only supported with mode=InterPod",
        gpuMemoryService={"extraClientPods": [{"name": "a", "podTemplate": {"any": 1}}]},
    ),
    "a pod as a client, in its mode": experimental(
        "extraClientPods is reserved for inter-pod GMS and is not implemented yet",
        gpuMemoryService={"mode": "InterPod", "extraClientPods": [{"name": "a", "podTemplate": {}}]},
    ),
    "a mode of v1alpha1": experimental("mode", gpuMemoryService={"mode": "intraPod"}),
    "two shadows": experimental("numShadows", failover={"numShadows": 2}),
    "a component with two shadows": alone(experimental={"failover": {"numShadows": 2}}),
    "a checkpoint": experimental(checkpoint={"enabled": True, "identity": _IDENTITY}),
    "a checkpoint without a switch": experimental("enabled", checkpoint={"identity": _IDENTITY}),
    "a checkpoint of no model": experimental(
        "model", checkpoint={"enabled": True, "identity": {**_IDENTITY, "model": ""}}
    ),
    "a checkpoint with a Job": experimental(
        "checkpoint.job cannot be set when checkpointRef is specified",
        checkpoint={"enabled": True, "checkpointRef": "c", "job": {}},
    ),
    "a component on its own": alone(type="worker", backendFramework="sglang", **containers()),
    "a component with nothing": alone(),
    "a component with a configuration": alone(
        "eppConfig may only be set when type is epp", type="worker", eppConfig=_EPP
    ),
    "a component, how many must run": alone(_KEPT, {"minAvailable": 1}, name="c"),
    "a request": Case(REQUEST, {"model": "m"}),
    "a request without a model": Case(REQUEST, {}, "spec.model"),
    "a request for no model": Case(REQUEST, {"model": ""}, "spec.model"),
    "a request for unknown GPUs": Case(REQUEST, {"model": "m", "hardware": {"gpuSku": "x"}}, "gpuSku"),
    "a request with its Job": Case(
        REQUEST,
        {
            "model": "m",
            "hardware": {"gpuSku": "h100_sxm", "vramMb": 81920, "rdma": True},
            "workload": {"requestRate": 1.5},
            "sla": {"ttft": 100, "e2eLatency": 0.5, "optimizationType": "latency"},
            "overrides": {
                "profilingJob": {"template": {"spec": {"containers": [{"name": ""}]}}},
                "dgd": {"apiVersion": "nvidia.com/v1beta1", "kind": GRAPH, "spec": {"any": 1}},
            },
            "features": {"planner": {"any": 1}, "mocker": {"enabled": True}},
        },
    ),
    "a Job without a template": Case(
        REQUEST, {"model": "m", "overrides": {"profilingJob": {}}}, "profilingJob.template"
    ),
    "a part of something without a kind": Case(REQUEST, {"model": "m", "overrides": {"dgd": {}}}, "kind"),
    "an adapter": Case(ADAPTER, {"replicas": 0, "dgdRef": {"name": "g", "componentName": "c"}}),
    "an adapter of v1alpha1": Case(
        ADAPTER, {"replicas": 0, "dgdRef": {"name": "g", "serviceName": "c"}}, "serviceName"
    ),
}
"""By what the case shows."""

DEFAULTED: dict[str, tuple[str, Object, Object]] = {
    "nodes": (COMPONENT, {"multinode": {}}, {"multinode": {"nodeCount": 2}}),
    "GPU memory": (
        COMPONENT,
        {"experimental": {"gpuMemoryService": {}, "failover": {}}},
        {
            "experimental": {
                "gpuMemoryService": {"mode": "IntraPod", "deviceClassName": "gpu.nvidia.com"},
                "failover": {"mode": "IntraPod", "numShadows": 1},
            }
        },
    ),
    "a request": (
        REQUEST,
        {"model": "m", "workload": {}, "modelCache": {}},
        {
            "model": "m",
            "backend": "auto",
            "searchStrategy": "rapid",
            "autoApply": True,
            "workload": {"isl": 4000, "osl": 1000},
            "modelCache": {"pvcMountPath": "/opt/model-cache"},
        },
    ),
}
"""Kind, spec, and the spec as it is stored."""
