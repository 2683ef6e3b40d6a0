"""DynamoComponentDeployment: one component of a graph, or one on its own."""

from dataclasses import dataclass
from typing import Annotated, ClassVar, Literal

import msgspec
from msgspec.structs import replace

from dynamo_operator.features.experimental.api import Checkpoint, Failover, GpuMemoryService
from kube_runtime.crd import (
    AGE,
    Column,
    Definition,
    Field,
    IntOrPercent,
    Quantity,
    Rule,
    Rules,
    Scale,
    Transition,
    Transitions,
    immutable,
)
from kube_runtime.types.meta import Condition, Kind, Object, Resource, Status, Struct

MAX_GROUPS = 1000
"""Most replicas of a multinode component: each is one object, and one reconcile creates all of them."""


class ResourceItem(Struct):
    """Requests or limits of a component."""

    cpu: Annotated[str | None, Field("CPU, such as `2` or `500m`.")] = None
    memory: Annotated[str | None, Field("Memory, such as `16Gi`.")] = None
    gpu: Annotated[
        str | None, Field("Number of GPUs of each pod; a multinode component gets this many on each node.")
    ] = None
    gpu_type: Annotated[
        str | None,
        Field(
            "Resource name under which `gpu` is requested, such as `gpu.intel.com/xe`. Left out, "
            "it is `nvidia.com/gpu`."
        ),
    ] = None
    custom: Annotated[
        dict[str, str], Field("Further resources by their Kubernetes name, such as `rdma/ib`.")
    ] = {}


class Resources(Struct):
    """Requests, limits and resource claims of a component."""

    requests: Annotated[ResourceItem | None, Field("Resources that the scheduler reserves for each pod.")] = (
        None
    )
    limits: Annotated[ResourceItem | None, Field("Most resources that each pod may use.")] = None
    claims: Annotated[
        tuple[Object, ...],
        Field("Resource claims of the pod that the main container uses.", embeds="ResourceClaim"),
    ] = ()


DEFAULT_HOST_SUFFIX = "local"
MESH = "mesh"
"""Istio's reserved gateway name for all sidecars in the mesh."""


class IngressTls(Struct):
    """The certificate of an Ingress."""

    secret_name: Annotated[
        str | None, Field("Secret of type `kubernetes.io/tls` with the certificate and its key.")
    ] = None


class IngressSpec(Struct):
    """Exposes a component outside the cluster."""

    enabled: Annotated[bool, Field("Create an Ingress, or a VirtualService, for the component.")] = False
    host: Annotated[str | None, Field("Host name, between `hostPrefix` and `hostSuffix`.")] = None
    use_virtual_service: Annotated[bool, Field("Create an Istio VirtualService in place of an Ingress.")] = (
        False
    )
    virtual_service_gateway: Annotated[
        str | None, Field("Istio gateway of the VirtualService, which is not created without it.")
    ] = None
    host_prefix: Annotated[
        str | None, Field("Text put directly in front of `host`; no separator is added.")
    ] = None
    annotations: Annotated[dict[str, str], Field("Annotations of the Ingress or VirtualService.")] = {}
    labels: Annotated[dict[str, str], Field("Labels of the Ingress or VirtualService.")] = {}
    tls: Annotated[IngressTls | None, Field("Certificate with which the Ingress answers HTTPS.")] = None
    host_suffix: Annotated[str | None, Field("Domain after `host` and a dot. Left out, it is `local`.")] = (
        None
    )
    ingress_controller_class_name: Annotated[
        str | None, Field("Ingress class, such as `nginx`. Without it no Ingress is created.")
    ] = None


def ingress_host(ingress: IngressSpec) -> str:
    """Return the host name of an Ingress: prefix and host without a separator, a dot, the suffix."""
    suffix = ingress.host_suffix or DEFAULT_HOST_SUFFIX
    return f"{ingress.host_prefix or ''}{ingress.host or ''}.{suffix}"


class EppPlugin(Struct):
    """One plugin of the endpoint picker."""

    type: Annotated[str, Field("Type of the plugin, under which the endpoint picker knows it.")]
    name: Annotated[
        str | None, Field("Name that scheduling profiles refer to. Left out, it is the type.")
    ] = None
    parameters: Annotated[
        msgspec.Raw | None, Field("Parameters of the plugin, in its own form.", free_form=True)
    ] = None


class EppPluginReference(Struct):
    """One use of a plugin in a scheduling profile."""

    plugin_ref: Annotated[str, Field("Name of the plugin.")]
    weight: Annotated[
        int | None, Field("Weight of the plugin's score against the others.", format="int64")
    ] = None


class EppSchedulingProfile(Struct):
    """A named selection of plugins."""

    name: Annotated[str, Field("Name of the profile.")]
    plugins: Annotated[
        tuple[EppPluginReference, ...], Field("Plugins that take part, in order.", required=True)
    ] = ()


class EndpointPickerConfig(Struct):
    """An EndpointPickerConfig document of the Gateway API inference extension."""

    # Another project's document: only fields that every version requires are declared, others are kept.

    plugins: Annotated[tuple[EppPlugin, ...], Field("Plugins that are created.", required=True)] = ()
    scheduling_profiles: Annotated[
        tuple[EppSchedulingProfile, ...], Field("Profiles by which requests are scheduled.", required=True)
    ] = ()
    api_version: Annotated[
        str | None, Field("API version of the document, such as `inference.networking.x-k8s.io/v1alpha1`.")
    ] = None
    kind: Annotated[str | None, Field("Kind of the document, `EndpointPickerConfig`.")] = None


class EppConfig(Struct):
    """Configuration of an endpoint picker: a ConfigMap or the document itself, not both."""

    config_map_ref: Annotated[
        Object | None, Field("Key of a ConfigMap that holds the document.", embeds="ConfigMapKeySelector")
    ] = None
    config: Annotated[
        Object | None,
        Field(
            "The document itself; the operator keeps it in a ConfigMap of its own. Fields that are "
            "not listed here are kept.",
            shape=EndpointPickerConfig,
            free_form=True,
        ),
    ] = None


class VolumeMount(Struct):
    """A PersistentVolumeClaim mounted into the main container."""

    name: Annotated[str, Field("Name of the PVC; for a graph, one of `spec.pvcs`.", required=True)] = ""
    mount_point: Annotated[
        str | None,
        Field(
            "Directory in the container. A compilation cache has a default for each backend; any "
            "other volume needs it."
        ),
    ] = None
    use_as_compilation_cache: Annotated[
        bool,
        Field(
            "Store the backend's compiled kernels on this volume, so that pods start faster the next time.",
            default=False,
        ),
    ] = False


class ModelReference(Struct):
    """The base model that a component serves."""

    name: Annotated[
        str,
        Field(
            "Name of the base model. DynamoModels with the same `baseModelName` find the "
            "component's pods through a headless Service."
        ),
    ]
    revision: Annotated[
        str | None, Field("Revision of the model, for your own records; nothing reads it.")
    ] = None


class SharedMemory(Struct):
    """The memory-backed volume at /dev/shm."""

    disabled: Annotated[bool, Field("Mount no such volume.")] = False
    size: Annotated[
        Quantity | None,
        Field("Size of the volume; required unless it is disabled. Without `sharedMemory` it is `8Gi`."),
    ] = None


class ExtraPodMetadata(Struct):
    """Labels and annotations of the pods."""

    annotations: Annotated[dict[str, str], Field("Annotations of the pods.")] = {}
    labels: Annotated[
        dict[str, str], Field("Labels of the pods; those that the operator selects by win.")
    ] = {}


class Multinode(Struct):
    """A component that spans several nodes."""

    node_count: Annotated[
        int,
        Field(
            "Number of nodes of each replica. The GPUs of one replica are this number times "
            "`resources.limits.gpu`.",
            minimum=2,
            format="int32",
            default=2,
            required=True,
        ),
    ] = 2


class DisruptionBudget(Struct):
    """How many pods of a component an eviction, such as the drain of a node, may take at a time."""

    RULES: ClassVar[Rules] = (
        Rule(
            "!(has(self.minAvailable) && has(self.maxUnavailable))",
            "minAvailable and maxUnavailable cannot both be set",
            lambda budget: not ("minAvailable" in budget and "maxUnavailable" in budget),
        ),
    )

    min_available: Annotated[
        IntOrPercent | None, Field("Pods that must stay: a number, or a percentage of the replicas.")
    ] = None
    max_unavailable: Annotated[
        IntOrPercent | None, Field("Pods that may be missing: a number, or a percentage of the replicas.")
    ] = None


class ScalingAdapterSwitch(Struct):
    """Whether a scaling adapter owns the replicas."""

    enabled: Annotated[
        bool,
        Field(
            "Create a DynamoGraphDeploymentScalingAdapter for the service and let it own `replicas`. "
            "Otherwise set `replicas` yourself.",
            default=False,
        ),
    ] = False


class Autoscaling(Struct):
    """Deprecated and ignored; use `scalingAdapter` with an autoscaler of your choice."""

    enabled: Annotated[bool | None, Field("Deprecated and ignored.")] = None
    min_replicas: Annotated[int | None, Field("Deprecated and ignored.", format="int64")] = None
    max_replicas: Annotated[int | None, Field("Deprecated and ignored.", format="int64")] = None
    behavior: Annotated[
        Object | None, Field("Deprecated and ignored.", embeds="HorizontalPodAutoscalerBehavior")
    ] = None
    metrics: Annotated[tuple[Object, ...], Field("Deprecated and ignored.", embeds="MetricSpec")] = ()


class FrontendSidecar(Struct):
    """A frontend that runs as a container of the component's pods."""

    image: Annotated[str, Field("Image of the container.")]
    args: Annotated[tuple[str, ...], Field("Arguments of the frontend.")] = ()
    env_from_secret: Annotated[
        str | None, Field("Secret whose keys all become environment variables of the container.")
    ] = None
    envs: Annotated[
        tuple[Object, ...], Field("Environment variables of the container.", embeds="EnvVar")
    ] = ()


RUNTIME_VERSION_PATTERN = r"^(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})\.(0|[1-9][0-9]{0,3})$"
TOPOLOGY_DOMAIN_PATTERN = r"^[a-z0-9]([a-z0-9-]*[a-z0-9])?$"


class TopologyConstraint(Struct):
    """A topology domain that all pods of a replica share."""

    pack_domain: Annotated[str, Field("Domain, such as `rack`.", pattern=TOPOLOGY_DOMAIN_PATTERN)]


@dataclass(frozen=True, slots=True)
class BackendName:
    """Properties of a framework that code outside of rendering needs.

    `cache_path` is the default mount path of a compilation cache; if empty, the user must set one.
    `needs_ssh_keys` is true if the pods of a group start processes in each other over SSH.
    """

    name: str
    cache_path: str = ""
    needs_ssh_keys: bool = False


# Each line is a value of `backendFramework`, a name to find in commands, and a module of `backends`.
BACKEND_NAMES = (
    BackendName("sglang"),
    BackendName("vllm", cache_path="/root/.cache/vllm"),
    BackendName("trtllm", needs_ssh_keys=True),
)
"""In the order in which messages list them."""

NOOP = "noop"
"""The name of a component without a framework."""

FRAMEWORKS = tuple(backend.name for backend in BACKEND_NAMES)


GROUP = "nvidia.com"
VERSION = "v1alpha1"
LATER = "v1beta1"
"""The version of today, which clusters may serve and store as well."""
CATEGORIES = ("dynamo",)
"""`kubectl get dynamo` lists these kinds. Not `all`: `kubectl delete all --all` would delete graphs."""

SPLIT_TYPES = ("prefill", "decode")
"""Sub types of workers that share the work on a request."""

WORKER_TYPES = frozenset(("worker", *SPLIT_TYPES))
"""Values of `componentType` whose pods load a model."""


_KEEPS_TOPOLOGY = Transition(
    " == ".join(f"(has({of}.multinode) && {of}.multinode.nodeCount > 1)" for of in ("self", "oldSelf")),
    "cannot change node topology (between single-node and multi-node) after creation",
)


KEEPS_MIN_AVAILABLE = Transition(
    "!has(oldSelf.minAvailable) || (has(self.minAvailable) && self.minAvailable == oldSelf.minAvailable)",
    "minAvailable is immutable after creation",
)
MIN_AVAILABLE_RULES: Rules = (
    Rule(
        "!has(self.minAvailable) || (has(self.replicas) && self.replicas == 0) || "
        "self.minAvailable <= (has(self.replicas) ? self.replicas : 1)",
        "minAvailable must be less than or equal to replicas unless replicas is 0",
        lambda spec: (
            "minAvailable" not in spec
            or spec["minAvailable"] <= spec.get("replicas", 1)
            or spec.get("replicas") == 0
        ),
    ),
)


class SharedComponentSpec(Struct):
    """Fields of a component that are the same in both versions."""

    runtime_version_override: Annotated[
        str | None,
        Field(
            "Version of the Dynamo runtime in the main image, if the image's tag is not a version.",
            pattern=RUNTIME_VERSION_PATTERN,
        ),
    ] = None
    global_dynamo_namespace: Annotated[
        bool, Field("Put the component into the Dynamo namespace that all graphs share, `dynamo`.")
    ] = False
    replicas: Annotated[
        int | None,
        Field(
            "Number of replicas; of pods, unless the component spans several nodes. Left out, it "
            "is 1. A scaling adapter, if there is one, owns this field.",
            minimum=0,
            format="int32",
        ),
    ] = None
    min_available: Annotated[
        int | None,
        Field(
            "Replicas that must run for the component to work; of graphs on Grove.", minimum=1, format="int32"
        ),
    ] = None
    disruption_budget: Annotated[
        DisruptionBudget | None,
        Field(
            "How many pods an eviction may take at a time; for components that run as a Deployment. "
            "`{}` means no limit, whatever the operator's default."
        ),
    ] = None


class ComponentSpec(SharedComponentSpec):
    """The spec of one component, as a graph's service or as a DynamoComponentDeployment."""

    RULES: ClassVar[Rules] = MIN_AVAILABLE_RULES
    TRANSITIONS: ClassVar[Transitions] = (_KEEPS_TOPOLOGY, KEEPS_MIN_AVAILABLE)

    annotations: Annotated[
        dict[str, str], Field("Annotations of the objects that are made for the component.")
    ] = {}
    labels: Annotated[dict[str, str], Field("Labels of the objects that are made for the component.")] = {}
    service_name: Annotated[
        str | None, Field("Name of the component. In a graph the operator sets it to the key of the service.")
    ] = None
    component_type: Annotated[
        str | None,
        Field(
            "Role of the component: `frontend`, `worker`, `prefill`, `decode`, `planner` or `epp`. "
            "It decides on ports, probes and environment; any other text gets none of them."
        ),
    ] = None
    sub_component_type: Annotated[
        str | None,
        Field("Finer role, such as `prefill` or `decode` for a worker; becomes a label of the pods."),
    ] = None
    dynamo_namespace: Annotated[
        str | None,
        Field(
            "Deprecated. The Dynamo namespace follows from the Kubernetes namespace and the name "
            "of the graph."
        ),
    ] = None
    resources: Annotated[
        Resources | None, Field("Requests, limits and resource claims of the main container.")
    ] = None
    autoscaling: Annotated[
        Object | None, Field("Deprecated and ignored; use `scalingAdapter` instead.", shape=Autoscaling)
    ] = None
    envs: Annotated[
        tuple[Object, ...], Field("Environment variables of the main container.", embeds="EnvVar")
    ] = ()
    env_from_secret: Annotated[
        str | None, Field("Secret whose keys all become environment variables of the main container.")
    ] = None
    volume_mounts: Annotated[
        tuple[VolumeMount, ...], Field("PersistentVolumeClaims mounted into the main container.")
    ] = ()
    ingress: Annotated[
        IngressSpec | None,
        Field(
            "Exposes the component outside the cluster. It replaces the operator's "
            "default, which only frontends have, as a whole."
        ),
    ] = None
    model_ref: Annotated[
        ModelReference | None,
        Field("Base model that the component serves; makes a headless Service to find its pods."),
    ] = None
    shared_memory: Annotated[
        SharedMemory | None, Field("The memory-backed volume at `/dev/shm`. Left out, there is one of `8Gi`.")
    ] = None
    extra_pod_metadata: Annotated[
        ExtraPodMetadata | None, Field("Labels and annotations of the component's pods.")
    ] = None
    extra_pod_spec: Annotated[
        Object | None,
        Field(
            "Pod spec merged over the operator's. `mainContainer` is merged over the main "
            "container. `kubectl explain pod.spec` documents each field.",
            embeds="ExtraPodSpec",
        ),
    ] = None
    liveness_probe: Annotated[
        Object | None,
        Field("Probe that restarts the main container, in place of the role's own.", embeds="Probe"),
    ] = None
    readiness_probe: Annotated[
        Object | None,
        Field(
            "Probe that decides when the main container gets requests, in place of the role's own.",
            embeds="Probe",
        ),
    ] = None
    multinode: Annotated[Multinode | None, Field("Spreads each replica over several nodes.")] = None
    scaling_adapter: Annotated[
        ScalingAdapterSwitch | None,
        Field("Whether an autoscaler may set the replicas through the scale subresource."),
    ] = None
    epp_config: Annotated[
        EppConfig | None, Field("Configuration of an endpoint picker; needed when `componentType` is `epp`.")
    ] = None
    frontend_sidecar: Annotated[
        Object | None, Field("Frontend that runs beside the main container.", shape=FrontendSidecar)
    ] = None
    topology_constraint: Annotated[
        Object | None, Field("Topology domain into which each replica is packed.", shape=TopologyConstraint)
    ] = None
    gpu_memory_service: Annotated[
        Object | None, Field("Shares the GPU memory between engines.", shape=GpuMemoryService)
    ] = None
    failover: Annotated[Object | None, Field("Engines that stand by for the active one.", shape=Failover)] = (
        None
    )
    checkpoint: Annotated[Object | None, Field("Checkpoint from which the pods start.", shape=Checkpoint)] = (
        None
    )

    @property
    def desired_replicas(self) -> int:
        """Desired number of replicas; 1 unless the spec sets it."""
        return 1 if self.replicas is None else self.replicas

    @property
    def nodes(self) -> int:
        """The number of nodes that each replica spans."""
        return self.multinode.node_count if self.multinode else 1


def is_worker(service: ComponentSpec) -> bool:
    """Whether the service loads a model."""
    return service.component_type in WORKER_TYPES


def has_adapter(service: ComponentSpec) -> bool:
    """Whether a scaling adapter owns the service's replicas."""
    return service.scaling_adapter is not None and service.scaling_adapter.enabled


def is_under_factor(service: ComponentSpec) -> bool:
    """Whether the graph's `spec.replicas` multiplies the service's replicas."""
    return is_worker(service) and not has_adapter(service)


class DynamoComponentDeploymentSpec(ComponentSpec):
    """A component spec with the backend framework of its graph."""

    TRANSITIONS: ClassVar[Transitions] = (
        immutable("backendFramework", "spec.backendFramework"),
        KEEPS_MIN_AVAILABLE,
    )

    backend_framework: Annotated[
        str | None,
        Field(
            "Backend that a worker runs. Left out, it is read from the worker's command.", options=FRAMEWORKS
        ),
    ] = None


class BlockedPod(Struct):
    """A pod that is not ready, and why."""

    name: Annotated[str, Field("Name of the pod.")]
    reason: Annotated[str, Field("Why it is not ready: a reason of `Ready`, or the kubelet's reason.")]
    container: Annotated[str | None, Field("The container that is the cause, if there is one.")] = None
    message: Annotated[str | None, Field("Message of the scheduler, the kubelet or the container.")] = None
    since: Annotated[str | None, Field("When this began.", format="date-time")] = None
    restarts: Annotated[
        int | None, Field("Number of restarts of its containers.", minimum=0, format="int32")
    ] = None


class ServiceReplicaStatus(Struct):
    """Replica counts of one component's workload, as observed."""

    component_kind: Annotated[
        Literal["PodClique", "PodCliqueScalingGroup", "Deployment", "LeaderWorkerSet"],
        Field("Kind of the workload."),
    ]
    component_name: Annotated[str, Field("Name of the workload.")]
    replicas: Annotated[
        int, Field("Replicas that exist and are not being deleted.", minimum=0, format="int32")
    ]
    updated_replicas: Annotated[int, Field("Replicas of the current revision.", minimum=0, format="int32")]
    ready_replicas: Annotated[
        int | None,
        Field(
            "Replicas that are ready. A PodCliqueScalingGroup has no such count.", minimum=0, format="int32"
        ),
    ] = None
    available_replicas: Annotated[
        int | None,
        Field(
            "Replicas that are available: for a Deployment, ready for long enough; for a "
            "PodCliqueScalingGroup, with enough ready pods in every clique. The other kinds have "
            "no such count.",
            minimum=0,
            format="int32",
        ),
    ] = None
    scheduled_replicas: Annotated[
        int | None, Field("Replicas all of whose pods have a node.", minimum=0, format="int32")
    ] = None
    reason: Annotated[
        str | None, Field("Why the service is not ready, in one word; one of the reasons of `Ready`.")
    ] = None
    message: Annotated[str | None, Field("The same in a sentence.")] = None
    component_names: Annotated[
        tuple[str, ...], Field("Names of all its workloads; several while workers are rolled out.")
    ] = ()
    runtime_namespace: Annotated[
        str | None, Field("Dynamo namespace in which the service's processes are found.")
    ] = None
    blocked_pods: Annotated[
        tuple[BlockedPod, ...], Field("Pods that are not ready and why, at most five.", max_items=5)
    ] = ()

    @property
    def ready(self) -> int | None:
        """The ready replicas, or the available ones of a workload that does not count ready ones."""
        return self.available_replicas if self.ready_replicas is None else self.ready_replicas

    def of_ready_service(self) -> "ServiceReplicaStatus":
        """The counts without reason, message and blocked pods."""
        return replace(self, reason=None, message=None, blocked_pods=())


PODS_NOT_READY, UPDATING = "pods_not_ready", "updating"
_SOFT = (None, PODS_NOT_READY, UPDATING)
"""Reasons that an update explains. Any other needs a person's attention."""


def service_reason(reason: str | None, *, updates: bool) -> str | None:
    """The reason of a service that is not ready; None if unknown."""
    if reason not in _SOFT:
        return reason
    if updates:
        return UPDATING
    return None if reason is None else PODS_NOT_READY


# During an update pods start, as they do after a failure: only the state before tells the two apart.
def is_updating(
    before: ServiceReplicaStatus | None, *, is_same: bool, was_ready: bool, is_rolling: bool, has_older: bool
) -> bool:
    """Whether a newer revision is replacing one that was ready.

    `before` are the counts in the stored status; `is_same` is whether that describes the same spec.
    """
    was_updating = before is not None and before.reason == UPDATING
    return has_older or (was_updating and (is_same or is_rolling)) or (was_ready and is_rolling)


class DynamoComponentDeploymentStatus(Status):
    """Observed state of a component."""

    observed_generation: Annotated[
        int, Field("Generation of the spec that this status describes.", format="int64")
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...],
        Field("Current conditions of the component, one entry per type.", required=True),
    ] = ()
    pod_selector: Annotated[dict[str, str], Field("Labels that select the component's pods.")] = {}
    selector: Annotated[
        str | None, Field("The same as text, one pod for each replica, for the scale subresource.")
    ] = None
    service: Annotated[ServiceReplicaStatus | None, Field("Replica counts of the component's workload.")] = (
        None
    )
    backend_framework: Annotated[
        str | None, Field("Backend that the component runs, as declared or as read from its command.")
    ] = None


def component_definition(counts: str, *first: Column) -> Definition:
    """How a version declares components. `counts` is the field of its status with the replica counts."""
    return Definition(
        short_names=("dcd",),
        categories=CATEGORIES,
        columns=(
            *first,
            Column("Available", '.status.conditions[?(@.type=="Available")].status'),
            Column("Backend", ".status.backendFramework"),
            AGE,
            Column("Reason", '.status.conditions[?(@.type=="Available")].reason', priority=1),
            Column("Message", '.status.conditions[?(@.type=="Available")].message', priority=1),
        ),
        scale=Scale(".spec.replicas", f".status.{counts}.replicas", ".status.selector"),
    )


class DynamoComponentDeployment(Resource):
    """One component: a workload and the objects around it.

    A graph makes one for each of its services; one may also be written on its own.
    """

    KIND = Kind(GROUP, VERSION, "DynamoComponentDeployment", "dynamocomponentdeployments")
    DEFINITION: ClassVar = component_definition("service", Column("DynamoComponent", ".spec.serviceName"))

    spec: Annotated[DynamoComponentDeploymentSpec, Field("Desired state of the component.")] = (
        DynamoComponentDeploymentSpec()
    )
    status: Annotated[DynamoComponentDeploymentStatus, Field("Observed state of the component.")] = (
        DynamoComponentDeploymentStatus()
    )
