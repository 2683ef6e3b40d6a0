"""Fields that both versions have under the same name, with the same meaning.

Those marked as ours are not in the Go types; the Go operator drops them.
"""

from dynamo_operator.versions.pod_fields import OBJECTS
from dynamo_operator.versions.shapes import (
    ANY_OBJECT,
    ANYTHING,
    INTEGER,
    KEPT_FLAG,
    KEPT_INTEGER,
    KEPT_NUMBER,
    KEPT_TEXT,
    LONG,
    TEXT,
    TEXT_MAP,
    TEXTS,
    Fields,
    ListOf,
    MapOf,
    pointer,
    value,
)

COMPONENT: Fields = {
    "runtimeVersionOverride": TEXT,
    "globalDynamoNamespace": KEPT_FLAG,
    "replicas": KEPT_INTEGER,
    "minAvailable": KEPT_INTEGER,
    "multinode": pointer(nodeCount=KEPT_INTEGER),
    "modelRef": pointer(name=KEPT_TEXT, revision=TEXT),
    "topologyConstraint": pointer(packDomain=TEXT),
    "eppConfig": pointer(configMapRef=ANY_OBJECT, config=ANY_OBJECT),
    "disruptionBudget": ANY_OBJECT,  # ours
}

COMPONENT_DEPLOYMENT: Fields = {"backendFramework": TEXT}

CHECKPOINT = pointer(
    enabled=KEPT_FLAG,
    mode=TEXT,
    startupPolicy=TEXT,
    deletionPolicy=TEXT,
    checkpointRef=KEPT_TEXT,
    identity=pointer(
        model=TEXT,
        backendFramework=TEXT,
        dynamoVersion=TEXT,
        tensorParallelSize=INTEGER,
        pipelineParallelSize=INTEGER,
        dtype=TEXT,
        maxModelLen=INTEGER,
        extraParameters=TEXT_MAP,
    ),
    targetContainerName=TEXT,
    job=pointer(gmsClientContainers=TEXTS, podTemplate=ANY_OBJECT),
)
GPU_MEMORY_SERVICE: Fields = {
    "mode": TEXT,
    "deviceClassName": TEXT,
    "extraClientContainers": TEXTS,
    "extraClientPods": OBJECTS,
}
FAILOVER: Fields = {"mode": TEXT, "numShadows": INTEGER}

GRAPH: Fields = {
    "annotations": TEXT_MAP,
    "labels": TEXT_MAP,
    "priorityClassName": TEXT,
    "backendFramework": TEXT,
    "restart": pointer(id=TEXT, strategy=pointer(type=TEXT, order=TEXTS)),
    "experimental": pointer(
        kvTransferPolicy=pointer(
            domain=TEXT,
            clusterTopologyName=TEXT,
            labelKey=TEXT,
            enforcement=TEXT,
            preferredWeight=KEPT_NUMBER,
        )
    ),
    "replicas": KEPT_INTEGER,  # ours
    "progressDeadlineSeconds": KEPT_INTEGER,  # ours
}

STATUS: Fields = {"observedGeneration": LONG, "conditions": OBJECTS}
GRAPH_STATUS: Fields = {
    **STATUS,
    "state": KEPT_TEXT,
    "placement": pointer(score=KEPT_NUMBER, state=TEXT),
    "restart": pointer(observedID=TEXT, phase=TEXT, inProgress=TEXTS),
    "checkpoints": MapOf(value(checkpointName=TEXT, checkpointID=TEXT, identityHash=TEXT, ready=KEPT_FLAG)),
    "backendFramework": TEXT,  # ours, up to the end
    "gpus": KEPT_INTEGER,
    "progress": ANY_OBJECT,
    "readyServices": TEXT,
    "replicas": KEPT_INTEGER,
    "selector": TEXT,
}
COMPONENT_DEPLOYMENT_STATUS: Fields = {
    **STATUS,
    "selector": TEXT,  # ours
    "backendFramework": TEXT,  # ours
}
ROLLING_UPDATE: Fields = {
    "phase": TEXT,
    "startTime": TEXT,
    "endTime": TEXT,
    "fromHash": TEXT,  # ours
    "toHash": TEXT,  # ours
}
COMPONENT_STATUS: Fields = {
    "componentKind": TEXT,
    "componentNames": TEXTS,
    "runtimeNamespace": TEXT,
    "replicas": KEPT_INTEGER,
    "updatedReplicas": KEPT_INTEGER,
    "readyReplicas": KEPT_INTEGER,
    "availableReplicas": KEPT_INTEGER,
    "scheduledReplicas": KEPT_INTEGER,
    "reason": TEXT,  # ours, up to the end
    "message": TEXT,
    "blockedPods": OBJECTS,
}

ADAPTER_STATUS: Fields = {
    "replicas": KEPT_INTEGER,
    "selector": TEXT,
    "lastScaleTime": TEXT,
    "observedGeneration": LONG,  # ours, up to the end
    "conditions": OBJECTS,
    "desiredReplicas": KEPT_INTEGER,
}

REQUEST: Fields = {"model": TEXT, "backend": TEXT, "runtimeVersionOverride": TEXT}
REQUEST_STATUS: Fields = {
    **STATUS,
    "startTime": TEXT,  # ours, up to the end
    "completionTime": TEXT,
    "message": TEXT,
    "acceptedSpec": ANY_OBJECT,
    "additionalResources": ListOf(ANYTHING),
}
