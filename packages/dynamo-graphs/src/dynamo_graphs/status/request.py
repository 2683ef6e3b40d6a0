"""The status of a DynamoGraphDeploymentRequest after each action, and the events that go with it.

A status is all the memory there is: what was accepted, what was found and where the graph is must be in it
before the next action relies on it.
"""

from dataclasses import dataclass
from typing import TypeAlias

from msgspec.structs import replace

from dynamo_graphs.api import names
from dynamo_graphs.api.request import (
    DeploymentStatus,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    DynamoGraphDeploymentRequestStatus,
)
from dynamo_graphs.plan.request import (
    FIXED,
    RequestConditionType,
    RequestReason,
    RequestState,
    as_accepted,
)
from dynamo_graphs.plan.request_output import ProfilingProgress, ProfilingResult
from kube_runtime.kind import Key
from kube_runtime.types.meta import Condition, condition

MESSAGE_LIMIT = 4096
"""Characters of a condition's message. The API server takes eight times as many."""


Events: TypeAlias = tuple[tuple[str, str, bool], ...]
"""Reason, text, and whether it is a warning."""


@dataclass(frozen=True, slots=True)
class RequestReport:
    """A status to write, and the events to queue once it is written."""

    status: DynamoGraphDeploymentRequestStatus
    events: Events = ()


def request_status(
    request: DynamoGraphDeploymentRequest,
    state: RequestState,
    *conditions: Condition,
    message: str,
) -> DynamoGraphDeploymentRequestStatus:
    """The request's status in this state, with `conditions` and the one that sums them up."""
    message = message[:MESSAGE_LIMIT]
    succeeded = summary(request, state, conditions, message)
    return replace(
        request.status, state=str(state), message=message, conditions=(*conditions, succeeded)
    )


def summary(
    request: DynamoGraphDeploymentRequest,
    state: RequestState,
    conditions: tuple[Condition, ...],
    message: str,
) -> Condition:
    """The condition that sums the others up."""
    match state:
        case RequestState.READY:
            value, reason = "True", "Ready"
        case RequestState.FAILED | RequestState.DELETED:
            steps = (step for step in conditions if step.type != RequestConditionType.SUCCEEDED)
            failed = [step for step in steps if step.status == "False"]
            value, reason = "False", failed[-1].reason if failed else str(state)
        case _:
            held = any(step.reason == RequestReason.WAITING for step in conditions)
            value = "Unknown"
            reason = RequestReason.WAITING if held else str(state) or RequestReason.NEW
    return request_condition(request, RequestConditionType.SUCCEEDED, value, reason, message)


def failed_status(
    request: DynamoGraphDeploymentRequest,
    type_: RequestConditionType,
    reason: RequestReason,
    text: str,
    *earlier: Condition,
) -> DynamoGraphDeploymentRequestStatus:
    """The status of a request that has failed at the step of this condition, after `earlier` ones."""
    failed = request_condition(request, type_, "False", reason, text)
    return request_status(request, RequestState.FAILED, *earlier, failed, message=text)


def request_condition(
    request: DynamoGraphDeploymentRequest,
    type_: RequestConditionType,
    value: str,
    reason: str,
    text: str,
) -> Condition:
    """A condition about the generation of the spec that it describes."""
    generation = None if type_ is RequestConditionType.DEPLOYED else request.metadata.generation
    if (
        type_ in (RequestConditionType.PROFILING, RequestConditionType.GENERATED)
        and request.status.observed_generation
    ):
        generation = request.status.observed_generation  # of the spec that it is about
    return Condition(
        type_, value, str(reason), text[:MESSAGE_LIMIT], observed_generation=generation
    )


_RUNNING = "Profiling is in progress"
_HELD = (
    RequestReason.PAUSED,
    RequestReason.UNREADABLE,
    RequestReason.TOO_LARGE,
    RequestReason.TOO_EXPENSIVE,
)
"""Reasons of `Succeeded` while the operator does nothing for a request; updated when that ends."""


def refused(request: DynamoGraphDeploymentRequest, problems: tuple[str, ...]) -> RequestReport:
    """The spec cannot be carried out."""
    text = "\n".join(problems)
    type_, reason = RequestConditionType.VALIDATION, RequestReason.VALIDATION_FAILED
    status = replace(failed_status(request, type_, reason, text), observed_generation=0)
    return RequestReport(status, (("ValidationFailed", text, True),))


def accepted(
    request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec
) -> RequestReport:
    """The spec counts from now on; what was found for an earlier one is forgotten."""
    text = "DGDR initialized successfully"
    valid = request_condition(
        request,
        RequestConditionType.VALIDATION,
        "True",
        RequestReason.ACCEPTED,
        "The spec is valid",
    )
    again = [
        request_condition(
            request, type_, "Unknown", RequestReason.STARTED_ANEW, "The spec has changed"
        )
        for type_ in (
            RequestConditionType.PROFILING,
            RequestConditionType.GENERATED,
            RequestConditionType.DEPLOYED,
        )
        if condition(request.status.conditions, type_)
    ]
    pending = request_status(
        request, RequestState.PENDING, *(valid, *again), message="Profiling is about to start"
    )
    status = DynamoGraphDeploymentRequestStatus(
        state=pending.state,
        message=pending.message,
        conditions=pending.conditions,
        observed_generation=request.metadata.generation,
        backend=spec.backend,
        accepted_spec=as_accepted(spec),
    )
    return RequestReport(status, (("Initialized", text, False),))


def waiting(request: DynamoGraphDeploymentRequest, text: str) -> RequestReport:
    """The Job is not made yet, because something is left of an earlier one."""
    text = f"Profiling waits for an earlier Job to terminate: {text}"
    held = request_condition(
        request, RequestConditionType.PROFILING, "False", RequestReason.WAITING, text
    )
    return RequestReport(request_status(request, RequestState.PENDING, held, message=text))


def begun(request: DynamoGraphDeploymentRequest, now: str, *, is_offline: bool) -> RequestReport:
    """The Job is there."""
    text = f"{'AIC profiling' if is_offline else 'Profiling'} job created"
    running = request_condition(
        request, RequestConditionType.PROFILING, "False", RequestReason.PROFILING_RUNNING, _RUNNING
    )
    status = replace(
        request_status(request, RequestState.PROFILING, running, message=_RUNNING),
        profiling_job_name=names.profiling_job(request.metadata.name),
        start_time=now,
    )
    return RequestReport(status, (("ProfilingJobCreated", text, False),))


def watched(
    request: DynamoGraphDeploymentRequest, progress: ProfilingProgress, obstacle: str
) -> RequestReport:
    """The Job runs, or waits for something."""
    text = f"{_RUNNING}: {obstacle}" if obstacle else _RUNNING
    running = request_condition(
        request, RequestConditionType.PROFILING, "False", RequestReason.PROFILING_RUNNING, text
    )
    message = (
        f"{_RUNNING}: {obstacle or progress.message}" if obstacle or progress.message else _RUNNING
    )
    status = request_status(request, RequestState.PROFILING, running, message=message)
    return RequestReport(_in_phase(status, progress))


def output_taken(request: DynamoGraphDeploymentRequest) -> RequestReport:
    """The ConfigMap of the results has a name that is in use."""
    text = (
        f"ConfigMap {output_name(request)} exists and is not from profiling; the operator leaves it "
        "alone: rename or delete it"
    )
    return not_started(request, RequestReason.NAME_CONFLICT, text)


def not_started(
    request: DynamoGraphDeploymentRequest, reason: RequestReason, text: str
) -> RequestReport:
    """The Job could not be made."""
    status = failed_status(request, RequestConditionType.PROFILING, reason, text)
    return RequestReport(status, (("ProfilingJobFailed", text, True),))


def profiling_failed(
    request: DynamoGraphDeploymentRequest, text: str, progress: ProfilingProgress, now: str
) -> RequestReport:
    """The Job has come to a bad end, or is gone."""
    type_, reason = RequestConditionType.PROFILING, RequestReason.PROFILING_FAILED
    status = failed_status(request, type_, reason, text)
    status = replace(_in_phase(status, progress), completion_time=_end(request, now))
    return RequestReport(status, (("ProfilingCheckFailed", text, True),))


def not_generated(
    request: DynamoGraphDeploymentRequest, text: str, progress: ProfilingProgress, now: str
) -> RequestReport:
    """The Job has ended well, and what it left cannot be used."""
    type_, reason = RequestConditionType.GENERATED, RequestReason.GENERATION_FAILED
    status = failed_status(request, type_, reason, text, _completed(request))
    status = replace(_in_phase(status, progress), completion_time=_end(request, now))
    return RequestReport(status, (("GenerationFailed", text, True),))


def generated(
    request: DynamoGraphDeploymentRequest,
    result: ProfilingResult,
    progress: ProfilingProgress,
    *,
    target: Key | None,
    warnings: tuple[tuple[str, str], ...],
    now: str,
) -> RequestReport:
    """There is a graph. `target` None means: its creation was not requested."""
    event = "DynamoGraphDeployment spec generated successfully"
    text = event if target else "Generated spec is available in status.generatedDeployment"
    done = request_condition(
        request, RequestConditionType.GENERATED, "True", RequestReason.GENERATED, text
    )
    status = request_status(
        request,
        RequestState.DEPLOYING if target else RequestState.READY,
        *(_completed(request), done),
        message="; ".join((text, *(warning for _, warning in warnings))),
    )
    planned = DeploymentStatus(target.name, target.namespace) if target else None
    status = replace(
        _in_phase(status, progress),
        generated_deployment=result.graph,
        additional_resources=tuple(result.config_maps),
        profiling_results=f"configmap/{output_name(request)}",
        completion_time=_end(request, now),
        deployment=planned or request.status.deployment,
    )
    odd = tuple((reason, warning, True) for reason, warning in warnings)
    return RequestReport(status, (("SpecGenerated", event, False), *odd))


def settled(request: DynamoGraphDeploymentRequest) -> RequestReport:
    """There is nothing to deploy."""
    return RequestReport(
        request_status(request, RequestState.READY, message=request.status.message or "")
    )


def paused(request: DynamoGraphDeploymentRequest, text: str) -> RequestReport:
    """Nothing is done until a user asks for it."""
    held = request_condition(
        request, RequestConditionType.SUCCEEDED, "Unknown", RequestReason.PAUSED, text
    )
    return RequestReport(request.status.with_conditions([held]), (("Paused", text, False),))


def too_expensive(request: DynamoGraphDeploymentRequest, text: str) -> RequestReport:
    """Nothing is done until the spec changes, or after a while."""
    held = request_condition(
        request, RequestConditionType.SUCCEEDED, "False", RequestReason.TOO_EXPENSIVE, text
    )
    return RequestReport(request.status.with_conditions([held]), (("TooExpensive", text, True),))


def change_rejected(request: DynamoGraphDeploymentRequest) -> Events:
    """The event about a change of the spec that comes too late; once for each change."""
    status = request.status
    succeeded = condition(status.conditions, RequestConditionType.SUCCEEDED)
    generation = request.metadata.generation
    if status.state not in FIXED or generation == status.observed_generation:
        return ()
    if succeeded is not None and succeeded.observed_generation == generation:
        return ()
    text = (
        f"Cannot modify spec in state '{status.state}'. DynamoGraphDeploymentRequest is immutable once "
        "profiling starts. Create a new resource with a different name instead."
    )
    return (("SpecChangeRejected", text, True),)


def has_to_be_restated(request: DynamoGraphDeploymentRequest) -> bool:
    """Whether a pause is over, or the spec was changed too late, and the status does not show it."""
    succeeded = condition(request.status.conditions, RequestConditionType.SUCCEEDED)
    was_held = succeeded is not None and succeeded.reason in _HELD
    return was_held or bool(change_rejected(request))


def output_name(request: DynamoGraphDeploymentRequest) -> str:
    """The ConfigMap with the results."""
    return names.profiling_output(request.metadata.name)


def restated(request: DynamoGraphDeploymentRequest) -> RequestReport:
    """The same as before, said about the newest generation of the spec."""
    succeeded = condition(request.status.conditions, RequestConditionType.SUCCEEDED)
    if succeeded is None or succeeded.reason in _HELD:
        status = request.status
        last = summary(
            request, RequestState(status.state or ""), status.conditions, status.message or ""
        )
        return RequestReport(status.with_conditions([last]))
    again = request_condition(
        request,
        RequestConditionType.SUCCEEDED,
        succeeded.status,
        succeeded.reason,
        succeeded.message,
    )
    return RequestReport(request.status.with_conditions([again]))


def _completed(request: DynamoGraphDeploymentRequest) -> Condition:
    text = "Profiling job completed successfully"
    return request_condition(
        request, RequestConditionType.PROFILING, "True", RequestReason.PROFILING_COMPLETED, text
    )


def _in_phase(
    status: DynamoGraphDeploymentRequestStatus, progress: ProfilingProgress
) -> DynamoGraphDeploymentRequestStatus:
    """The status with the phase that the profiler reports, if it does."""
    return replace(status, profiling_phase=progress.phase) if progress.phase else status


def _end(request: DynamoGraphDeploymentRequest, now: str) -> str:
    """When profiling has ended; it is recorded once."""
    return request.status.completion_time or now
