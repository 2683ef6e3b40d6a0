"""Conditions: their reasons, how they are built, and when an object is ready, paused or stopped."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cache as cached
from typing import Final, Literal, NamedTuple, TypeAlias, TypeVar, get_args

import msgspec
from msgspec.structs import replace

from dynamo_operator import labels
from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel, ModelReason
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest, RequestReason, held_generation
from dynamo_operator.shared.problems import Problem
from kube_runtime.types.meta import Condition, Kind, Resource, Status, condition, new_condition, status_of


class GraphState(StrEnum):
    """`status.state`."""

    INITIALIZING = "initializing"
    PENDING = "pending"
    SUCCESSFUL = "successful"
    FAILED = "failed"


# Reasons that exist in the Go operator keep its spelling, and new ones follow the case of their
# kind. Those of models are in `models/api.py`, of requests in `requests/api.py`, of the suspension in its
# feature.
class GraphReason(StrEnum):
    """Reasons of a graph's `Ready`, `Progressing` and `ConfigurationWarning`."""

    ALL_READY = "all_resources_are_ready"
    SOME_NOT_READY = "some_resources_are_not_ready"
    INSUFFICIENT_CAPACITY = "insufficient_capacity"
    IMAGE_PULL_FAILED = "image_pull_failed"
    CONFIG_ERROR = "config_error"
    PODS_CRASHING = "pods_crashing"
    PODS_NOT_READY = "pods_not_ready"
    UPDATING = "updating"
    SUSPENDED = "suspended"
    MIXED = "mixed_not_ready_reasons"
    VALIDATION_FAILED = "ValidationFailed"
    NAME_CONFLICT = "name_conflict"
    REJECTED = "rejected_by_api_server"
    FAILED = "failed_to_reconcile_the_resources"
    NO_ORCHESTRATOR = "no_multinode_orchestrator"
    API_FORBIDDEN = "optional_api_forbidden"
    PROVIDER_UNAVAILABLE = "selected_workload_provider_unavailable"
    DECODE_FAILED = "decode_failed"
    TOO_LARGE = "too_large"
    UPDATE_COMPLETE = "update_complete"
    DEADLINE_EXCEEDED = "progress_deadline_exceeded"
    NOT_ALLOWED = "exposure_not_allowed"
    INOPERATIVE = "will_not_work_as_written"
    NO_WARNING = "no_warning"


PodReason = Literal[
    GraphReason.INSUFFICIENT_CAPACITY,
    GraphReason.IMAGE_PULL_FAILED,
    GraphReason.CONFIG_ERROR,
    GraphReason.PODS_CRASHING,
    GraphReason.PODS_NOT_READY,
]
POD_REASONS: tuple[PodReason, ...] = get_args(PodReason)
"""Why a pod is not ready, worst first. A service has the reason of its worst pod."""


class ComponentReason(StrEnum):
    """Reasons of a component's conditions."""

    VALID = "ValidationPassed"
    VALIDATION_FAILED = "ValidationFailed"
    DEPLOYMENT_READY = "DeploymentReady"
    DEPLOYMENT_NOT_READY = "DeploymentNotReady"
    GROUPS_READY = "AllLeaderWorkerSetsReady"
    GROUPS_NOT_READY = "SomeLeaderWorkerSetsNotReady"
    NO_ORCHESTRATOR = "MultinodeOrchestratorUnavailable"
    API_FORBIDDEN = "OptionalApiForbidden"
    NAME_CONFLICT = "NameConflict"
    REJECTED = "RejectedByApiServer"
    NOT_SERVED = "ApiNotServed"
    NOT_ALLOWED = "ExposureNotAllowed"
    DECODE_FAILED = "DecodeFailed"
    TOO_LARGE = "TooLarge"


class ScalingReason(StrEnum):
    """Reasons of an adapter's `Ready`."""

    SCALED = "scaled"
    SCALING = "scaling"
    GRAPH_NOT_FOUND = "dgd_not_found"
    SERVICE_NOT_FOUND = "service_not_found"
    DISABLED = "disabled"
    SUPERSEDED = "superseded"
    SUSPENDED = "suspended"
    PAUSED = "paused"
    REJECTED = "rejected_by_api_server"
    DECODE_FAILED = "decode_failed"
    TOO_LARGE = "too_large"


class PauseReason(StrEnum):
    """Reasons of `Progressing` on a paused graph, and of the `Paused` of a component or a model."""

    GRAPH_PAUSED = "paused"
    COMPONENT_PAUSED = "Paused"
    COMPONENT_NOT_PAUSED = "NotPaused"


SUSPENDED: Final = "Suspended"
"""The type of the condition of a graph at zero replicas; `features.suspension` sets it."""

_PAUSED: Final = "Paused"
_PAUSED_TEXT: Final = f"{labels.PAUSED} is true: the operator writes nothing for this object"


def paused_status(resource: Resource) -> Status:
    """The status of a paused object: a graph reports it in `Progressing`, the other kinds in `Paused`."""
    status = status_of(resource)
    type_, state, reason = _PAUSED, "True", PauseReason.COMPONENT_PAUSED
    if isinstance(resource, DynamoGraphDeployment):
        status = replace(status, progress=None)  # the progress deadline no longer runs
        type_, state, reason = "Progressing", "Unknown", PauseReason.GRAPH_PAUSED
    return status.with_conditions([new_condition(resource, type_, state, reason, _PAUSED_TEXT)])


def pause_over(generation: int, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """`Paused` is False, for an object with these conditions; empty if it was never paused."""
    if condition(conditions, _PAUSED) is None:
        return ()
    text, reason = "Reconciliation has resumed", PauseReason.COMPONENT_NOT_PAUSED
    return (Condition(_PAUSED, "False", reason, text, observed_generation=generation),)


# A CRD accepts objects although nothing reconciles them. The text has the time of creation and
# stays the same, so it costs one write.
def unobserved(live: Resource, project: str) -> str:
    """The obstacle of an object whose status is empty; `project` is whose controller should write it."""
    created = live.metadata.creation_timestamp
    since = f" since it was created at {created}" if created else ""
    return (
        f"no controller has observed {live.KIND.name} {live.metadata.name}{since}; if that lasts, "
        f"check that the controller of {project} runs"
    )


Stated: TypeAlias = (
    DynamoGraphDeployment
    | DynamoComponentDeployment
    | DynamoGraphDeploymentScalingAdapter
    | DynamoModel
    | DynamoGraphDeploymentRequest
)
"""An object of ours that has conditions."""

_SUMMARY_TYPES = {
    DynamoGraphDeployment: "Ready",
    DynamoComponentDeployment: "Available",
    DynamoGraphDeploymentScalingAdapter: "Ready",
    DynamoModel: "EndpointsReady",
    DynamoGraphDeploymentRequest: "Succeeded",
}


def summary(stated: Stated) -> Condition | None:
    """The condition that sums up the others; None if the operator has not written it yet."""
    return condition(stated.status.conditions, _SUMMARY_TYPES[type(stated)])


# After an edit the conditions still describe the previous spec, so each names its generation. A
# refused graph has conditions about its newest spec, but an older `observedGeneration`.
def seen_generation(stated: Stated) -> int:
    """The newest generation that the status describes; 0 if none."""
    observed = [entry.observed_generation or 0 for entry in stated.status.conditions]
    if not isinstance(stated, DynamoModel):  # the only kind without the field
        observed.append(stated.status.observed_generation)
    return max(observed, default=0)


def is_behind(stated: Stated) -> bool:
    """Whether the newest spec has not been reconciled yet.

    A request follows the spec that was accepted, so later changes do not count.
    """
    if isinstance(stated, DynamoGraphDeploymentRequest):
        return not stated.status.conditions
    return seen_generation(stated) < stated.metadata.generation


def is_ready(stated: Stated) -> bool:
    """Whether the newest spec is ready and the object is not being deleted."""
    overall = summary(stated)
    if overall is None or overall.status != "True" or stated.metadata.deletion_timestamp:
        return False
    if isinstance(stated, DynamoGraphDeploymentRequest) or overall.observed_generation is None:
        return not is_behind(stated)
    return overall.observed_generation >= stated.metadata.generation


@dataclass(frozen=True, slots=True)
class Stop:
    """The status to write, and the reason and message of the Event. Running pods keep running."""

    status: Status
    reason: str
    texts: Sequence[str]


def stop_of_problems(status: Status, problems: Sequence[Problem]) -> Stop:
    """Stop because the spec is invalid."""
    return Stop(status, "ValidationFailed", [str(problem) for problem in problems])


def in_v1beta1(resource: Resource, problems: Iterable[Problem]) -> tuple[Problem, ...]:
    """The problems of an object in the words of v1beta1."""
    from dynamo_operator.shared.written import Written  # only where there are two versions

    seen = {"kind": resource.KIND.name, "spec": msgspec.to_builtins(getattr(resource, "spec", None))}
    return tuple(map(Written({}, seen).problem, problems))


REJECTED_RETRY_SECONDS = 120.0
"""Seconds until a refused write is retried."""

CONFLICT_RETRY_SECONDS = 10.0
"""Seconds until a taken name is checked again, in the cache: it costs no request."""


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """The reason and message of an Event, and whether it is a warning."""

    reason: str
    message: str
    is_warning: bool = False


S = TypeVar("S", bound=Status)


class _BareStatus(Status):
    """The part of a status that is the same for all kinds."""

    state: str = ""
    observed_generation: int = 0
    ready_endpoints: int | None = None
    total_endpoints: int | None = None


class _Bare(Resource):
    """An object of any kind without its spec."""

    READ_LEVELS = 4  # a condition, or an owner reference

    status: _BareStatus = _BareStatus()


class FailureReasons(NamedTuple):
    """The conditions of a kind, and their reasons.

    `rejected` is for a failed write on which everything else depends, such as one of the object's metadata.
    """

    conditions: tuple[str, ...]
    unreadable: str
    too_large: str
    rejected: str


FAILURE_REASONS: dict[type[Resource], FailureReasons] = {
    DynamoGraphDeployment: FailureReasons(
        ("Ready",), GraphReason.DECODE_FAILED, GraphReason.TOO_LARGE, GraphReason.REJECTED
    ),
    DynamoComponentDeployment: FailureReasons(
        ("Available", "DynamoComponentReady"),
        ComponentReason.DECODE_FAILED,
        ComponentReason.TOO_LARGE,
        ComponentReason.REJECTED,
    ),
    DynamoGraphDeploymentScalingAdapter: FailureReasons(
        ("Ready",), ScalingReason.DECODE_FAILED, ScalingReason.TOO_LARGE, ScalingReason.REJECTED
    ),
    DynamoModel: FailureReasons(
        ("Valid",), ModelReason.DECODE_FAILED, ModelReason.TOO_LARGE, ModelReason.REJECTED
    ),
    DynamoGraphDeploymentRequest: FailureReasons(
        ("Succeeded",), RequestReason.UNREADABLE, RequestReason.TOO_LARGE, RequestReason.REJECTED
    ),
}
"""Of the kinds of today. A `Reporter` of others has theirs."""


@cached
def bare_type(kind: Kind) -> type[_Bare]:
    """A type for objects of the kind without their specs."""
    return type(f"Bare{kind.name}", (_Bare,), {"KIND": kind})


def failed_status(
    type_: type[Resource], conditions: Iterable[str], status: S, generation: int, reason: str, text: str
) -> S:
    """The status of an object of that type for which the operator can do nothing."""
    if type_ is DynamoGraphDeploymentRequest:
        generation = held_generation(status.conditions, generation)
    status = status.with_conditions(
        Condition(condition, "False", reason, text, observed_generation=generation)
        for condition in conditions
    )
    is_graph = type_ is DynamoGraphDeployment
    return replace(status, state=str(GraphState.FAILED)) if is_graph else status
