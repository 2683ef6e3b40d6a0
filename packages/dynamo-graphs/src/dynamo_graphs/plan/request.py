"""The next step of a DynamoGraphDeploymentRequest: its status and some facts in, one action out.

A process may be killed after an action and before it records it. So every action is idempotent, and the next
one follows from the actual state.
"""

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, StrEnum

import msgspec

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.profiling import MOCKED_RESULTS_FILE, RESULTS_FILE
from dynamo_graphs.api.request import (
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    DynamoGraphDeploymentRequestStatus,
)
from dynamo_graphs.plan.request_graph import renamed_config_maps, tracking
from dynamo_graphs.types.profiling import JobInFull, JobPod, JobPodInFull, Output
from kube_runtime.apply.result import controls
from kube_runtime.kind import Object
from kube_runtime.types.batch import Job
from kube_runtime.types.meta import Condition, Resource, condition


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
    TOO_EXPENSIVE = "TooExpensive"
    NEW = "New"


class Stage(Enum):
    """What a request is waiting for, which decides what has to be read."""

    VALIDATION = "validation of its spec"
    START = "start of profiling"
    PROFILING = "profiling"
    DEPLOYMENT = "creation of its graph, and the graph's state"
    NOTHING = "nothing"


class Action(Enum):
    """What to do next."""

    NOTHING = "nothing"
    ACCEPT = "record the accepted spec"
    REJECT = "report the problems of the spec"
    DELETE_OLD_JOB = "delete the Job of an earlier spec"
    WAIT = "report what is left of an earlier Job"
    START = "create the Job"
    RECORD_START = "record that the Job runs"
    REPORT_PROGRESS = "report the progress of the Job"
    JOB_NAME_TAKEN = "report that the Job's name is taken"
    OUTPUT_TAKEN = "report that the name of the results is taken"
    FAIL = "report why profiling failed"
    JOB_LOST = "report that the Job was deleted"
    COLLECT_RESULTS = "record the results of profiling"
    RENAME = "record new names for ConfigMaps whose names are taken"
    CREATE = "create the graph"
    GRAPH_NAME_TAKEN = "report that the graph's name is taken"
    SYNC_STATUS = "copy the state of the graph"
    MARK_DELETED = "record that the graph was deleted"
    FINISH = "record that there is nothing to deploy"


FIXED = frozenset(
    (RequestState.PROFILING, RequestState.DEPLOYING, RequestState.READY, RequestState.DELETED)
)
"""States in which a change of the spec has no effect."""

RETRIED: dict[tuple[RequestConditionType, RequestReason], Stage] = {
    (RequestConditionType.PROFILING, RequestReason.JOB_CREATION_FAILED): Stage.START,
    (RequestConditionType.PROFILING, RequestReason.NAME_CONFLICT): Stage.START,
    (RequestConditionType.DEPLOYED, RequestReason.DEPLOYMENT_CREATION_FAILED): Stage.DEPLOYMENT,
    (RequestConditionType.DEPLOYED, RequestReason.NAME_CONFLICT): Stage.DEPLOYMENT,
}
"""Failures whose cause users can remove, with the stage at which the request continues."""


_STAGES: dict[str, Stage] = {
    RequestState.PENDING: Stage.START,
    RequestState.PROFILING: Stage.PROFILING,
    RequestState.DEPLOYING: Stage.DEPLOYMENT,
    RequestState.READY: Stage.DEPLOYMENT,
    RequestState.DELETED: Stage.NOTHING,
}


@dataclass(frozen=True, slots=True)
class Destination:
    """The namespace where a request creates its graph.

    `refusal` is the reason why nothing may be created there, or "". `config_maps` are the existing ones among
    those that the graph needs, by name; empty if nothing may be created.
    """

    namespace: str
    refusal: str = ""
    config_maps: Mapping[str, Output] = field(default_factory=dict[str, Output])


UNREAD = Destination("", "its namespace was not read")
"""The default, so that nothing is created without a check."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """The objects that the stage of a request depends on; None for an object that does not exist.

    `problems` are those of the spec and of the objects that it names. `pods_left` are the names of
    running pods of an earlier Job, `pods` those of a running or failed Job. `witnesses` are the Job that
    wrote the results and its pods, with their specs. `temporary` are graphs that a failed profiler left
    behind. `config_maps` are the existing ones of the base graph, by name: the user's, and the completed
    one of the operator.
    """

    problems: tuple[str, ...] = ()
    job: Job | None = None
    pods_left: tuple[str, ...] = ()
    pods: tuple[JobPod, ...] = ()
    output: Output | None = None
    witnesses: tuple[JobInFull | None, tuple[JobPodInFull, ...]] = (None, ())
    graph: DynamoGraphDeployment | None = None
    temporary: tuple[DynamoGraphDeployment, ...] = ()
    config_maps: Mapping[str, Output] = field(default_factory=dict[str, Output])
    destination: Destination = UNREAD


def accepted_spec(request: DynamoGraphDeploymentRequest) -> DynamoGraphDeploymentRequestSpec:
    """Return the spec that counts: the accepted one, else the present one.

    Raises:
        ValueError: the request has neither.
    """
    accepted = request.status.accepted_spec
    if accepted is not None:
        with suppress(msgspec.ValidationError):  # edited by a user
            return msgspec.convert(accepted, DynamoGraphDeploymentRequestSpec)
    if request.spec is None:
        raise ValueError("spec is missing")
    return request.spec


def as_accepted(spec: DynamoGraphDeploymentRequestSpec) -> Object:
    """The spec in the form that the status stores."""
    kept: Object = msgspec.json.decode(msgspec.json.encode(spec))
    return kept


def stage(request: DynamoGraphDeploymentRequest) -> Stage:
    """Return what the request is waiting for."""
    status = request.status
    state = status.state or RequestState.NEW
    if state == RequestState.FAILED:
        is_edited = request.metadata.generation != status.observed_generation
        return Stage.VALIDATION if is_edited and _is_new(request) else _retried(status)
    if (
        state in (RequestState.DEPLOYING, RequestState.READY)
        and not accepted_spec(request).auto_apply
    ):
        return Stage.NOTHING
    return _STAGES.get(state, Stage.VALIDATION)  # an unknown state


def next_step(request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Action:
    """Decide what to do now; there is an action for every combination of inputs."""
    match stage(request):
        case Stage.VALIDATION:
            return Action.REJECT if facts.problems else Action.ACCEPT
        case Stage.START:
            return _start(request, facts)
        case Stage.PROFILING:
            return _profile(request, facts)
        case Stage.DEPLOYMENT:
            return _deploy(request, facts)
        case Stage.NOTHING:
            is_stuck = request.status.state == RequestState.DEPLOYING
            return Action.FINISH if is_stuck else Action.NOTHING


def is_of_request(request: DynamoGraphDeploymentRequest, graph: Resource) -> bool:
    """Whether a graph was created for this request, by its uid, or without one by an earlier operator."""
    uid = graph.metadata.annotations.get(labels.REQUEST_UID)
    if uid is not None:
        return uid == request.metadata.uid
    has_labels = tracking(request).items() <= graph.metadata.labels.items()
    deployment = request.status.deployment
    return has_labels and deployment is not None and deployment.created


def end_of(job: Job) -> Condition | None:
    """The condition `Complete` or `Failed` of a Job that has ended, else None."""
    for type_ in ("Complete", "Failed"):
        end = condition(job.status.conditions, type_)
        if end is not None and end.status == "True":
            return end
    return None


def _is_new(request: DynamoGraphDeploymentRequest) -> bool:
    """Whether the spec has changed since the failure was reported."""
    succeeded = condition(request.status.conditions, RequestConditionType.SUCCEEDED)
    return succeeded is not None and succeeded.observed_generation != request.metadata.generation


def _retried(status: DynamoGraphDeploymentRequestStatus) -> Stage:
    if condition(status.conditions, RequestConditionType.SUCCEEDED) is None:
        return Stage.NOTHING  # failed under an earlier operator
    if status.observed_generation == 0:
        return Stage.VALIDATION
    for (type_, reason), stage_ in RETRIED.items():
        failed = condition(status.conditions, type_)
        if failed is not None and (failed.status, failed.reason) == ("False", reason):
            return stage_
    return Stage.NOTHING


def _start(request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Action:
    if facts.job is not None:
        if not controls(request, facts.job):
            return Action.JOB_NAME_TAKEN
        if facts.job.metadata.deletion_timestamp:
            return Action.WAIT  # its deletion triggers a reconcile
        return Action.RECORD_START if _is_current(request, facts.job) else Action.DELETE_OLD_JOB
    if facts.pods_left:
        return Action.WAIT  # they could overwrite the results of the next Job
    if request.metadata.generation != request.status.observed_generation:
        return Action.REJECT if facts.problems else Action.ACCEPT
    output, ours = facts.output, names.label_value(request.metadata.name)
    is_taken = output is not None and output.metadata.labels.get(labels.REQUEST) != ours
    return Action.OUTPUT_TAKEN if is_taken else Action.START


def _is_current(request: DynamoGraphDeploymentRequest, job: Job) -> bool:
    made_for = job.metadata.annotations.get(labels.REQUEST_GENERATION)
    return made_for is None or made_for == str(request.status.observed_generation)


def _profile(request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Action:
    job = facts.job
    if job is None or not controls(request, job):
        return Action.COLLECT_RESULTS if _has_results(request, facts.output) else Action.JOB_LOST
    end = end_of(job)
    if end is None:
        return Action.REPORT_PROGRESS
    return Action.COLLECT_RESULTS if end.type == "Complete" else Action.FAIL


def _has_results(request: DynamoGraphDeploymentRequest, output: Output | None) -> bool:
    """Whether the results of this request exist; its Job may have been deleted."""
    if output is None:
        return False
    is_own = any(owner.uid == request.metadata.uid for owner in output.metadata.owner_references)
    return is_own and bool({RESULTS_FILE, MOCKED_RESULTS_FILE} & output.data.keys())


def _deploy(request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Action:
    deployment, graph = request.status.deployment, facts.graph
    was_created = deployment is not None and deployment.created
    if graph is None and was_created:
        return Action.MARK_DELETED
    if graph is None:
        present = facts.destination.config_maps
        return Action.RENAME if renamed_config_maps(request, present) else Action.CREATE
    if is_of_request(request, graph):
        return Action.SYNC_STATUS
    return Action.MARK_DELETED if was_created else Action.GRAPH_NAME_TAKEN
