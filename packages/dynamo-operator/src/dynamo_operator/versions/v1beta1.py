"""The fields of `nvidia.com/v1beta1`."""

from dynamo_operator.versions import common_fields as common
from dynamo_operator.versions.pod_fields import ENVS, METADATA, POD_TEMPLATE, open_pointer
from dynamo_operator.versions.shapes import (
    ANYTHING,
    KEPT_FLAG,
    KEPT_INTEGER,
    KEPT_NUMBER,
    KEPT_TEXT,
    QUANTITY,
    TEXT,
    TEXTS,
    Fields,
    MapOf,
    Struct,
    items,
    pointer,
    value,
)

API_VERSION = "nvidia.com/v1beta1"

_COMPONENT: Fields = {
    **common.COMPONENT,
    "name": TEXT,
    "type": TEXT,
    "podTemplate": POD_TEMPLATE,
    "sharedMemorySize": QUANTITY,
    "scalingAdapter": pointer(),
    "frontendSidecar": KEPT_TEXT,
    "compilationCache": pointer(pvcName=TEXT, mountPath=TEXT),
    "experimental": pointer(
        gpuMemoryService=pointer(**common.GPU_MEMORY_SERVICE),
        failover=pointer(**common.FAILOVER),
        grove=pointer(forceScalingGroup=KEPT_FLAG),
        checkpoint=common.CHECKPOINT,
    ),
}
GRAPH_SPEC = value(
    **common.GRAPH,
    env=ENVS,
    topologyConstraint=pointer(clusterTopologyName=TEXT, packDomain=TEXT),
    components=items(**_COMPONENT),
)
COMPONENT_STATUS = pointer(**common.COMPONENT_STATUS)
GRAPH_STATUS = value(
    **common.GRAPH_STATUS,
    rollingUpdate=pointer(updatedComponents=TEXTS, **common.ROLLING_UPDATE),
    components=MapOf(COMPONENT_STATUS),
)
GRAPH = value(metadata=METADATA, spec=GRAPH_SPEC, status=GRAPH_STATUS)

COMPONENT_DEPLOYMENT_SPEC = value(**common.COMPONENT_DEPLOYMENT, **_COMPONENT)
COMPONENT_DEPLOYMENT_STATUS = value(**common.COMPONENT_DEPLOYMENT_STATUS, component=COMPONENT_STATUS)
COMPONENT_DEPLOYMENT = value(
    metadata=METADATA, spec=COMPONENT_DEPLOYMENT_SPEC, status=COMPONENT_DEPLOYMENT_STATUS
)

ADAPTER = value(
    metadata=METADATA,
    spec=value(replicas=KEPT_INTEGER, dgdRef=value(name=TEXT, componentName=TEXT)),
    status=value(**common.ADAPTER_STATUS),
)

_JOB = open_pointer({"template": Struct(POD_TEMPLATE.fields)})
REQUEST_SPEC = value(
    **common.REQUEST,
    image=TEXT,
    autoApply=KEPT_FLAG,
    searchStrategy=TEXT,
    modelCache=pointer(pvcName=TEXT, pvcModelPath=TEXT, pvcMountPath=TEXT),
    hardware=pointer(
        gpuSku=TEXT,
        vramMb=KEPT_NUMBER,
        totalGpus=KEPT_INTEGER,
        numGpusPerNode=KEPT_INTEGER,
        interconnect=TEXT,
        rdma=KEPT_FLAG,
    ),
    workload=pointer(isl=KEPT_INTEGER, osl=KEPT_INTEGER, concurrency=KEPT_NUMBER, requestRate=KEPT_NUMBER),
    sla=pointer(ttft=KEPT_NUMBER, itl=KEPT_NUMBER, e2eLatency=KEPT_NUMBER, optimizationType=TEXT),
    overrides=pointer(profilingJob=_JOB, dgd=ANYTHING),
    features=pointer(planner=ANYTHING, mocker=pointer(enabled=KEPT_FLAG)),
)
REQUEST_STATUS = value(
    **common.REQUEST_STATUS,
    phase=KEPT_TEXT,
    profilingPhase=TEXT,
    profilingJobName=TEXT,
    dgdName=TEXT,
    profilingResults=pointer(pareto=items(config=ANYTHING), selectedConfig=ANYTHING),
    deploymentInfo=pointer(replicas=KEPT_INTEGER, availableReplicas=KEPT_INTEGER),
)
REQUEST = value(metadata=METADATA, spec=REQUEST_SPEC, status=REQUEST_STATUS)
