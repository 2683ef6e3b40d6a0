"""DynamoComponentDeployment: one component of a graph, and the spec that it shares with a graph's services."""

from typing import Literal

from dynamo_operator.kube.kind import Kind, Object
from dynamo_operator.kube.types.meta import Condition, Resource, Struct

GROUP = "nvidia.com"
VERSION = "v1alpha1"

Framework = Literal["sglang", "vllm", "trtllm"]
Quantity = int | str


class ResourceItem(Struct):
    """Requests or limits of a component."""

    cpu: str | None = None
    memory: str | None = None
    gpu: str | None = None
    gpu_type: str | None = None
    custom: dict[str, str] = {}


class Resources(Struct):
    """Requests, limits and claims of a component."""

    requests: ResourceItem | None = None
    limits: ResourceItem | None = None
    claims: tuple[Object, ...] = ()


class VolumeMount(Struct):
    """A volume claim mounted into the main container."""

    name: str = ""
    mount_point: str | None = None
    use_as_compilation_cache: bool = False


class IngressTls(Struct):
    """The certificate of an Ingress."""

    secret_name: str | None = None


class IngressSpec(Struct):
    """How a component is reached from outside the cluster."""

    enabled: bool = False
    host: str | None = None
    use_virtual_service: bool = False
    virtual_service_gateway: str | None = None
    host_prefix: str | None = None
    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    tls: IngressTls | None = None
    host_suffix: str | None = None
    ingress_controller_class_name: str | None = None


class ModelReference(Struct):
    """The base model that a component serves."""

    name: str
    revision: str | None = None


class SharedMemory(Struct):
    """The memory-backed volume at /dev/shm."""

    disabled: bool = False
    size: Quantity | None = None


class ExtraPodMetadata(Struct):
    """Labels and annotations of the pods."""

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}


class Multinode(Struct):
    """A component that spans several nodes."""

    node_count: int = 2


class ScalingAdapterSwitch(Struct):
    """Whether a scaling adapter owns the replicas."""

    enabled: bool = False


class EppConfig(Struct):
    """Configuration of an endpoint picker."""

    config_map_ref: Object | None = None
    config: Object | None = None


class ComponentSpec(Struct):
    """The spec of one component, as a graph's service or as a DynamoComponentDeployment."""

    annotations: dict[str, str] = {}
    labels: dict[str, str] = {}
    service_name: str | None = None
    component_type: str | None = None
    sub_component_type: str | None = None
    dynamo_namespace: str | None = None
    global_dynamo_namespace: bool = False
    resources: Resources | None = None
    autoscaling: Object | None = None
    envs: tuple[Object, ...] = ()
    env_from_secret: str | None = None
    volume_mounts: tuple[VolumeMount, ...] = ()
    ingress: IngressSpec | None = None
    model_ref: ModelReference | None = None
    shared_memory: SharedMemory | None = None
    extra_pod_metadata: ExtraPodMetadata | None = None
    extra_pod_spec: Object | None = None
    liveness_probe: Object | None = None
    readiness_probe: Object | None = None
    replicas: int | None = None
    multinode: Multinode | None = None
    scaling_adapter: ScalingAdapterSwitch | None = None
    epp_config: EppConfig | None = None


class DynamoComponentDeploymentSpec(ComponentSpec):
    """A component spec with the backend framework of its graph."""

    backend_framework: Framework | None = None


class ServiceReplicaStatus(Struct, omit_defaults=False):
    """Replica counts of one component's workload, as observed."""

    component_kind: Literal[
        "PodClique", "PodCliqueScalingGroup", "Deployment", "LeaderWorkerSet"
    ]
    component_name: str
    replicas: int
    updated_replicas: int
    ready_replicas: int | None = None
    available_replicas: int | None = None


class DynamoComponentDeploymentStatus(Struct):
    """What is true of a component now."""

    observed_generation: int = 0
    conditions: tuple[Condition, ...] = ()
    pod_selector: dict[str, str] = {}
    service: ServiceReplicaStatus | None = None


class DynamoComponentDeployment(Resource):
    """One component: a workload and the objects around it."""

    KIND = Kind(GROUP, VERSION, "DynamoComponentDeployment", "dynamocomponentdeployments")

    spec: DynamoComponentDeploymentSpec = DynamoComponentDeploymentSpec()
    status: DynamoComponentDeploymentStatus = DynamoComponentDeploymentStatus()
