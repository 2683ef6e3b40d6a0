"""DynamoGraphDeploymentRequest in v1beta1. The operator computes with v1alpha1."""

from typing import Annotated, ClassVar, Literal

from dynamo_operator.component.api import CATEGORIES, GROUP, RUNTIME_VERSION_PATTERN
from dynamo_operator.component.v1beta1 import EMBEDDED_METADATA, VERSION
from dynamo_operator.requests import api
from kube_runtime.crd import AGE, Column, Definition, Field
from kube_runtime.types.meta import Condition, Kind, Object, Resource, Struct

GPU_MODELS = (
    *("gb200_sxm", "gb10", "b200_sxm", "h200_sxm", "h100_sxm", "h100_pcie", "a100_sxm", "a100_pcie"),
    *("a30", "l40s", "l40", "l4", "v100_sxm", "v100_pcie", "t4", "mi200", "mi300"),
)
"""Values of `spec.hardware.gpuSku`."""


class ModelCache(Struct):
    """A PersistentVolumeClaim with the weights of the model."""

    pvc_name: Annotated[str | None, Field("Name of the PVC, in the request's own namespace.")] = None
    pvc_model_path: Annotated[str | None, Field("Directory of the model in the volume.")] = None
    pvc_mount_path: Annotated[
        str, Field("Directory in the container where the volume is mounted.", default="/opt/model-cache")
    ] = "/opt/model-cache"


class Hardware(Struct):
    """The GPUs to profile for. What is left out is discovered."""

    gpu_sku: Annotated[str | None, Field("Model of the GPUs.", options=GPU_MODELS)] = None
    vram_mb: Annotated[float | None, Field("Memory of one GPU in MiB.")] = None
    total_gpus: Annotated[int | None, Field("GPUs that the graph may use.", format="int32")] = None
    num_gpus_per_node: Annotated[int | None, Field("GPUs of one node.", format="int32")] = None
    interconnect: Annotated[str | None, Field("Interconnect of the GPUs of a node.")] = None
    rdma: Annotated[bool | None, Field("Whether the nodes have RDMA.")] = None


class Workload(Struct):
    """The requests to profile for. `concurrency` and `requestRate` exclude each other."""

    isl: Annotated[int, Field("Tokens of an input sequence.", format="int32", default=4000)] = 4000
    osl: Annotated[int, Field("Tokens of an output sequence.", format="int32", default=1000)] = 1000
    concurrency: Annotated[float | None, Field("Requests at the same time.")] = None
    request_rate: Annotated[float | None, Field("Requests per second.")] = None


class Sla(Struct):
    """Latencies to reach, in milliseconds."""

    ttft: Annotated[float | None, Field("Time to the first token, in ms.")] = None
    itl: Annotated[float | None, Field("Time between two tokens, in ms.")] = None
    e2e_latency: Annotated[float | None, Field("Time of a whole request, in ms.")] = None
    optimization_type: Annotated[
        Literal["latency", "throughput"] | None, Field("What to optimize beyond these limits.")
    ] = None


class Overrides(Struct):
    """Changes to what is generated."""

    profiling_job: Annotated[
        Object | None,
        Field(
            "Merged over the profiling Job. Its first container is the profiler's.",
            embeds="JobSpec",
            adds={"properties": {"template": {"properties": {"metadata": EMBEDDED_METADATA}}}},
        ),
    ] = None
    dgd: Annotated[
        Object | None,
        Field(
            "A partial DynamoGraphDeployment, merged over the generated one.",
            free_form=True,
            embedded_resource=True,
        ),
    ] = None


class Mocker(Struct):
    """Simulated engines, which need no GPU."""

    enabled: Annotated[bool, Field("Deploy simulated engines.")] = False


class Features(Struct):
    """Further parts of the generated graph."""

    planner: Annotated[Object | None, Field("Configuration of the planner.", free_form=True)] = None
    mocker: Annotated[Mocker | None, Field("Simulated engines.")] = None


class DynamoGraphDeploymentRequestSpec(Struct):
    """What to deploy, for which load, and how to find it."""

    model: Annotated[str, Field("Model to deploy, such as `Qwen/Qwen3-0.6B`.", min_length=1)]
    backend: Annotated[
        Literal["auto", "sglang", "trtllm", "vllm"],
        Field("Inference backend; `auto` lets the profiler choose.", default="auto"),
    ] = "auto"
    image: Annotated[str | None, Field("Image that contains the profiler.")] = None
    runtime_version_override: Annotated[
        str | None,
        Field(
            "Version of the Dynamo runtime in the image, if its tag is not a version.",
            pattern=RUNTIME_VERSION_PATTERN,
        ),
    ] = None
    model_cache: Annotated[ModelCache | None, Field("Volume with the weights of the model.")] = None
    hardware: Annotated[Hardware | None, Field("GPUs to profile for.")] = None
    workload: Annotated[Workload | None, Field("Requests to profile for.")] = None
    sla: Annotated[Sla | None, Field("Latencies to reach.")] = None
    overrides: Annotated[Overrides | None, Field("Changes to the Job and the generated graph.")] = None
    features: Annotated[Features | None, Field("Further parts of the generated graph.")] = None
    search_strategy: Annotated[
        Literal["rapid", "thorough"],
        Field("`rapid` simulates, in minutes; `thorough` measures on GPUs, for hours.", default="rapid"),
    ] = "rapid"
    auto_apply: Annotated[
        bool, Field("Create the generated graph. Otherwise the request stops in `Ready`.", default=True)
    ] = True


class ParetoChoice(Struct):
    """One choice that no other beats."""

    config: Annotated[Object, Field("The graph of this choice.", free_form=True)]


class ProfilingResults(Struct):
    """What profiling found."""

    pareto: Annotated[tuple[ParetoChoice, ...], Field("Deprecated: the choices that no other beats.")] = ()
    selected_config: Annotated[
        Object | None, Field("The generated DynamoGraphDeployment.", free_form=True)
    ] = None


class DeploymentInfo(Struct):
    """Replicas of the graph that was created."""

    replicas: Annotated[int | None, Field("Desired replicas.", format="int32")] = None
    available_replicas: Annotated[int | None, Field("Available replicas.", format="int32")] = None


class DynamoGraphDeploymentRequestStatus(api.SharedRequestStatus):
    """Progress of a request."""

    phase: Annotated[
        Literal["Pending", "Profiling", "Ready", "Deploying", "Deployed", "Failed"] | None,
        Field("Stage of the request."),
    ] = None
    profiling_phase: Annotated[
        Literal[
            "Initializing",
            "SweepingPrefill",
            "SweepingDecode",
            "SelectingConfig",
            "BuildingCurves",
            "GeneratingDGD",
            "Done",
        ]
        | None,
        Field("Phase that the profiler reports."),
    ] = None
    dgd_name: Annotated[str | None, Field("Name of the graph.")] = None
    conditions: Annotated[
        tuple[Condition, ...],
        Field("Current conditions of the request, one entry per type.", list_keys=("type",)),
    ] = ()
    profiling_results: Annotated[ProfilingResults | None, Field("What profiling found.")] = None
    deployment_info: Annotated[DeploymentInfo | None, Field("Replicas of the graph.")] = None
    accepted_spec: Annotated[
        Object | None,
        Field("The spec that the request was accepted with, in the form of v1alpha1.", free_form=True),
    ] = None
    additional_resources: Annotated[
        tuple[Object, ...],
        Field("The ConfigMaps that profiling found for the graph, which mounts them.", free_form=True),
    ] = ()


class DynamoGraphDeploymentRequest(Resource):
    """Asks for a graph that serves a model well; the operator profiles the model to find it."""

    KIND = Kind(GROUP, VERSION, "DynamoGraphDeploymentRequest", "dynamographdeploymentrequests")
    DEFINITION: ClassVar = Definition(
        short_names=("dgdr",),
        categories=CATEGORIES,
        columns=(
            Column("Model", ".spec.model"),
            Column("Backend", ".spec.backend"),
            Column("Phase", ".status.phase"),
            Column("Profiling", ".status.profilingPhase"),
            Column("Reason", '.status.conditions[?(@.type=="Succeeded")].reason'),
            Column("Message", '.status.conditions[?(@.type=="Succeeded")].message'),
            Column("DGD", ".status.dgdName"),
            AGE,
        ),
    )

    spec: Annotated[DynamoGraphDeploymentRequestSpec | None, Field("What to deploy, and how to find it.")] = (
        None
    )
    status: Annotated[DynamoGraphDeploymentRequestStatus, Field("Observed state of the request.")] = (
        DynamoGraphDeploymentRequestStatus()
    )
