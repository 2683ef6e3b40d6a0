"""The status of a DynamoGraphDeploymentRequest after each action, and the events that go with it.

A status is all the memory there is: what was accepted, what was found and where the graph is must be in it
before the next action relies on it.
"""

from dynamo_graphs.api import names
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestSpec
from dynamo_graphs.plan.request import (
    FIXED,
    RequestConditionType,
    RequestReason,
    RequestState,
    as_accepted,
)
from dynamo_graphs.plan.request_output import ProfilingProgress, ProfilingResult
from dynamo_graphs.status.request_conditions import (
    Events,
    RequestReport,
    request_condition,
    request_status,
    summary,
)
from kube_runtime.kind import Key, Object
from kube_runtime.types.meta import Condition, condition

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
    failed = request_condition(
        request, RequestConditionType.VALIDATION, "False", RequestReason.VALIDATION_FAILED, text
    )
    status = request_status(
        request, RequestState.FAILED, failed, message=text, observedGeneration=None
    )
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
            request, each, "Unknown", RequestReason.STARTED_ANEW, "The spec has changed"
        )
        for each in (
            RequestConditionType.PROFILING,
            RequestConditionType.GENERATED,
            RequestConditionType.DEPLOYED,
        )
        if condition(request.status.conditions, each)
    ]
    status = request_status(
        request,
        RequestState.PENDING,
        *(valid, *again),
        message="Profiling is about to start",
        observedGeneration=request.metadata.generation,
        backend=spec.backend,
        acceptedSpec=as_accepted(spec),
        generatedDeployment=None,
        additionalResources=None,
        profilingResults=None,
        deployment=None,
        profilingPhase=None,
        profilingJobName=None,
        startTime=None,
        completionTime=None,
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
    status = request_status(
        request,
        RequestState.PROFILING,
        running,
        message=_RUNNING,
        profilingJobName=names.profiling_job(request.metadata.name),
        startTime=now,
    )
    return RequestReport(status, (("ProfilingJobCreated", text, False),))


def watched(
    request: DynamoGraphDeploymentRequest, said: ProfilingProgress, obstacle: str
) -> RequestReport:
    """The Job runs, or waits for something."""
    text = f"{_RUNNING}: {obstacle}" if obstacle else _RUNNING
    running = request_condition(
        request, RequestConditionType.PROFILING, "False", RequestReason.PROFILING_RUNNING, text
    )
    message = f"{_RUNNING}: {obstacle or said.message}" if obstacle or said.message else _RUNNING
    phase = {"profilingPhase": said.phase} if said.phase else {}
    return RequestReport(
        request_status(request, RequestState.PROFILING, running, message=message, **phase)
    )


def not_started(
    request: DynamoGraphDeploymentRequest, reason: RequestReason, text: str
) -> RequestReport:
    """The Job could not be made."""
    failed = request_condition(request, RequestConditionType.PROFILING, "False", reason, text)
    status = request_status(request, RequestState.FAILED, failed, message=text)
    return RequestReport(status, (("ProfilingJobFailed", text, True),))


def profiling_failed(
    request: DynamoGraphDeploymentRequest, text: str, said: ProfilingProgress, now: str
) -> RequestReport:
    """The Job has come to a bad end, or is gone."""
    failed = request_condition(
        request, RequestConditionType.PROFILING, "False", RequestReason.PROFILING_FAILED, text
    )
    phase = {"profilingPhase": said.phase} if said.phase else {}
    status = request_status(
        request,
        RequestState.FAILED,
        failed,
        message=text,
        completionTime=_end(request, now),
        **phase,
    )
    return RequestReport(status, (("ProfilingCheckFailed", text, True),))


def not_generated(
    request: DynamoGraphDeploymentRequest, text: str, said: ProfilingProgress, now: str
) -> RequestReport:
    """The Job has ended well, and what it left cannot be used."""
    failed = request_condition(
        request, RequestConditionType.GENERATED, "False", RequestReason.GENERATION_FAILED, text
    )
    phase = {"profilingPhase": said.phase} if said.phase else {}
    status = request_status(
        request,
        RequestState.FAILED,
        *(_completed(request), failed),
        message=text,
        completionTime=_end(request, now),
        **phase,
    )
    return RequestReport(status, (("GenerationFailed", text, True),))


def generated(
    request: DynamoGraphDeploymentRequest,
    found: ProfilingResult,
    said: ProfilingProgress,
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
    more: Object = {"profilingPhase": said.phase} if said.phase else {}
    if target is not None:
        more["deployment"] = {"name": target.name, "namespace": target.namespace}
    status = request_status(
        request,
        RequestState.DEPLOYING if target else RequestState.READY,
        *(_completed(request), done),
        message="; ".join((text, *(each for _, each in warnings))),
        generatedDeployment=found.graph,
        additionalResources=list(found.config_maps) or None,
        profilingResults=f"configmap/{output_name(request)}",
        completionTime=_end(request, now),
        **more,
    )
    odd = tuple((reason, each, True) for reason, each in warnings)
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
    return RequestReport({"conditions": [held]}, (("Paused", text, False),))


def too_expensive(request: DynamoGraphDeploymentRequest, text: str) -> RequestReport:
    """Nothing is done until the spec changes, or after a while."""
    held = request_condition(
        request, RequestConditionType.SUCCEEDED, "False", RequestReason.TOO_EXPENSIVE, text
    )
    return RequestReport({"conditions": [held]}, (("TooExpensive", text, True),))


def change_rejected(
    request: DynamoGraphDeploymentRequest,
) -> Events:
    """The event about a change of the spec that comes too late; once for each change."""
    status = request.status
    said = condition(status.conditions, RequestConditionType.SUCCEEDED)
    generation = request.metadata.generation
    if status.state not in FIXED or generation == status.observed_generation:
        return ()
    if said is not None and said.observed_generation == generation:
        return ()
    text = (
        f"Cannot modify spec in state '{status.state}'. DynamoGraphDeploymentRequest is immutable once "
        "profiling starts. Create a new resource with a different name instead."
    )
    return (("SpecChangeRejected", text, True),)


def has_to_be_restated(request: DynamoGraphDeploymentRequest) -> bool:
    """Whether a pause is over, or the spec was changed too late, and the status does not show it."""
    said = condition(request.status.conditions, RequestConditionType.SUCCEEDED)
    was_held = said is not None and said.reason in _HELD
    return was_held or bool(change_rejected(request))


def output_name(request: DynamoGraphDeploymentRequest) -> str:
    """The ConfigMap with the results."""
    return names.profiling_output(request.metadata.name)


def restated(request: DynamoGraphDeploymentRequest) -> RequestReport:
    """The same as before, said about the newest generation of the spec."""
    said = condition(request.status.conditions, RequestConditionType.SUCCEEDED)
    if said is None or said.reason in _HELD:
        status = request.status
        last = summary(
            request, RequestState(status.state or ""), status.conditions, status.message or ""
        )
        return RequestReport({"conditions": [last]})
    again = request_condition(
        request, RequestConditionType.SUCCEEDED, said.status, said.reason, said.message
    )
    return RequestReport({"conditions": [again]})


def _completed(request: DynamoGraphDeploymentRequest) -> Condition:
    text = "Profiling job completed successfully"
    return request_condition(
        request, RequestConditionType.PROFILING, "True", RequestReason.PROFILING_COMPLETED, text
    )


def _end(request: DynamoGraphDeploymentRequest, now: str) -> str:
    """When profiling has ended; it is recorded once."""
    return request.status.completion_time or now
