"""The next step of a DynamoGraphDeploymentRequest: its status and some facts in, one action out.

The states are those of the API: empty, Pending, Profiling, Deploying, Ready, DeploymentDeleted, Failed.
Each action may have happened already, by a process that was killed before it could record that. So every
action is safe to repeat, and the next one follows from the actual state, never from what was done.
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
    TOO_EXPENSIVE = "TooExpensive"
    NEW = "New"


class Stage(Enum):
    """What a request is waiting for; it says which facts are needed."""

    JUDGED = "to be validated"
    STARTED = "to be started"
    PROFILED = "to be profiled"
    DEPLOYED = "to be deployed"
    NOTHING = "nothing"


class Action(Enum):
    """What is done next."""

    REST = "nothing"
    ACCEPT = "record the spec that counts from now on"
    REFUSE = "say what is wrong with the spec"
    CLEAR = "delete the Job of an earlier spec"
    WAIT = "say what is left of an earlier Job"
    START = "create the Job"
    BEGIN = "record that the Job runs"
    WATCH = "say how far the Job is"
    FAIL_START = "say that the Job's name is taken"
    OUTPUT_TAKEN = "say that the name of the results is taken"
    FAIL = "say why profiling failed"
    VANISHED = "say that the Job is gone"
    HARVEST = "record what profiling has found"
    RENAME = "record new names for ConfigMaps whose names are taken"
    CREATE = "create the graph"
    CONFLICT = "say that the graph's name is taken"
    MIRROR = "say how the graph is"
    LOSE = "record that the graph was deleted"
    SETTLE = "record that there is nothing to deploy"


FIXED = frozenset(
    (RequestState.PROFILING, RequestState.DEPLOYING, RequestState.READY, RequestState.DELETED)
)
"""In these states a change of the spec has no effect."""

RETRIED: dict[tuple[RequestConditionType, RequestReason], Stage] = {
    (RequestConditionType.PROFILING, RequestReason.JOB_CREATION_FAILED): Stage.STARTED,
    (RequestConditionType.PROFILING, RequestReason.NAME_CONFLICT): Stage.STARTED,
    (RequestConditionType.DEPLOYED, RequestReason.DEPLOYMENT_CREATION_FAILED): Stage.DEPLOYED,
    (RequestConditionType.DEPLOYED, RequestReason.NAME_CONFLICT): Stage.DEPLOYED,
}
"""Failures whose cause others can remove, and the stage at which the request then continues."""


_STAGES: dict[str, Stage] = {
    RequestState.PENDING: Stage.STARTED,
    RequestState.PROFILING: Stage.PROFILED,
    RequestState.DEPLOYING: Stage.DEPLOYED,
    RequestState.READY: Stage.DEPLOYED,
    RequestState.DELETED: Stage.NOTHING,
}


@dataclass(frozen=True, slots=True)
class Destination:
    """The namespace where a request creates its graph, as far as it matters for what is created there.

    `refusal` says why nothing may be; "" means that it may. `config_maps` are those that are there, by name,
    of the names that are needed; none are read where nothing may be created.
    """

    namespace: str
    refusal: str = ""
    config_maps: Mapping[str, Output] = field(default_factory=dict[str, Output])


UNREAD = Destination("", "its namespace was not read")
"""Nothing is created by mistake."""


@dataclass(frozen=True, slots=True)
class RequestFacts:
    """What there is, as far as the stage asks for it.

    `problems` are of the spec, or of what it names. `pods_left` are the names of pods of an earlier
    Job that have not ended, `pods` those of a Job that runs or has failed. `witnesses` are the Job that has
    ended and its pods, with their specs, where there are results. `temporary` are graphs that a profiler has
    left that failed. `config_maps` are those of the base graph that are there, by name: the user's, and the
    one that the operator makes of it. None means: there is no such object.
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
    """The spec by which the request is carried out: the accepted one, else the present one.

    Raises:
        ValueError: there is neither.
    """
    accepted = request.status.accepted_spec
    if accepted is not None:
        with suppress(msgspec.ValidationError):  # a user changed it
            return msgspec.convert(accepted, DynamoGraphDeploymentRequestSpec)
    if request.spec is None:
        raise ValueError("spec is missing")
    return request.spec


def as_accepted(spec: DynamoGraphDeploymentRequestSpec) -> Object:
    """The spec as it is kept in the status."""
    kept: Object = msgspec.json.decode(msgspec.json.encode(spec))
    return kept


def stage(request: DynamoGraphDeploymentRequest) -> Stage:
    """What the request is waiting for."""
    status = request.status
    state = status.state or RequestState.NEW
    if state == RequestState.FAILED:
        is_edited = request.metadata.generation != status.observed_generation
        return Stage.JUDGED if is_edited and _is_new(request) else _retried(status)
    if (
        state in (RequestState.DEPLOYING, RequestState.READY)
        and not accepted_spec(request).auto_apply
    ):
        return Stage.NOTHING
    return _STAGES.get(state, Stage.JUDGED)  # an unknown state


def next_step(request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Action:
    """What is to be done now. It is total: there is an act for everything that can be found."""
    match stage(request):
        case Stage.JUDGED:
            return Action.REFUSE if facts.problems else Action.ACCEPT
        case Stage.STARTED:
            return _start(request, facts)
        case Stage.PROFILED:
            return _profile(request, facts)
        case Stage.DEPLOYED:
            return _deploy(request, facts)
        case Stage.NOTHING:
            is_stuck = request.status.state == RequestState.DEPLOYING
            return Action.SETTLE if is_stuck else Action.REST


def is_of_request(request: DynamoGraphDeploymentRequest, graph: Resource) -> bool:
    """Whether a graph was made for this very request, or by an operator that wrote no uid."""
    uid = graph.metadata.annotations.get(labels.REQUEST_UID)
    if uid is not None:
        return uid == request.metadata.uid
    is_led_back = tracking(request).items() <= graph.metadata.labels.items()
    deployment = request.status.deployment
    return is_led_back and deployment is not None and deployment.created


def end_of(job: Job) -> Condition | None:
    """The condition that says that the Job is over. None means: it is not."""
    for type_ in ("Complete", "Failed"):
        end = condition(job.status.conditions, type_)
        if end is not None and end.status == "True":
            return end
    return None


def _is_new(request: DynamoGraphDeploymentRequest) -> bool:
    """Whether the spec was changed after the request has failed, by what we said of it then."""
    succeeded = condition(request.status.conditions, RequestConditionType.SUCCEEDED)
    return succeeded is not None and succeeded.observed_generation != request.metadata.generation


def _retried(status: DynamoGraphDeploymentRequestStatus) -> Stage:
    if condition(status.conditions, RequestConditionType.SUCCEEDED) is None:
        return Stage.NOTHING  # an earlier operator gave up; the request does not continue
    if status.observed_generation == 0:
        return Stage.JUDGED
    for (type_, reason), where in RETRIED.items():
        failed = condition(status.conditions, type_)
        if failed is not None and (failed.status, failed.reason) == ("False", reason):
            return where
    return Stage.NOTHING


def _start(request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Action:
    if facts.job is not None:
        if not controls(request, facts.job):
            return Action.FAIL_START
        if facts.job.metadata.deletion_timestamp:
            return Action.WAIT  # its removal wakes the request
        return Action.BEGIN if _is_current(request, facts.job) else Action.CLEAR
    if facts.pods_left:
        return Action.WAIT  # or they would write over what the next ones find
    if request.metadata.generation != request.status.observed_generation:
        return Action.REFUSE if facts.problems else Action.ACCEPT
    output, ours = facts.output, names.label_value(request.metadata.name)
    is_taken = output is not None and output.metadata.labels.get(labels.REQUEST) != ours
    return Action.OUTPUT_TAKEN if is_taken else Action.START


def _is_current(request: DynamoGraphDeploymentRequest, job: Job) -> bool:
    made_for = job.metadata.annotations.get(labels.REQUEST_GENERATION)
    return made_for is None or made_for == str(request.status.observed_generation)


def _profile(request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Action:
    job = facts.job
    if job is None or not controls(request, job):
        return Action.HARVEST if _has_results(request, facts.output) else Action.VANISHED
    end = end_of(job)
    if end is None:
        return Action.WATCH
    return Action.HARVEST if end.type == "Complete" else Action.FAIL


def _has_results(request: DynamoGraphDeploymentRequest, output: Output | None) -> bool:
    """Whether there are results of this very request, whose Job may be gone by now."""
    if output is None:
        return False
    is_own = any(owner.uid == request.metadata.uid for owner in output.metadata.owner_references)
    return is_own and bool({RESULTS_FILE, MOCKED_RESULTS_FILE} & output.data.keys())


def _deploy(request: DynamoGraphDeploymentRequest, facts: RequestFacts) -> Action:
    deployment, graph = request.status.deployment, facts.graph
    was_created = deployment is not None and deployment.created
    if graph is None and was_created:
        return Action.LOSE
    if graph is None:
        present = facts.destination.config_maps
        return Action.RENAME if renamed_config_maps(request, present) else Action.CREATE
    if is_of_request(request, graph):
        return Action.MIRROR
    return Action.LOSE if was_created else Action.CONFLICT
