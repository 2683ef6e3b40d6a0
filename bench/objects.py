"""Objects as an API server sends them, for measurements without one."""

from datetime import UTC, datetime
from typing import Any

import msgspec

from cluster.graph.graphs import graph as graph_body
from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.component.render import component_parts
from dynamo_operator.features.decision import GraphInputs
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.graph.decide import decide_valid
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import Facts
from kube_runtime.types.kinds import Deployment
from kube_runtime.types.meta import Object, R, Resource, controller_reference

NAMESPACE = "default"


def graph(name: str = "chat") -> DynamoGraphDeployment:
    """A graph of three services."""
    return _stored(DynamoGraphDeployment, graph_body(name), None)


def component(name: str = "chat") -> DynamoComponentDeployment:
    """The decode worker of that graph."""
    owner, settings = graph(name), RenderSettings()
    objects = decide_valid(owner, GraphInputs(Facts()), settings, datetime.now(UTC)).objects
    components = [desired for desired in objects if desired["kind"] == DynamoComponentDeployment.KIND.name]
    return _stored(DynamoComponentDeployment, components[0], owner)


def deployment(name: str = "chat") -> Deployment:
    """The Deployment of that worker."""
    owner = component(name)
    _, (workload,) = component_parts(owner, Facts(), RenderSettings())
    return _stored(Deployment, workload, owner)


def pod_json(number: int = 0, graphs: int = 1) -> bytes:
    """A ready pod, including what the operator never reads: volumes, tolerations, managed fields."""
    workload = deployment(f"g{number % graphs}")
    spec = msgspec.json.decode(workload.spec)["template"]
    name = f"{workload.metadata.name}-7d9f6c5b4-{number:05}"
    return msgspec.json.encode(
        {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                **spec["metadata"],
                "name": name,
                "namespace": NAMESPACE,
                "uid": f"00000000-0000-4000-8000-{number:012}",
                "resourceVersion": str(1000 + number),
                "creationTimestamp": _TIME,
                "ownerReferences": [{"kind": "ReplicaSet", "name": name[:-6], "uid": "rs"}],
                "managedFields": _managed_fields(),
            },
            "spec": {**spec["spec"], "nodeName": f"gpu-{number % 100}", "tolerations": _TOLERATIONS},
            "status": {
                "phase": "Running",
                "conditions": [
                    {"type": type_, "status": "True", "lastTransitionTime": _TIME}
                    for type_ in ("Initialized", "Ready", "ContainersReady", "PodScheduled")
                ],
                "containerStatuses": [
                    {
                        "name": "main",
                        "ready": True,
                        "started": True,
                        "restartCount": 0,
                        "image": "nvcr.io/nvidia/ai-dynamo/vllm-runtime:0.9.0",
                        "imageID": f"sha256:{number:064}",
                        "containerID": f"containerd://{number:064}",
                        "state": {"running": {"startedAt": _TIME}},
                    }
                ],
                "podIP": "10.0.0.1",
                "startTime": _TIME,
            },
        }
    )


_TIME = "2026-01-01T00:00:00Z"
_TOLERATIONS = [
    {"key": f"node.kubernetes.io/{key}", "operator": "Exists", "effect": "NoExecute"}
    for key in ("not-ready", "unreachable")
]


def _managed_fields() -> list[Object]:
    fields: Object = {f"f:{name}": {".": {}} for name in (labels.COMPONENT, labels.GRAPH, "a", "b")}
    return [
        {
            "manager": manager,
            "operation": "Update",
            "apiVersion": "v1",
            "time": _TIME,
            "fieldsType": "FieldsV1",
            "fieldsV1": {"f:metadata": {"f:labels": fields}, "f:spec": fields},
        }
        for manager in ("kube-controller-manager", "kubelet")
    ]


def _stored(type_: type[R], body: Object, owner: Resource | None) -> R:
    references = [controller_reference(owner, owner.KIND)] if owner else []
    metadata: dict[str, Any] = {
        **body["metadata"],
        "namespace": NAMESPACE,
        "uid": f"uid-of-{body['metadata']['name']}",
        "resourceVersion": "1",
        "generation": 1,
        "ownerReferences": references,
    }
    return msgspec.json.decode(msgspec.json.encode({**body, "metadata": metadata}), type=type_)
