"""DynamoGraphDeploymentRequest, and the record of what the operator has done for it."""

import hashlib
from contextlib import suppress
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.component.api import CATEGORIES, GROUP, RUNTIME_VERSION_PATTERN, VERSION
from dynamo_operator.names import SUBDOMAIN_LIMIT
from kube_runtime.crd import AGE, Column, Definition, Field, JsonText
from kube_runtime.types.kinds import Job, Pod, PodStatus
from kube_runtime.types.meta import Condition, Kind, Object, Resource, Status, Struct, from_json


class JobPodStatus(PodStatus):
    """The observed state of a pod of a Job; `reason` is `Evicted`, for example."""

    reason: str = ""
    message: str = ""


class JobPod(Pod):
    """A pod of a profiling Job. Watched by a label that only these have."""

    status: JobPodStatus = JobPodStatus()


class JobInFull(Resource):
    """A Job with its spec, which is immutable, read once to compare its pods with it."""

    KIND = Job.KIND

    spec: Object = {}


class JobPodInFull(Resource):
    """A pod with its whole spec, read once to compare it with the template of its Job."""

    KIND = Pod.KIND

    spec: Object = {}
    status: JobPodStatus = JobPodStatus()


class Output(Resource):
    """A ConfigMap with the output of a profiling Job. Watched by a label that only these have."""

    KIND = Kind("", "v1", "ConfigMap", "configmaps")

    data: dict[str, str] = {}
    binary_data: dict[str, str] = {}


# The names of files are also keys of the output ConfigMap.
RESULTS_FILE = "config_with_planner.yaml"
MOCKED_RESULTS_FILE = "mocker_config_with_planner.yaml"
FINAL_FILE = "final_config.yaml"
STATUS_FILE = "profiler_status.yaml"

PROFILER, COPIER = "profiler", "output-copier"
"""Containers of a profiling Job."""

OWN_VARIABLES = ("DGDR_NAME", "DGDR_NAMESPACE", "DGDR_UID")
"""Variables that identify the request to the profiler; a user cannot set them."""

TOKEN_FOLDER = "/var/run/secrets/kubernetes.io/serviceaccount"  # noqa: S105  a path
"""The usual path of a ServiceAccount's token, where admission mounts it and clients look for it."""


def is_variable(value: object) -> bool:
    """Whether a value has the form of an environment variable."""
    return isinstance(value, dict) and isinstance(value.get("name"), str) and bool(value["name"])


DEFAULT_BASE_CONFIG_KEY = "disagg.yaml"
MOST_ENTRIES = 1000
"""Most entries of lists and maps that the Go operator's CRD does not have."""


class ConfigMapReference(Struct):
    """One key of a ConfigMap."""

    name: Annotated[str, Field("Name of the ConfigMap, in the request's own namespace.")]
    key: Annotated[
        str, Field("Key in the ConfigMap that holds the document.", default=DEFAULT_BASE_CONFIG_KEY)
    ] = DEFAULT_BASE_CONFIG_KEY


class ProfilingConfig(Struct):
    """Settings of the profiling Job."""

    profiler_image: Annotated[
        str, Field("Image that contains the profiler, usually a Dynamo runtime image.", required=True)
    ] = ""
    config: Annotated[
        Object | None,
        Field(
            "Configuration of the profiler, handed on as it is. The operator itself sets "
            "`deployment.model` and `engine.backend`. Left out, every value is the profiler's "
            "default.",
            free_form=True,
        ),
    ] = None
    config_map_ref: Annotated[
        ConfigMapReference | None,
        Field("ConfigMap with the DynamoGraphDeployment from which profiling starts."),
    ] = None
    output_pvc: Annotated[
        str | None,
        Field(
            "Existing PersistentVolumeClaim in the request's namespace that keeps all files of the "
            "profiler: logs, plots and raw data. Left out, they are gone when the Job's pod is."
        ),
    ] = msgspec.field(name="outputPVC", default=None)
    resources: Annotated[
        Object | None,
        Field("Requests and limits of the profiler's container.", embeds="ResourceRequirements"),
    ] = None
    tolerations: Annotated[
        tuple[Object, ...],
        Field(
            "Taints that the profiling pod tolerates, for example to reach nodes with GPUs.",
            embeds="Toleration",
        ),
    ] = ()
    node_selector: Annotated[
        dict[str, str],
        Field("Labels of the nodes on which the profiling pod may run.", max_properties=MOST_ENTRIES),
    ] = {}
    affinity: Annotated[
        Object | None, Field("Which nodes the profiling pod prefers or needs.", embeds="Affinity")
    ] = None
    env: Annotated[
        tuple[Object, ...],
        Field(
            "Environment variables of the profiler's container, after those of the operator. "
            "`DGDR_NAME`, `DGDR_NAMESPACE` and `DGDR_UID` are the operator's.",
            embeds="EnvVar",
            max_items=MOST_ENTRIES,
        ),
    ] = ()
    env_from: Annotated[
        tuple[Object, ...],
        Field(
            "ConfigMaps and Secrets whose keys become environment variables of the profiler's container.",
            embeds="EnvFromSource",
            max_items=MOST_ENTRIES,
        ),
    ] = ()
    image_pull_secrets: Annotated[
        tuple[Object, ...],
        Field(
            "Secrets with credentials for the profiling pod's images, beside `nvcr-imagepullsecret`.",
            embeds="LocalObjectReference",
            max_items=MOST_ENTRIES,
        ),
    ] = ()
    service_account_name: Annotated[
        str | None,
        Field(
            "ServiceAccount of the profiling pod, in place of the operator's. It needs "
            "the permissions of the ClusterRole for profiling.",
            max_length=SUBDOMAIN_LIMIT,
        ),
    ] = None
    priority_class_name: Annotated[
        str | None, Field("Priority of the profiling pod.", max_length=SUBDOMAIN_LIMIT)
    ] = None
    runtime_class_name: Annotated[
        str | None,
        Field("Container runtime of the profiling pod, such as `nvidia`.", max_length=SUBDOMAIN_LIMIT),
    ] = None
    labels: Annotated[
        dict[str, str],
        Field(
            "Labels of the Job and its pod. Those of the operator cannot be set.", max_properties=MOST_ENTRIES
        ),
    ] = {}
    annotations: Annotated[
        dict[str, str], Field("Annotations of the Job and its pod.", max_properties=MOST_ENTRIES)
    ] = {}
    ttl_seconds_after_finished: Annotated[
        int | None,
        Field(
            "Seconds from the Job's end to its deletion, at least 60. Left out, it stays as long "
            "as the request.",
            minimum=0,
            format="int32",
        ),
    ] = None
    backoff_limit: Annotated[
        int | None,
        Field(
            "Replacements for pods that are lost, for example to an eviction; default 3. A "
            "profiler that has failed does not run again.",
            minimum=0,
            format="int32",
        ),
    ] = None
    active_deadline_seconds: Annotated[
        int | None,
        Field("Seconds that profiling may take in total; default 86400, a day.", minimum=1, format="int64"),
    ] = None


class DeploymentOverrides(Struct):
    """Changes to the generated graph after profiling."""

    name: Annotated[str | None, Field("Name of the graph. Left out, it is the request's name.")] = None
    namespace: Annotated[str | None, Field("Namespace of the graph. Left out, it is the request's own.")] = (
        None
    )
    labels: Annotated[
        dict[str, str], Field("Labels of the graph, added to those that the operator sets.")
    ] = {}
    annotations: Annotated[dict[str, str], Field("Annotations of the graph.")] = {}
    workers_image: Annotated[
        str | None,
        Field(
            "Image of the workers, in the graphs deployed while profiling and in the final one. "
            "Left out, the image of the base document stays."
        ),
    ] = None


class DynamoGraphDeploymentRequestSpec(Struct):
    """What to profile, and what to do with the result. Immutable once profiling has started."""

    model: Annotated[str, Field("Model to deploy, such as `Qwen/Qwen3-0.6B`; also given to the profiler.")]
    backend: Annotated[
        Literal["vllm", "sglang", "trtllm", "auto"],
        Field(
            "Inference backend to profile; also given to the profiler. `auto` lets the profiler choose, "
            "which that of this operator cannot."
        ),
    ]
    profiling_config: Annotated[ProfilingConfig, Field("Settings of the profiling Job.", required=True)] = (
        ProfilingConfig()
    )
    use_mocker: Annotated[
        bool,
        Field(
            "Deploy simulated engines, which need no GPU and answer with the measured timing. "
            "Profiling itself still runs the real backend.",
            default=False,
        ),
    ] = False
    enable_gpu_discovery: Annotated[
        bool,
        Field(
            "Let the profiler read the GPUs of the cluster's nodes instead of the hardware section "
            "of its configuration. Only an operator that manages the whole cluster can grant this.",
            default=False,
        ),
    ] = False
    auto_apply: Annotated[
        bool,
        Field(
            "Create the generated graph. Otherwise it is only stored in "
            "`status.generatedDeployment`, for you to review and apply.",
            default=False,
        ),
    ] = False
    deployment_overrides: Annotated[
        DeploymentOverrides | None, Field("Name, namespace, metadata and image of the generated graph.")
    ] = None
    runtime_version_override: Annotated[
        str | None,
        Field(
            "Version of the Dynamo runtime in the images, if their tags are not versions.",
            pattern=RUNTIME_VERSION_PATTERN,
        ),
    ] = None


class DeploymentStatus(Struct):
    """The graph that was created for a request."""

    name: Annotated[str | None, Field("Name of the graph.")] = None
    namespace: Annotated[str | None, Field("Namespace of the graph.")] = None
    state: Annotated[str | None, Field("Copy of the graph's `status.state`.")] = None
    created: Annotated[
        bool, Field("Whether the graph was created. A graph that you delete is not recreated.")
    ] = False
    replicas: Annotated[
        int | None, Field("Replicas of all services, of a request in `v1beta1`.", minimum=0, format="int32")
    ] = None
    available_replicas: Annotated[
        int | None, Field("Those of them that are available.", minimum=0, format="int32")
    ] = None


ABSENT, NONE_FOUND = msgspec.Raw(b"null"), msgspec.Raw(b"[]")


def as_text(value: object) -> msgspec.Raw:
    """A value as a status keeps it: decoded, the results of a request would take twelve times the memory."""
    return msgspec.Raw(msgspec.json.encode(value))


class SharedRequestStatus(Status):
    """Fields of a request's status that are the same in both versions."""

    observed_generation: Annotated[
        int, Field("Generation of the spec that the request was accepted with.", format="int64")
    ] = 0
    message: Annotated[str | None, Field("Current step, or the cause of the failure, in one sentence.")] = (
        None
    )
    profiling_job_name: Annotated[str | None, Field("Name of the Job that profiles.")] = None
    start_time: Annotated[str | None, Field("When profiling was requested.", format="date-time")] = None
    completion_time: Annotated[
        str | None, Field("When profiling succeeded or failed.", format="date-time")
    ] = None


class DynamoGraphDeploymentRequestStatus(SharedRequestStatus):
    """Progress of a request."""

    state: Annotated[
        str | None,
        Field(
            "Stage of the request: empty, `Pending`, `Profiling`, `Deploying`, `Ready`, "
            "`DeploymentDeleted` or `Failed`."
        ),
    ] = None
    backend: Annotated[str | None, Field("Copy of `spec.backend`, for `kubectl get`.")] = None
    conditions: Annotated[
        tuple[Condition, ...],
        Field(
            "Current conditions of the request, one entry per type: `Validation`, `Profiling`, "
            "`SpecGenerated`, `DeploymentReady`, and `Succeeded`, which sums them up."
        ),
    ] = ()
    profiling_results: Annotated[str | None, Field("ConfigMap with the results, as `configmap/NAME`.")] = None
    graph_text: Annotated[
        msgspec.Raw,
        JsonText(Object),
        Field(
            "The whole generated DynamoGraphDeployment, ready to be applied.",
            free_form=True,
            embedded_resource=True,
        ),
    ] = msgspec.field(name="generatedDeployment", default=ABSENT)
    config_maps_text: Annotated[
        msgspec.Raw,
        JsonText(tuple[Object, ...]),
        Field("The ConfigMaps that profiling found for the graph, which mounts them.", free_form=True),
    ] = msgspec.field(name="additionalResources", default=NONE_FOUND)
    deployment: Annotated[DeploymentStatus | None, Field("The graph created because of `autoApply`.")] = None
    profiling_phase: Annotated[
        str | None,
        Field(
            "Phase that the profiler reports: `Initializing`, `SweepingPrefill`, `SweepingDecode`, "
            "`SelectingConfig`, `BuildingCurves`, `GeneratingDGD` or `Done`."
        ),
    ] = None
    accepted_spec: Annotated[
        msgspec.Raw,
        JsonText(Object),
        Field(
            "The spec that the request was accepted with and is carried out by. Later changes of "
            "`spec` have no effect.",
            free_form=True,
        ),
    ] = ABSENT

    @property
    def generated_deployment(self) -> Object | None:
        """The generated graph, decoded."""
        graph: Object | None = msgspec.json.decode(self.graph_text)
        return graph

    @property
    def additional_resources(self) -> tuple[Object, ...]:
        """The ConfigMaps of the graph, decoded."""
        return from_json(self.config_maps_text, tuple[Object, ...])


class DynamoGraphDeploymentRequest(Resource):
    """Asks for a graph that serves a model well; the operator profiles the model to find it.

    Once profiling has started the spec is fixed: to change it, delete the request and make
    a new one.
    """

    KIND = Kind(GROUP, VERSION, "DynamoGraphDeploymentRequest", "dynamographdeploymentrequests")
    DEFINITION: ClassVar = Definition(
        short_names=("dgdr",),
        categories=CATEGORIES,
        columns=(
            Column("Model", ".spec.model"),
            Column("Backend", ".status.backend"),
            Column("State", ".status.state"),
            Column("DGD-State", ".status.deployment.state"),
            AGE,
            Column("Phase", ".status.profilingPhase", priority=1),
            Column("Reason", '.status.conditions[?(@.type=="Succeeded")].reason', priority=1),
            Column("Message", ".status.message", priority=1),
        ),
    )

    spec: Annotated[
        DynamoGraphDeploymentRequestSpec | None, Field("What to profile, and what to do with the answer.")
    ] = None
    status: Annotated[DynamoGraphDeploymentRequestStatus, Field("Observed state of the request.")] = (
        DynamoGraphDeploymentRequestStatus()
    )


class RequestState(StrEnum):
    """Values of `status.state`."""

    NEW = ""
    PENDING = "Pending"
    PROFILING = "Profiling"
    DEPLOYING = "Deploying"
    READY = "Ready"
    DELETED = "DeploymentDeleted"
    FAILED = "Failed"


class RequestConditionType(StrEnum):
    """Types of conditions."""

    VALIDATION = "Validation"
    PROFILING = "Profiling"
    GENERATED = "SpecGenerated"
    DEPLOYED = "DeploymentReady"
    SUCCEEDED = "Succeeded"


class RequestReason(StrEnum):
    """Reasons of conditions."""

    ACCEPTED = "ValidationPassed"
    VALIDATION_FAILED = "ValidationFailed"
    JOB_CREATION_FAILED = "JobCreationFailed"
    PROFILING_RUNNING = "ProfilingRunning"
    PROFILING_FAILED = "ProfilingFailed"
    PROFILING_COMPLETED = "ProfilingCompleted"
    GENERATION_FAILED = "GenerationFailed"
    GENERATED = "SpecGenerated"
    DEPLOYMENT_CREATED = "DeploymentCreated"
    DEPLOYMENT_CREATION_FAILED = "DeploymentCreationFailed"
    DEPLOYMENT_READY = "DeploymentReady"
    DEPLOYMENT_DEGRADED = "DeploymentDegraded"
    DEPLOYMENT_FAILED = "DeploymentFailed"
    DEPLOYMENT_DELETED = "DeploymentDeleted"
    NAME_CONFLICT = "NameConflict"
    STARTED_ANEW = "StartedAnew"
    WAITING = "WaitingForEarlierJob"
    PAUSED = "Paused"
    UNREADABLE = "DecodeFailed"
    TOO_LARGE = "TooLarge"
    REJECTED = "RejectedByApiServer"
    NEW = "New"


FIXED = frozenset((RequestState.PROFILING, RequestState.DEPLOYING, RequestState.READY, RequestState.DELETED))
"""States in which a change of the spec has no effect."""

HELD = (RequestReason.PAUSED, RequestReason.UNREADABLE, RequestReason.TOO_LARGE, RequestReason.REJECTED)
"""Reasons of `Succeeded` while the operator does nothing for a request; the next report replaces them."""


def held_generation(conditions: tuple[Condition, ...], generation: int) -> int:
    """The generation of `Succeeded` while a request is held: as before, since no spec is processed then."""
    before = (it.observed_generation for it in conditions if it.type == RequestConditionType.SUCCEEDED)
    return next(before, None) or generation


_LONGEST = 1024
"""Characters of the annotation; a record has less than 400."""


# A user who may write the status of a request may not create what the request creates, and perhaps
# not even change the request. So the status only reports. What the next action depends on is in the
# record, which only users who may change the spec too can write: the status is a subresource, and
# its writers cannot write metadata (docs/decisions/0067-a-status-is-not-an-order.md).
#
# The accepted spec and the results are too large for an annotation. They stay in the status, and
# count if they have the recorded digest.
class Record(Struct):
    """What the operator has done. The fields are filled in their order.

    `uid` is that of the request, so that a copied manifest has no record. `generation` and `spec` are the
    generation and the digest of the accepted spec, `job` is the uid of the Job, `results` the digest of the
    graph and the ConfigMaps that profiling found; "" until then. `created`: the graph was created.
    """

    uid: str
    generation: int
    spec: str
    job: str = ""
    results: str = ""
    created: bool = False


def recorded(request: DynamoGraphDeploymentRequest) -> Record | None:
    """The record of the request; None if it has none, such as a request of an earlier operator."""
    text = request.metadata.annotations.get(labels.REQUEST_RECORD, "")
    if not text or len(text) > _LONGEST:
        return None
    with suppress(msgspec.MsgspecError, RecursionError):
        record = from_json(text, Record)
        return record if record.uid == request.metadata.uid else None
    return None


def annotation(record: Record) -> dict[str, str]:
    """The annotation with the record."""
    return {labels.REQUEST_RECORD: msgspec.json.encode(record).decode()}


def with_spec(request: DynamoGraphDeploymentRequest) -> Record:
    """The record once the status has the accepted spec. It is empty: nothing was done for this spec."""
    metadata, accepted = request.metadata, request.status.accepted_spec
    return Record(metadata.uid, metadata.generation, _digest(accepted))


def extended(request: DynamoGraphDeploymentRequest, **fields: Any) -> Record:
    """The record with these fields. That of an earlier operator's request begins with its present spec."""
    record = recorded(request)
    if record is None:
        spec = _digest(as_text(accepted_spec(request)))
        record = Record(request.metadata.uid, request.metadata.generation, spec)
    return replace(record, **fields)


def with_results(request: DynamoGraphDeploymentRequest) -> Record:
    """The record once the status has the results."""
    return extended(request, results=results_digest(request))


def accepted_spec(request: DynamoGraphDeploymentRequest) -> DynamoGraphDeploymentRequestSpec:
    """Return the spec that counts: the accepted one, else the present one.

    Raises:
        ValueError: the request has neither.
    """
    if accepted := accepted_text(request):
        with suppress(msgspec.ValidationError, RecursionError):  # of a release with other fields
            return from_json(accepted, DynamoGraphDeploymentRequestSpec)
    if request.spec is None:
        raise ValueError("spec is missing")
    return request.spec


def accepted_text(request: DynamoGraphDeploymentRequest) -> msgspec.Raw | None:
    """The accepted spec in the status; None unless it is the recorded one."""
    record, accepted = recorded(request), request.status.accepted_spec
    return accepted if record is not None and record.spec == _digest(accepted) else None


def accepted_generation(request: DynamoGraphDeploymentRequest) -> int:
    """The generation of the accepted spec; 0 if none was accepted."""
    record = recorded(request)
    return request.status.observed_generation if record is None else record.generation


def has_results(request: DynamoGraphDeploymentRequest) -> bool:
    """Whether the results in the status are those that the operator read."""
    record = recorded(request)
    return record is not None and record.results != "" and record.results == results_digest(request)


def results_digest(request: DynamoGraphDeploymentRequest) -> str:
    """The digest of the graph and the ConfigMaps in the status; "" without a graph."""
    status = request.status
    return "" if status.graph_text == ABSENT else _digest(status.graph_text, status.config_maps_text)


def _digest(*texts: msgspec.Raw) -> str:
    """The digest of a value, or a list of them, as the API server returned them; sent ones may differ.

    "" if it is nested too deeply: a forged status must not stop the reconciles of other requests.
    """
    try:
        values = [msgspec.json.decode(text) for text in texts]
        encoded = msgspec.json.encode(values if len(values) > 1 else values[0], order="deterministic")
    except RecursionError:
        return ""
    return hashlib.sha256(encoded).hexdigest()
