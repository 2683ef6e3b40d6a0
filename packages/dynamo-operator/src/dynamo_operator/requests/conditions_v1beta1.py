"""The status of a request that was written in v1beta1, in the words of that version, and back.

The operator decides by its own reasons, so both directions are needed: it reads what it wrote.
"""

from typing import Final

from msgspec.structs import replace

from dynamo_operator.requests.api import HELD, RequestState
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.api import RequestConditionType as Type
from dynamo_operator.requests.api import RequestReason as Reason
from kube_runtime.types.meta import Condition, condition

Conditions = tuple[Condition, ...]

_PHASES: Final = (
    *("Initializing", "SweepingPrefill", "SweepingDecode", "SelectingConfig", "BuildingCurves"),
    *("GeneratingDGD", "Done"),
)
"""What a profiler reports, which is the reason of `Profiling` while it runs."""

_NAMES: Final = {phase: phase for phase in _PHASES} | {
    "Initializing": str(Reason.PROFILING_RUNNING),
    "Done": "Completed",
}
_FAILURES: Final = {phase: f"{phase}Failed" for phase in _PHASES}
_DEPLOYMENT: Final[dict[str, str]] = {
    Reason.DEPLOYMENT_CREATED: "DeploymentInProgress",
    Reason.DEPLOYMENT_CREATION_FAILED: "DeploymentRejected",
}
_IN_PROGRESS: Final = ("Pending", "Profiling", "Deploying")
_READY: Final = "Ready"
_SUCCESSES: Final = {"Ready": "SpecGenerated", "Deployed": "Deployed"}
"""Reasons of a request that is ready, by its phase."""

_PREFIXES: Final = {
    Type.VALIDATION: "Validation failed: ",
    Type.PROFILING: "Profiling failed: ",
    Type.GENERATED: "Spec generation failed: ",
    Type.DEPLOYED: "Deployment failed: ",
}
"""How the message of a failed request begins, by the condition that says why."""


def written(status: RequestStatus) -> RequestStatus:
    """The status as it is written, in the words of v1beta1."""
    phase, deployment, profiling_phase = status.state or "", status.deployment, status.profiling_phase
    if phase == RequestState.READY and deployment and deployment.created:
        phase = "Deployed"
    conditions = to_v1beta1(status.conditions, phase, profiling_phase or "")
    if phase == RequestState.DELETED:
        status = replace(status, state=RequestState.FAILED.value, deployment=None)
    if phase not in (RequestState.PROFILING, RequestState.FAILED):
        status = replace(status, profiling_phase=None)
    return replace(status, conditions=conditions)


def read(request: Request) -> Request:
    """The request, whose status is in the words of v1beta1, with that by which the operator decides."""
    status = request.status
    conditions, state = to_v1alpha1(status.conditions), status.state
    deployed = condition(conditions, Type.DEPLOYED)
    if state == RequestState.FAILED and deployed and deployed.reason == Reason.DEPLOYMENT_DELETED:
        state = RequestState.DELETED.value
    return replace(request, status=replace(status, conditions=conditions, state=state))


def to_v1beta1(conditions: Conditions, phase: str, profiling_phase: str) -> Conditions:
    """The conditions of a request in this phase, whose profiler reports `profiling_phase` or nothing, ""."""
    return tuple(
        _summary_to_v1beta1(each, conditions, phase, profiling_phase)
        if each.type == Type.SUCCEEDED
        else replace(each, reason=_later_reason(each.type, each.reason, profiling_phase))
        for each in conditions
    )


def _later_reason(type_: str, reason: str, profiling_phase: str) -> str:
    if type_ == Type.PROFILING and reason == Reason.PROFILING_RUNNING:
        return _NAMES.get(profiling_phase, reason)
    if type_ == Type.PROFILING and reason == Reason.PROFILING_FAILED:
        return _FAILURES.get(profiling_phase, reason)
    return _DEPLOYMENT.get(reason, reason) if type_ == Type.DEPLOYED else reason


def _summary_to_v1beta1(
    summary: Condition, conditions: Conditions, phase: str, profiling_phase: str
) -> Condition:
    if summary.status == "Unknown":
        return replace(summary, status="False") if summary.reason in _IN_PROGRESS else summary
    if summary.status == "True":
        return replace(summary, reason=_SUCCESSES.get(phase, summary.reason))
    if summary.reason in HELD:
        return summary
    failed = {each.type: each for each in conditions if each.status == "False" and each.message}
    cause = next((failed[type_] for type_ in _PREFIXES if type_ in failed), None)
    if cause is None:
        return summary
    reason = _later_reason(cause.type, summary.reason, profiling_phase)
    return replace(summary, reason=reason, message=_PREFIXES[Type(cause.type)] + summary.message)


def to_v1alpha1(conditions: Conditions) -> Conditions:
    """The conditions that the operator wrote, of those that it reads."""
    return tuple(
        _summary_to_v1alpha1(each)
        if each.type == Type.SUCCEEDED
        else replace(each, reason=_own_reason(each.type, each.reason))
        for each in conditions
    )


_OWN_OF_PROFILING: Final[dict[str, str]] = {
    **dict.fromkeys(_NAMES.values(), Reason.PROFILING_RUNNING),
    **dict.fromkeys(_FAILURES.values(), Reason.PROFILING_FAILED),
}
_OWN_OF_DEPLOYMENT: Final = {later: own for own, later in _DEPLOYMENT.items()}


def _own_reason(type_: str, reason: str) -> str:
    own = {Type.PROFILING: _OWN_OF_PROFILING, Type.DEPLOYED: _OWN_OF_DEPLOYMENT}
    return next((names.get(reason, reason) for of, names in own.items() if of == type_), reason)


def _summary_to_v1alpha1(summary: Condition) -> Condition:
    if summary.status == "True":
        is_ready = summary.reason in _SUCCESSES.values()
        return replace(summary, reason=_READY) if is_ready else summary
    if summary.status == "Unknown" or summary.reason in HELD:
        return summary
    if summary.reason in _IN_PROGRESS:
        return replace(summary, status="Unknown")
    for type_, prefix in _PREFIXES.items():
        if summary.message.startswith(prefix):
            reason = _own_reason(type_, summary.reason)
            return replace(summary, reason=reason, message=summary.message.removeprefix(prefix))
    return summary
