"""Statuses of all kinds, good and bad, with the document that they belong to."""

from cluster.api.documents import document, graph, request
from dynamo_operator.crds import RESOURCES
from kube_runtime.types.meta import Object

TYPES = {resource.KIND.name: resource for resource in RESOURCES}
CONDITION: Object = {
    "type": "Ready",
    "status": "True",
    "reason": "AllReady",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}
SERVICE: Object = {"componentKind": "Deployment", "componentName": "g-a", "replicas": 0, "updatedReplicas": 0}
GRAPH = graph({})
COMPONENT = document("DynamoComponentDeployment", {})
REQUEST = request()
MODEL = document("DynamoModel", {"modelName": "m", "baseModelName": "b"})

GOOD: dict[str, tuple[Object, Object]] = {
    "an empty status of a graph": (GRAPH, {}),
    "conditions": (GRAPH, {"conditions": [CONDITION, {**CONDITION, "type": "Later"}]}),
    "the longest message": (GRAPH, {"conditions": [{**CONDITION, "message": "m" * 32768}]}),
    "conditions of one type twice": (GRAPH, {"conditions": [CONDITION, CONDITION]}),
    "replica counts": (GRAPH, {"observedGeneration": 2**40, "services": {"A": SERVICE}}),
    "a component without conditions yet": (COMPONENT, {"conditions": []}),
    "a component": (COMPONENT, {"conditions": [CONDITION], "service": SERVICE}),
    "a generated graph": (
        REQUEST,
        {"generatedDeployment": {**GRAPH, "spec": {"unknown": [None], "services": {}}}},
    ),
    "a model without endpoints": (MODEL, {"readyEndpoints": 0, "totalEndpoints": 0}),
    "a model": (
        MODEL,
        {
            "readyEndpoints": 0,
            "totalEndpoints": 1,
            "endpoints": [{"address": "http://10.0.0.1:9090", "ready": False}],
        },
    ),
}
BAD: dict[str, tuple[Object, Object]] = {
    "a condition without reason": (GRAPH, {"conditions": [{**CONDITION, "reason": ""}]}),
    "a reason in words": (GRAPH, {"conditions": [{**CONDITION, "reason": "not ready"}]}),
    "a long message": (GRAPH, {"conditions": [{**CONDITION, "message": "m" * 32769}]}),
    "an odd type": (GRAPH, {"conditions": [{**CONDITION, "type": "a b"}]}),
    "an odd truth": (GRAPH, {"conditions": [{**CONDITION, "status": "true"}]}),
    "a time in words": (GRAPH, {"conditions": [{**CONDITION, "lastTransitionTime": "now"}]}),
    "an unknown workload": (GRAPH, {"services": {"A": {**SERVICE, "componentKind": ""}}}),
    "a negative count": (GRAPH, {"services": {"A": {**SERVICE, "readyReplicas": -1}}}),
    "counts without kind": (GRAPH, {"services": {"A": {"replicas": 0}}}),
    "a component without conditions": (COMPONENT, {"observedGeneration": 1}),
    "a generated graph with an odd name": (
        REQUEST,
        {"generatedDeployment": {**GRAPH, "metadata": {"name": 1}}},
    ),
    "a model without counts": (MODEL, {"endpoints": []}),
    "an endpoint without address": (
        MODEL,
        {"readyEndpoints": 0, "totalEndpoints": 1, "endpoints": [{"ready": True}]},
    ),
}
