"""DynamoComponentDeployment in v1beta1. The operator computes with v1alpha1."""

from typing import Annotated, Any, ClassVar, Final, Literal

from dynamo_operator.component import api
from dynamo_operator.component.api import FRAMEWORKS, GROUP, KEEPS_MIN_AVAILABLE, LATER, MIN_AVAILABLE_RULES
from dynamo_operator.features.experimental.api import (
    CheckpointIdentity,
    CheckpointSource,
    GpuMemoryClients,
    gpu_memory_rules,
)
from dynamo_operator.names import LABEL_LIMIT
from kube_runtime.crd import Field, Quantity, Rule, Rules, Transitions
from kube_runtime.types.meta import Condition, Kind, Object, Resource, Status, Struct

VERSION: Final = LATER
MAIN: Final = "main"
"""The container that gets the operator's defaults."""

_EXECUTOR: Final = "nvidia.com/vllm-distributed-executor-backend"
_LONGEST_ANNOTATION: Final = 256 * 1024

EMBEDDED_METADATA: Final[Object] = {
    "properties": {
        "annotations": {
            "type": "object",
            "additionalProperties": {"type": "string", "maxLength": _LONGEST_ANNOTATION},
        },
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "labels": {"type": "object", "additionalProperties": {"type": "string"}},
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    }
}
"""Metadata of a template, in which a CRD must list the fields that are kept."""


def _has_image(container: Any) -> bool:
    return isinstance(container, dict) and bool(container.get("image"))


_BACKEND = Rule(
    f"!('{_EXECUTOR}' in self) || self['{_EXECUTOR}'].lowerAscii() in ['mp', 'ray']",
    "podTemplate backend annotation must be mp or ray, case-insensitively",
    lambda annotations: str(annotations.get(_EXECUTOR, "mp")).lower() in ("mp", "ray"),
)
_SIDECAR_IMAGE = Rule(
    f"self.name == '{MAIN}' || (has(self.image) && size(self.image) > 0)",
    "sidecar containers must specify a non-empty image",
    lambda container: container.get("name") == MAIN or _has_image(container),
)
_INIT_IMAGE = Rule(
    "has(self.image) && size(self.image) > 0", "init containers must specify a non-empty image", _has_image
)


def _rule(rule: Rule) -> Object:
    return {"x-kubernetes-validations": (rule,)}


_POD_TEMPLATE: Final[Object] = {
    "properties": {
        "metadata": {
            "properties": {
                **EMBEDDED_METADATA["properties"],
                "annotations": {**EMBEDDED_METADATA["properties"]["annotations"], **_rule(_BACKEND)},
            }
        },
        "spec": {
            "properties": {
                "containers": {"items": _rule(_SIDECAR_IMAGE)},
                "initContainers": {"items": _rule(_INIT_IMAGE)},
            }
        },
    }
}


class Multinode(api.Multinode):
    """A component that spans several nodes."""

    node_count: Annotated[
        int,
        Field(
            "Number of nodes of each replica. The GPUs of one replica are this number times those of "
            "the main container.",
            minimum=2,
            format="int32",
            default=2,
            required=True,
        ),
    ] = 2


class ModelReference(api.ModelReference):
    """The base model that a component serves."""

    name: Annotated[
        str,
        Field(
            "Name of the base model. DynamoModels with the same `baseModelName` find the "
            "component's pods through a headless Service.",
            min_length=1,
        ),
    ]


class ScalingAdapter(Struct):
    """Present where a scaling adapter owns the replicas."""


class EppConfig(api.EppConfig):
    """Configuration of an endpoint picker: a ConfigMap or the document itself, not both."""

    RULES: ClassVar[Rules] = (
        Rule(
            "has(self.configMapRef) != has(self.config)",
            "exactly one of configMapRef or config must be specified",
            lambda config: ("configMapRef" in config) != ("config" in config),
        ),
    )


class CompilationCache(Struct):
    """A PersistentVolumeClaim that keeps the backend's compiled kernels."""

    pvc_name: Annotated[str, Field("Name of the PVC.", min_length=1)]
    mount_path: Annotated[
        str | None, Field("Directory in the main container. Left out, it is the backend's default.")
    ] = None


_MODE = "Whether the processes that share the GPUs are in one pod or in several."


class GpuMemoryService(GpuMemoryClients):
    """A process that holds the GPU memory of a component, so that engines can share it."""

    RULES: ClassVar[Rules] = gpu_memory_rules("IntraPod", "InterPod")

    mode: Annotated[Literal["IntraPod", "InterPod"], Field(_MODE, default="IntraPod")] = "IntraPod"


class Failover(Struct):
    """Engines that stand by for the active one and share its GPU memory."""

    mode: Annotated[Literal["IntraPod", "InterPod"], Field(_MODE, default="IntraPod")] = "IntraPod"
    # No maximum, as in v1alpha1: the component of a graph in v1alpha1 has to fit where v1beta1 is stored.
    num_shadows: Annotated[
        int, Field("Number of engines that stand by.", minimum=1, format="int32", default=1)
    ] = 1


class GroveSettings(Struct):
    """Settings of a component of a graph on Grove."""

    force_scaling_group: Annotated[
        bool, Field("Make a PodCliqueScalingGroup even for a component on one node.")
    ] = False


class Identity(CheckpointIdentity):
    """The settings on which the content of a checkpoint depends."""

    model: Annotated[str, Field("Name of the model.", min_length=1, required=True)] = ""


class Checkpoint(CheckpointSource):
    """A checkpoint from which the pods of a component start."""

    enabled: Annotated[bool, Field("Start from a checkpoint.", required=True)] = False
    identity: Annotated[Identity | None, Field("Settings on which the checkpoint depends.")] = None


class Experimental(Struct):
    """Experimental features of a component."""

    gpu_memory_service: Annotated[
        GpuMemoryService | None, Field("Shares the GPU memory between engines.")
    ] = None
    failover: Annotated[Failover | None, Field("Engines that stand by for the active one.")] = None
    grove: Annotated[GroveSettings | None, Field("Settings for graphs on Grove.")] = None
    checkpoint: Annotated[Checkpoint | None, Field("Checkpoint from which the pods start.")] = None


class ComponentSpec(api.SharedComponentSpec):
    """One component, in a graph or as a DynamoComponentDeployment."""

    RULES: ClassVar[Rules] = (
        Rule(
            "!has(self.eppConfig) || (has(self.type) && self.type == 'epp')",
            "eppConfig may only be set when type is epp",
            lambda spec: "eppConfig" not in spec or spec.get("type") == "epp",
        ),
        *MIN_AVAILABLE_RULES,
    )
    TRANSITIONS: ClassVar[Transitions] = (KEEPS_MIN_AVAILABLE,)

    name: Annotated[
        str | None,
        Field(
            "Name of the component, unique in its graph.",
            min_length=1,
            max_length=LABEL_LIMIT,
            pattern=r"^[A-Za-z0-9]([-A-Za-z0-9]*[A-Za-z0-9])?$",
        ),
    ] = None
    # Any text, as in v1alpha1: the component of a graph in v1alpha1 has to fit where v1beta1 is stored.
    type: Annotated[
        str | None, Field("Role of the component, which decides on ports, probes and environment.")
    ] = None
    pod_template: Annotated[
        Object | None,
        Field(
            "Template of the pods. The container `main` gets the operator's defaults, the others none. "
            "`kubectl explain pod.spec` documents each field.",
            embeds="PodTemplateSpec",
            adds=_POD_TEMPLATE,
        ),
    ] = None
    multinode: Annotated[Multinode | None, Field("Spreads each replica over several nodes.")] = None
    shared_memory_size: Annotated[
        Quantity | None,
        Field("Size of the memory-backed volume at `/dev/shm`. Left out, it is `8Gi`; `0` means none."),
    ] = None
    model_ref: Annotated[
        ModelReference | None,
        Field("Base model that the component serves; makes a headless Service to find its pods."),
    ] = None
    scaling_adapter: Annotated[
        ScalingAdapter | None,
        Field("If present, an autoscaler sets the replicas through a DynamoGraphDeploymentScalingAdapter."),
    ] = None
    epp_config: Annotated[
        EppConfig | None, Field("Configuration of an endpoint picker; only of components of type `epp`.")
    ] = None
    frontend_sidecar: Annotated[
        str | None, Field("Container of `podTemplate` that gets the defaults of a frontend.")
    ] = None
    compilation_cache: Annotated[
        CompilationCache | None, Field("Volume that keeps compiled kernels, so that pods start faster.")
    ] = None
    topology_constraint: Annotated[
        api.TopologyConstraint | None, Field("Topology domain into which each replica is packed.")
    ] = None
    experimental: Annotated[Experimental | None, Field("Experimental features.")] = None


class ReplicaStatus(Struct):
    """Replica counts of one component's workloads, as observed."""

    component_kind: Annotated[
        Literal["PodClique", "PodCliqueScalingGroup", "Deployment", "LeaderWorkerSet"],
        Field("Kind of the workloads."),
    ]
    replicas: Annotated[
        int, Field("Replicas that exist and are not being deleted.", minimum=0, format="int32")
    ]
    updated_replicas: Annotated[int, Field("Replicas of the current revision.", minimum=0, format="int32")]
    component_names: Annotated[
        tuple[str, ...], Field("Names of the workloads; several while workers are rolled out.")
    ] = ()
    ready_replicas: Annotated[int | None, Field("Replicas that are ready.", minimum=0, format="int32")] = None
    available_replicas: Annotated[
        int | None, Field("Replicas that are available.", minimum=0, format="int32")
    ] = None
    scheduled_replicas: Annotated[
        int | None, Field("Replicas all of whose pods have a node.", minimum=0, format="int32")
    ] = None
    runtime_namespace: Annotated[
        str | None, Field("Dynamo namespace in which the component's processes are found.")
    ] = None
    reason: Annotated[
        str | None, Field("Why the component is not ready, in one word; one of the reasons of `Ready`.")
    ] = None
    message: Annotated[str | None, Field("The same in a sentence.")] = None
    blocked_pods: Annotated[
        tuple[api.BlockedPod, ...], Field("Pods that are not ready and why, at most five.", max_items=5)
    ] = ()


class DynamoComponentDeploymentSpec(ComponentSpec):
    """A component with the backend framework of its graph."""

    backend_framework: Annotated[
        str | None,
        Field(
            "Backend that a worker runs. Left out, it is read from the worker's command.", options=FRAMEWORKS
        ),
    ] = None


class DynamoComponentDeploymentStatus(Status):
    """Observed state of a component."""

    observed_generation: Annotated[
        int, Field("Generation of the spec that this status describes.", format="int64")
    ] = 0
    conditions: Annotated[
        tuple[Condition, ...],
        Field("Current conditions of the component, one entry per type.", list_keys=("type",)),
    ] = ()
    component: Annotated[ReplicaStatus | None, Field("Replica counts of the component's workloads.")] = None
    selector: Annotated[
        str | None,
        Field("Labels of the component's pods, one pod for each replica, for the scale subresource."),
    ] = None
    backend_framework: Annotated[
        str | None, Field("Backend that the component runs, as declared or as read from its command.")
    ] = None


class DynamoComponentDeployment(Resource):
    """One component: a workload and the objects around it.

    A graph makes one for each of its components; one may also be written on its own.
    """

    KIND = Kind(GROUP, VERSION, "DynamoComponentDeployment", "dynamocomponentdeployments")
    DEFINITION: ClassVar = api.component_definition("component")

    spec: Annotated[DynamoComponentDeploymentSpec, Field("Desired state of the component.")] = (
        DynamoComponentDeploymentSpec()
    )
    status: Annotated[DynamoComponentDeploymentStatus, Field("Observed state of the component.")] = (
        DynamoComponentDeploymentStatus()
    )
