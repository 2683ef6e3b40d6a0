"""The keyword arguments of the builders, and the dictionaries in them, under names in snake case.

Written by `make docs` from the structs of the operator and the types of Kubernetes. Do not edit.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Required, TypedDict

if TYPE_CHECKING:
    import dynamo_operator.component.api
    import dynamo_operator.graph.api
    import dynamo_operator.requests.api

Json = Mapping[str, Any]
"""JSON with the names of the API, or with names in snake case."""


class DisruptionBudget(TypedDict, total=False):
    """How many pods of a component an eviction, such as the drain of a node, may take at a time."""

    min_available: int | str
    max_unavailable: int | str


class ResourceItem(TypedDict, total=False):
    """Requests or limits of a component."""

    cpu: str
    memory: str
    gpu: str
    gpu_type: str
    custom: Mapping[str, str]


class Resources(TypedDict, total=False):
    """Requests, limits and resource claims of a component."""

    requests: ResourceItem
    limits: ResourceItem
    claims: Sequence[Json]


class ConfigMapKeySelector(TypedDict, total=False):
    """`ConfigMapKeySelector` of Kubernetes."""

    key: Required[str]
    name: str
    optional: bool


class ObjectFieldSelector(TypedDict, total=False):
    """`ObjectFieldSelector` of Kubernetes."""

    api_version: str
    field_path: Required[str]


class FileKeySelector(TypedDict, total=False):
    """`FileKeySelector` of Kubernetes."""

    key: Required[str]
    optional: bool
    path: Required[str]
    volume_name: Required[str]


class ResourceFieldSelector(TypedDict, total=False):
    """`ResourceFieldSelector` of Kubernetes."""

    container_name: str
    divisor: int | str
    resource: Required[str]


class SecretKeySelector(TypedDict, total=False):
    """`SecretKeySelector` of Kubernetes."""

    key: Required[str]
    name: str
    optional: bool


class EnvVarSource(TypedDict, total=False):
    """`EnvVarSource` of Kubernetes."""

    config_map_key_ref: ConfigMapKeySelector
    field_ref: ObjectFieldSelector
    file_key_ref: FileKeySelector
    resource_field_ref: ResourceFieldSelector
    secret_key_ref: SecretKeySelector


class EnvVar(TypedDict, total=False):
    """`EnvVar` of Kubernetes."""

    name: Required[str]
    value: str
    value_from: EnvVarSource


class VolumeMount(TypedDict, total=False):
    """A PersistentVolumeClaim mounted into the main container."""

    name: str
    mount_point: str
    use_as_compilation_cache: bool


class IngressTls(TypedDict, total=False):
    """The certificate of an Ingress."""

    secret_name: str


class IngressSpec(TypedDict, total=False):
    """Exposes a component outside the cluster."""

    enabled: bool
    host: str
    use_virtual_service: bool
    virtual_service_gateway: str
    host_prefix: str
    annotations: Mapping[str, str]
    labels: Mapping[str, str]
    tls: IngressTls
    host_suffix: str
    ingress_controller_class_name: str


class ModelReference(TypedDict, total=False):
    """The base model that a component serves."""

    name: Required[str]
    revision: str


class SharedMemory(TypedDict, total=False):
    """The memory-backed volume at /dev/shm."""

    disabled: bool
    size: int | str


class ExtraPodMetadata(TypedDict, total=False):
    """Labels and annotations of the pods."""

    annotations: Mapping[str, str]
    labels: Mapping[str, str]


class ExecAction(TypedDict, total=False):
    """`ExecAction` of Kubernetes."""

    command: Sequence[str]


class GRPCAction(TypedDict, total=False):
    """`GRPCAction` of Kubernetes."""

    port: Required[int]
    service: str


class HTTPHeader(TypedDict, total=False):
    """`HTTPHeader` of Kubernetes."""

    name: Required[str]
    value: Required[str]


class HTTPGetAction(TypedDict, total=False):
    """`HTTPGetAction` of Kubernetes."""

    host: str
    http_headers: Sequence[HTTPHeader]
    path: str
    port: Required[int | str]
    scheme: str


class TCPSocketAction(TypedDict, total=False):
    """`TCPSocketAction` of Kubernetes."""

    host: str
    port: Required[int | str]


class Probe(TypedDict, total=False):
    """`Probe` of Kubernetes."""

    exec: ExecAction
    failure_threshold: int
    grpc: GRPCAction
    http_get: HTTPGetAction
    initial_delay_seconds: int
    period_seconds: int
    success_threshold: int
    tcp_socket: TCPSocketAction
    termination_grace_period_seconds: int
    timeout_seconds: int


class Multinode(TypedDict, total=False):
    """A component that spans several nodes."""

    node_count: int


class ScalingAdapterSwitch(TypedDict, total=False):
    """Whether a scaling adapter owns the replicas."""

    enabled: bool


class EppConfig(TypedDict, total=False):
    """Configuration of an endpoint picker: a ConfigMap or the document itself, not both."""

    config_map_ref: Json
    config: Json


class ComponentFields(TypedDict, total=False):
    """Fields of `ComponentSpec`; None removes a field."""

    runtime_version_override: str | None
    global_dynamo_namespace: bool | None
    replicas: int | None
    min_available: int | None
    disruption_budget: "DisruptionBudget | dynamo_operator.component.api.DisruptionBudget | None"
    annotations: Mapping[str, str] | None
    labels: Mapping[str, str] | None
    service_name: str | None
    component_type: str | None
    sub_component_type: str | None
    dynamo_namespace: str | None
    resources: "Resources | dynamo_operator.component.api.Resources | None"
    autoscaling: Json | None
    envs: Sequence[EnvVar | Json] | None
    env_from_secret: str | None
    volume_mounts: "Sequence[VolumeMount | dynamo_operator.component.api.VolumeMount] | None"
    ingress: "IngressSpec | dynamo_operator.component.api.IngressSpec | None"
    model_ref: "ModelReference | dynamo_operator.component.api.ModelReference | None"
    shared_memory: "SharedMemory | dynamo_operator.component.api.SharedMemory | None"
    extra_pod_metadata: "ExtraPodMetadata | dynamo_operator.component.api.ExtraPodMetadata | None"
    extra_pod_spec: Json | None
    liveness_probe: Probe | Json | None
    readiness_probe: Probe | Json | None
    multinode: "Multinode | dynamo_operator.component.api.Multinode | None"
    scaling_adapter: "ScalingAdapterSwitch | dynamo_operator.component.api.ScalingAdapterSwitch | None"
    epp_config: "EppConfig | dynamo_operator.component.api.EppConfig | None"
    frontend_sidecar: Json | None
    topology_constraint: Json | None
    gpu_memory_service: Json | None
    failover: Json | None
    checkpoint: Json | None


class PersistentVolumeClaim(TypedDict, total=False):
    """A PersistentVolumeClaim that the services of a graph may mount."""

    name: Required[str]
    create: bool
    storage_class: str
    size: int | str
    volume_access_mode: str
    retain: bool


class RestartStrategy(TypedDict, total=False):
    """The order in which services restart."""

    type: Literal["Sequential", "Parallel"]
    order: Sequence[str]


class Restart(TypedDict, total=False):
    """A request to restart the graph; a new id starts a new restart."""

    id: Required[str]
    strategy: RestartStrategy


class GraphFields(TypedDict, total=False):
    """Fields of `DynamoGraphDeploymentSpec`; None removes a field."""

    backend_framework: str | None
    priority_class_name: str | None
    progress_deadline_seconds: int | None
    pvcs: "Sequence[PersistentVolumeClaim | dynamo_operator.graph.api.PersistentVolumeClaimSpec] | None"
    envs: Sequence[EnvVar | Json] | None
    restart: "Restart | dynamo_operator.graph.api.Restart | None"
    replicas: int | None
    labels: Mapping[str, str] | None
    annotations: Mapping[str, str] | None
    topology_constraint: Json | None
    experimental: Json | None


class ConfigMapReference(TypedDict, total=False):
    """One key of a ConfigMap."""

    name: Required[str]
    key: str


class Toleration(TypedDict, total=False):
    """`Toleration` of Kubernetes."""

    effect: str
    key: str
    operator: str
    toleration_seconds: int
    value: str


class ProfilingConfig(TypedDict, total=False):
    """Settings of the profiling Job."""

    profiler_image: str
    config: Json
    config_map_ref: ConfigMapReference
    output_pvc: str
    resources: Json
    tolerations: Sequence[Toleration | Json]
    node_selector: Mapping[str, str]
    affinity: Json
    env: Sequence[EnvVar | Json]
    env_from: Sequence[Json]
    image_pull_secrets: Sequence[Json]
    service_account_name: str
    priority_class_name: str
    runtime_class_name: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    ttl_seconds_after_finished: int
    backoff_limit: int
    active_deadline_seconds: int


class DeploymentOverrides(TypedDict, total=False):
    """Changes to the generated graph after profiling."""

    name: str
    namespace: str
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    workers_image: str


class RequestFields(TypedDict, total=False):
    """Fields of `DynamoGraphDeploymentRequestSpec`; None removes a field."""

    profiling_config: "ProfilingConfig | dynamo_operator.requests.api.ProfilingConfig | None"
    use_mocker: bool | None
    enable_gpu_discovery: bool | None
    auto_apply: bool | None
    deployment_overrides: "DeploymentOverrides | dynamo_operator.requests.api.DeploymentOverrides | None"
    runtime_version_override: str | None
