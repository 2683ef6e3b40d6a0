"""The reasons of conditions; `status.catalog` explains each one, and docs/status.md lists them.

Reasons that exist in the Go operator keep its spelling, and new ones follow the case of their kind. Those of
models and requests are in `plan`, which decides by them.
"""

from enum import StrEnum
from typing import Literal, get_args


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
    TOO_EXPENSIVE = "too_expensive"
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
    TOO_EXPENSIVE = "TooExpensive"


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
