"""The fields of `nvidia.com/v1alpha1`."""

from dynamo_operator.versions import common_fields as common
from dynamo_operator.versions.pod_fields import (
    CONTAINER_FIELDS,
    ENVS,
    METADATA,
    OBJECTS,
    POD_SPEC,
    PROBE,
    RESOURCES,
    open_pointer,
)
from dynamo_operator.versions.shapes import (
    ANY_OBJECT,
    ANYTHING,
    FLAG,
    KEPT_FLAG,
    KEPT_INTEGER,
    KEPT_TEXT,
    QUANTITY,
    TEXT,
    TEXT_MAP,
    TEXTS,
    Fields,
    MapOf,
    Struct,
    items,
    pointer,
    value,
)

API_VERSION = "nvidia.com/v1alpha1"

_ITEM = pointer(cpu=TEXT, memory=TEXT, gpu=TEXT, gpuType=TEXT, custom=TEXT_MAP)
_SERVICE: Fields = {
    **common.COMPONENT,
    "annotations": TEXT_MAP,
    "labels": TEXT_MAP,
    "serviceName": TEXT,
    "componentType": TEXT,
    "subComponentType": TEXT,
    "dynamoNamespace": KEPT_TEXT,
    "autoscaling": ANY_OBJECT,
    "resources": pointer(requests=_ITEM, limits=_ITEM, claims=OBJECTS),
    "envs": ENVS,
    "envFromSecret": KEPT_TEXT,
    "volumeMounts": items(name=TEXT, mountPoint=TEXT, useAsCompilationCache=KEPT_FLAG),
    "ingress": pointer(
        enabled=KEPT_FLAG,
        host=TEXT,
        hostPrefix=KEPT_TEXT,
        hostSuffix=KEPT_TEXT,
        useVirtualService=KEPT_FLAG,
        virtualServiceGateway=KEPT_TEXT,
        annotations=TEXT_MAP,
        labels=TEXT_MAP,
        tls=pointer(secretName=TEXT),
        ingressControllerClassName=KEPT_TEXT,
    ),
    "sharedMemory": pointer(disabled=KEPT_FLAG, size=QUANTITY),
    "extraPodMetadata": pointer(annotations=TEXT_MAP, labels=TEXT_MAP),
    "extraPodSpec": open_pointer({**POD_SPEC, "mainContainer": open_pointer(CONTAINER_FIELDS)}),
    "livenessProbe": PROBE,
    "readinessProbe": PROBE,
    "scalingAdapter": pointer(enabled=KEPT_FLAG),
    "frontendSidecar": pointer(image=TEXT, args=TEXTS, envFromSecret=KEPT_TEXT, envs=ENVS),
    "gpuMemoryService": pointer(enabled=KEPT_FLAG, **common.GPU_MEMORY_SERVICE),
    "failover": pointer(enabled=KEPT_FLAG, **common.FAILOVER),
    "checkpoint": common.CHECKPOINT,
}
GRAPH_SPEC = value(
    **common.GRAPH,
    envs=ENVS,
    topologyConstraint=pointer(topologyProfile=TEXT, packDomain=TEXT),
    pvcs=items(
        create=KEPT_FLAG,
        name=KEPT_TEXT,
        storageClass=TEXT,
        size=QUANTITY,
        volumeAccessMode=TEXT,
        retain=KEPT_FLAG,  # ours
    ),
    services=MapOf(value(**_SERVICE), keeps_null=True),
)
COMPONENT_STATUS = pointer(componentName=TEXT, **common.COMPONENT_STATUS)
GRAPH_STATUS = value(
    **common.GRAPH_STATUS,
    rollingUpdate=pointer(updatedServices=TEXTS, **common.ROLLING_UPDATE),
    services=MapOf(COMPONENT_STATUS),
)
GRAPH = value(metadata=METADATA, spec=GRAPH_SPEC, status=GRAPH_STATUS)

COMPONENT_DEPLOYMENT_SPEC = value(**common.COMPONENT_DEPLOYMENT, **_SERVICE)
COMPONENT_DEPLOYMENT_STATUS = value(
    **common.COMPONENT_DEPLOYMENT_STATUS, podSelector=TEXT_MAP, service=COMPONENT_STATUS
)
COMPONENT_DEPLOYMENT = value(
    metadata=METADATA, spec=COMPONENT_DEPLOYMENT_SPEC, status=COMPONENT_DEPLOYMENT_STATUS
)

ADAPTER = value(
    metadata=METADATA,
    spec=value(replicas=KEPT_INTEGER, dgdRef=value(name=TEXT, serviceName=TEXT)),
    status=value(**common.ADAPTER_STATUS),
)

REQUEST_SPEC = value(
    **common.REQUEST,
    autoApply=FLAG,
    useMocker=KEPT_FLAG,
    enableGpuDiscovery=KEPT_FLAG,
    profilingConfig=Struct(
        {
            "profilerImage": TEXT,
            "config": ANYTHING,
            "configMapRef": pointer(name=TEXT, key=TEXT),
            "outputPVC": TEXT,
            "resources": open_pointer(RESOURCES.fields),
            "tolerations": OBJECTS,
            "nodeSelector": TEXT_MAP,
        },
        is_open=True,  # ours: how the Job runs
    ),
    deploymentOverrides=pointer(
        name=TEXT, namespace=TEXT, labels=TEXT_MAP, annotations=TEXT_MAP, workersImage=TEXT
    ),
)
REQUEST_STATUS = value(
    **common.REQUEST_STATUS,
    state=KEPT_TEXT,
    backend=TEXT,
    profilingResults=TEXT,
    generatedDeployment=ANYTHING,
    deployment=pointer(
        name=TEXT,
        namespace=TEXT,
        state=TEXT,
        created=FLAG,
        replicas=KEPT_INTEGER,  # ours
        availableReplicas=KEPT_INTEGER,  # ours
    ),
    profilingPhase=TEXT,  # ours
    profilingJobName=TEXT,  # ours
)
REQUEST = value(metadata=METADATA, spec=REQUEST_SPEC, status=REQUEST_STATUS)
