"""DynamoComponentDeployment: one component, with the spec that a graph's services share."""

from typing import Annotated, ClassVar

from dynamo_graphs.api.backends import NAMES
from dynamo_graphs.api.epp import EppConfig
from dynamo_graphs.api.ingress import IngressSpec, IngressTls
from dynamo_graphs.api.resources import ResourceItem, Resources
from dynamo_graphs.api.service_status import ServiceReplicaStatus
from kube_runtime.crd.declare import (
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
from kube_runtime.kind import Kind, Object
from kube_runtime.types.meta import Condition, Resource, Status, Struct


class Autoscaling(Struct):
    """Deprecated and ignored; use `scalingAdapter` with an autoscaler of your choice."""

    enabled: Annotated[bool | None, Field("Deprecated and ignored.")] = None
    min_replicas: Annotated[int | None, Field("Deprecated and ignored.", format="int64")] = None
    max_replicas: Annotated[int | None, Field("Deprecated and ignored.", format="int64")] = None
    behavior: Annotated[
        Object | None, Field("Deprecated and ignored.", embeds="HorizontalPodAutoscalerBehavior")
    ] = None
    metrics: Annotated[
        tuple[Object, ...], Field("Deprecated and ignored.", embeds="MetricSpec")
    ] = ()


__all__ = [
    "GROUP",
    "VERSION",
    "ComponentSpec",
    "DisruptionBudget",
    "DynamoComponentDeployment",
    "DynamoComponentDeploymentSpec",
    "DynamoComponentDeploymentStatus",
    "EppConfig",
    "ExtraPodMetadata",
    "IngressSpec",
    "IngressTls",
    "ModelReference",
    "Multinode",
    "Quantity",
    "ResourceItem",
    "Resources",
    "ScalingAdapterSwitch",
    "ServiceReplicaStatus",
    "SharedMemory",
    "VolumeMount",
]

GROUP = "nvidia.com"
VERSION = "v1alpha1"
CATEGORIES = ("dynamo",)
"""`kubectl get dynamo` lists these kinds. Not `all`: `kubectl delete all --all` would delete graphs."""


class VolumeMount(Struct):
    """A PersistentVolumeClaim mounted into the main container."""

    name: Annotated[
        str, Field("Name of the PVC; for a graph, one of `spec.pvcs`.", required=True)
    ] = ""
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
            "Store the backend's compiled kernels on this volume, so that pods start faster the "
            "next time.",
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
        Field(
            "Size of the volume; required unless it is disabled. Without `sharedMemory` it is `8Gi`."
        ),
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


def _names_one_bound(budget: Object) -> bool:
    """Whether a disruption budget has no more than one of its two bounds."""
    return not ("minAvailable" in budget and "maxUnavailable" in budget)


class DisruptionBudget(Struct):
    """How many pods of a component an eviction, such as the drain of a node, may take at a time."""

    RULES: ClassVar[Rules] = (
        Rule(
            "!(has(self.minAvailable) && has(self.maxUnavailable))",
            "minAvailable and maxUnavailable cannot both be set",
            _names_one_bound,
        ),
    )

    min_available: Annotated[
        IntOrPercent | None,
        Field("Pods that must stay: a number, or a percentage of the replicas."),
    ] = None
    max_unavailable: Annotated[
        IntOrPercent | None,
        Field("Pods that may be missing: a number, or a percentage of the replicas."),
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


_KEEPS_TOPOLOGY = Transition(
    " == ".join(
        f"(has({of}.multinode) && {of}.multinode.nodeCount > 1)" for of in ("self", "oldSelf")
    ),
    "cannot change node topology (between single-node and multi-node) after creation",
)


class ComponentSpec(Struct):
    """The spec of one component, as a graph's service or as a DynamoComponentDeployment."""

    TRANSITIONS: ClassVar[Transitions] = (_KEEPS_TOPOLOGY,)

    annotations: Annotated[
        dict[str, str], Field("Annotations of the objects that are made for the component.")
    ] = {}
    labels: Annotated[
        dict[str, str], Field("Labels of the objects that are made for the component.")
    ] = {}
    service_name: Annotated[
        str | None,
        Field("Name of the component. In a graph the operator sets it to the key of the service."),
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
        Field(
            "Finer role, such as `prefill` or `decode` for a worker; becomes a label of the pods."
        ),
    ] = None
    dynamo_namespace: Annotated[
        str | None,
        Field(
            "Deprecated. The Dynamo namespace follows from the Kubernetes namespace and the name "
            "of the graph."
        ),
    ] = None
    global_dynamo_namespace: Annotated[
        bool,
        Field("Put the component into the Dynamo namespace that all graphs share, `dynamo`."),
    ] = False
    resources: Annotated[
        Resources | None, Field("Requests, limits and resource claims of the main container.")
    ] = None
    autoscaling: Annotated[
        Object | None,
        Field("Deprecated and ignored; use `scalingAdapter` instead.", shape=Autoscaling),
    ] = None
    envs: Annotated[
        tuple[Object, ...],
        Field("Environment variables of the main container.", embeds="EnvVar"),
    ] = ()
    env_from_secret: Annotated[
        str | None,
        Field("Secret whose keys all become environment variables of the main container."),
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
        SharedMemory | None,
        Field("The memory-backed volume at `/dev/shm`. Left out, there is one of `8Gi`."),
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
        Field(
            "Probe that restarts the main container, in place of the role's own.", embeds="Probe"
        ),
    ] = None
    readiness_probe: Annotated[
        Object | None,
        Field(
            "Probe that decides when the main container gets requests, in place of the role's own.",
            embeds="Probe",
        ),
    ] = None
    replicas: Annotated[
        int | None,
        Field(
            "Number of replicas; of pods, unless the component spans several nodes. Left out, it "
            "is 1. While `scalingAdapter` is enabled the adapter owns this field.",
            minimum=0,
            format="int32",
        ),
    ] = None
    multinode: Annotated[Multinode | None, Field("Spreads each replica over several nodes.")] = None
    scaling_adapter: Annotated[
        ScalingAdapterSwitch | None,
        Field("Whether an autoscaler may set the replicas through the scale subresource."),
    ] = None
    disruption_budget: Annotated[
        DisruptionBudget | None,
        Field(
            "How many pods an eviction may take at a time; for components that run as a Deployment. "
            "`{}` means no limit, whatever the operator's default."
        ),
    ] = None
    epp_config: Annotated[
        EppConfig | None,
        Field("Configuration of an endpoint picker; needed when `componentType` is `epp`."),
    ] = None

    @property
    def desired_replicas(self) -> int:
        """The number of replicas that the component asks for."""
        return 1 if self.replicas is None else self.replicas

    @property
    def nodes(self) -> int:
        """The number of nodes that each replica spans."""
        return self.multinode.node_count if self.multinode else 1


class DynamoComponentDeploymentSpec(ComponentSpec):
    """A component spec with the backend framework of its graph."""

    TRANSITIONS: ClassVar[Transitions] = (immutable("backendFramework", "spec.backendFramework"),)

    backend_framework: Annotated[
        str | None,
        Field(
            "Backend that a worker runs. Left out, it is read from the worker's command.",
            options=NAMES,
        ),
    ] = None


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
        str | None,
        Field("The same as text, one pod for each replica, for the scale subresource."),
    ] = None
    service: Annotated[
        ServiceReplicaStatus | None, Field("Replica counts of the component's workload.")
    ] = None
    backend_framework: Annotated[
        str | None,
        Field("Backend that the component runs, as declared or as read from its command."),
    ] = None


class DynamoComponentDeployment(Resource):
    """One component: a workload and the objects around it.

    A graph makes one for each of its services; one may also be written on its own.
    """

    KIND = Kind(GROUP, VERSION, "DynamoComponentDeployment", "dynamocomponentdeployments")
    DEFINITION: ClassVar = Definition(
        short_names=("dcd",),
        categories=CATEGORIES,
        columns=(
            Column("DynamoComponent", ".spec.serviceName"),
            Column("Available", ".status.conditions[?(@.type=='Available')].status"),
            Column("Backend", ".status.backendFramework"),
            AGE,
            Column("Reason", '.status.conditions[?(@.type=="Available")].reason', priority=1),
            Column("Message", '.status.conditions[?(@.type=="Available")].message', priority=1),
        ),
        scale=Scale(".spec.replicas", ".status.service.replicas", ".status.selector"),
    )

    spec: Annotated[DynamoComponentDeploymentSpec, Field("Desired state of the component.")] = (
        DynamoComponentDeploymentSpec()
    )
    status: Annotated[
        DynamoComponentDeploymentStatus, Field("Observed state of the component.")
    ] = DynamoComponentDeploymentStatus()
