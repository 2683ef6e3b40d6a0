"""The status of a DynamoGraphDeploymentRequest after each action, and the events that go with it.

A status is all the memory there is: what was accepted, what was found and where the graph is must be in it
before the next action relies on it.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from dynamo_graphs.api import names
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestSpec
from dynamo_graphs.plan.request import (
    FIXED,
    RequestConditionType,
    RequestReason,
    RequestState,
    as_accepted,
)
from dynamo_graphs.plan.request_output import ProfilingProgress, ProfilingResult
from dynamo_graphs.status.graph import GraphState
from dynamo_graphs.status.reasons import GraphReason
from kube_runtime.kind import Key, Object
from kube_runtime.types.meta import Condition, condition

MESSAGE_LIMIT = 4096
"""Characters of a condition's message. The API server takes eight times as many."""

_RUNNING = "Profiling is in progress"
_HELD = (
    RequestReason.PAUSED,
    RequestReason.UNREADABLE,
    RequestReason.TOO_LARGE,
    RequestReason.TOO_EXPENSIVE,
)
"""Nothing is done for a request of which `Succeeded` says this, and it is said anew when that is over."""
_EXPLAINING = frozenset(GraphReason) - {
    GraphReason.ALL_READY,
    GraphReason.SOME_NOT_READY,
    GraphReason.PODS_NOT_READY,
    GraphReason.UPDATING,
    GraphReason.UPDATE_COMPLETE,
}
"""Reasons of a graph that contain more for a user than that it is not ready yet."""


Events: TypeAlias = tuple[tuple[str, str, bool], ...]
"""Reason, text, and whether it is a warning."""


@dataclass(frozen=True, slots=True)
class RequestReport:
    """A status to write, and the events to queue once it is written."""

    status: Object
    events: Events = ()


def refused(request: DynamoGraphDeploymentRequest, problems: tuple[str, ...]) -> RequestReport:
    """The spec cannot be carried out."""
    text = "\n".join(problems)
    failed = _condition(
        request, RequestConditionType.VALIDATION, "False", RequestReason.VALIDATION_FAILED, text
    )
    status = _status(request, RequestState.FAILED, failed, message=text, observedGeneration=None)
    return RequestReport(status, (("ValidationFailed", text, True),))


def accepted(
    request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec
) -> RequestReport:
    """The spec counts from now on; what was found for an earlier one is forgotten."""
    text = "DGDR initialized successfully"
    valid = _condition(
        request,
        RequestConditionType.VALIDATION,
        "True",
        RequestReason.ACCEPTED,
        "The spec is valid",
    )
    again = [
        _condition(request, each, "Unknown", RequestReason.STARTED_ANEW, "The spec has changed")
        for each in (
            RequestConditionType.PROFILING,
            RequestConditionType.GENERATED,
            RequestConditionType.DEPLOYED,
        )
        if condition(request.status.conditions, each)
    ]
    status = _status(
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
    held = _condition(request, RequestConditionType.PROFILING, "False", RequestReason.WAITING, text)
    return RequestReport(_status(request, RequestState.PENDING, held, message=text))


def begun(request: DynamoGraphDeploymentRequest, now: str, *, is_offline: bool) -> RequestReport:
    """The Job is there."""
    text = f"{'AIC profiling' if is_offline else 'Profiling'} job created"
    running = _condition(
        request, RequestConditionType.PROFILING, "False", RequestReason.PROFILING_RUNNING, _RUNNING
    )
    status = _status(
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
    running = _condition(
        request, RequestConditionType.PROFILING, "False", RequestReason.PROFILING_RUNNING, text
    )
    message = f"{_RUNNING}: {obstacle or said.message}" if obstacle or said.message else _RUNNING
    phase = {"profilingPhase": said.phase} if said.phase else {}
    return RequestReport(
        _status(request, RequestState.PROFILING, running, message=message, **phase)
    )


def not_started(
    request: DynamoGraphDeploymentRequest, reason: RequestReason, text: str
) -> RequestReport:
    """The Job could not be made."""
    failed = _condition(request, RequestConditionType.PROFILING, "False", reason, text)
    status = _status(request, RequestState.FAILED, failed, message=text)
    return RequestReport(status, (("ProfilingJobFailed", text, True),))


def profiling_failed(
    request: DynamoGraphDeploymentRequest, text: str, said: ProfilingProgress, now: str
) -> RequestReport:
    """The Job has come to a bad end, or is gone."""
    failed = _condition(
        request, RequestConditionType.PROFILING, "False", RequestReason.PROFILING_FAILED, text
    )
    phase = {"profilingPhase": said.phase} if said.phase else {}
    status = _status(
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
    failed = _condition(
        request, RequestConditionType.GENERATED, "False", RequestReason.GENERATION_FAILED, text
    )
    phase = {"profilingPhase": said.phase} if said.phase else {}
    status = _status(
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
    done = _condition(
        request, RequestConditionType.GENERATED, "True", RequestReason.GENERATED, text
    )
    more: Object = {"profilingPhase": said.phase} if said.phase else {}
    if target is not None:
        more["deployment"] = {"name": target.name, "namespace": target.namespace}
    status = _status(
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


def created(
    request: DynamoGraphDeploymentRequest, at: Key, warnings: tuple[str, ...]
) -> RequestReport:
    """The graph was created."""
    text = f"DGD {at.name} created, waiting for Ready"
    waiting = _condition(
        request, RequestConditionType.DEPLOYED, "False", RequestReason.DEPLOYMENT_CREATED, text
    )
    status = _status(
        request,
        RequestState.DEPLOYING,
        waiting,
        message="; ".join((text, *warnings)),
        deployment={
            "name": at.name,
            "namespace": at.namespace,
            "state": str(GraphState.PENDING),
            "created": True,
        },
    )
    event = ("DeploymentCreated", f"DynamoGraphDeployment {at.name} created successfully", False)
    odd = tuple(("ConfigMapCreationFailed", each, True) for each in warnings)
    return RequestReport(status, (event, *odd))


def not_created(
    request: DynamoGraphDeploymentRequest, reason: RequestReason, text: str
) -> RequestReport:
    """The graph could not be created."""
    failed = _condition(request, RequestConditionType.DEPLOYED, "False", reason, text)
    status = _status(request, RequestState.FAILED, failed, message=text)
    return RequestReport(status, (("DeploymentCreationFailed", text, True),))


def mirrored(request: DynamoGraphDeploymentRequest, graph: DynamoGraphDeployment) -> RequestReport:
    """The graph as it is now."""
    name, found = graph.metadata.name, graph.status.state or ""
    deployment = {
        "name": name,
        "namespace": graph.metadata.namespace,
        "state": found,
        "created": True,
    }
    if found == GraphState.SUCCESSFUL:
        text = f"DynamoGraphDeployment {name} is ready"
        ready = _condition(
            request, RequestConditionType.DEPLOYED, "True", RequestReason.DEPLOYMENT_READY, text
        )
        status = _status(request, RequestState.READY, ready, message=text, deployment=deployment)
        event = ("DeploymentReady", text, False)
        return RequestReport(status, () if request.status.state == RequestState.READY else (event,))
    why = _why(graph)
    reason, text, events = _unready(request, name, found)
    text = f"{text}: {why}" if why else text
    waiting = _condition(request, RequestConditionType.DEPLOYED, "False", reason, text)
    return RequestReport(
        _status(request, RequestState.DEPLOYING, waiting, message=text, deployment=deployment),
        events,
    )


def lost(request: DynamoGraphDeploymentRequest) -> RequestReport:
    """A user deleted the graph, and the operator does not recreate it."""
    deployment = request.status.deployment
    name = deployment.name if deployment and deployment.name else request.metadata.name
    text = "Deployment was deleted by user. Create a new DGDR to redeploy."
    gone = _condition(
        request, RequestConditionType.DEPLOYED, "False", RequestReason.DEPLOYMENT_DELETED, text
    )
    kept = {
        "name": name,
        "namespace": deployment.namespace if deployment else None,
        "created": True,
        "state": None,
    }
    event = (
        f"DGD {name} was deleted. DGDR will not recreate it. Delete this DGDR and create a new one to "
        "redeploy."
    )
    status = _status(request, RequestState.DELETED, gone, message=text, deployment=kept)
    return RequestReport(status, (("DeploymentDeleted", event, True),))


def settled(request: DynamoGraphDeploymentRequest) -> RequestReport:
    """There is nothing to deploy."""
    return RequestReport(_status(request, RequestState.READY, message=request.status.message or ""))


def paused(request: DynamoGraphDeploymentRequest, text: str) -> RequestReport:
    """Nothing is done until a user asks for it."""
    held = _condition(
        request, RequestConditionType.SUCCEEDED, "Unknown", RequestReason.PAUSED, text
    )
    return RequestReport({"conditions": [held]}, (("Paused", text, False),))


def too_expensive(request: DynamoGraphDeploymentRequest, text: str) -> RequestReport:
    """Nothing is done until the spec changes, or after a while."""
    held = _condition(
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
        last = _verdict(
            request, RequestState(status.state or ""), status.conditions, status.message or ""
        )
        return RequestReport({"conditions": [last]})
    again = _condition(
        request, RequestConditionType.SUCCEEDED, said.status, said.reason, said.message
    )
    return RequestReport({"conditions": [again]})


def _status(
    request: DynamoGraphDeploymentRequest,
    state: RequestState,
    *conditions: Condition,
    message: str,
    **more: Any,
) -> Object:
    message = message[:MESSAGE_LIMIT]
    summary = _verdict(request, state, conditions, message)
    return {
        "state": str(state),
        "message": message,
        "conditions": [*conditions, summary],
        **more,
    }


def _verdict(
    request: DynamoGraphDeploymentRequest,
    state: RequestState,
    conditions: tuple[Condition, ...],
    message: str,
) -> Condition:
    """The condition that sums the others up."""
    match state:
        case RequestState.READY:
            return _condition(request, RequestConditionType.SUCCEEDED, "True", "Ready", message)
        case RequestState.FAILED | RequestState.DELETED:
            steps = (each for each in conditions if each.type != RequestConditionType.SUCCEEDED)
            failed = [each for each in steps if each.status == "False"]
            reason = failed[-1].reason if failed else str(state)
            return _condition(request, RequestConditionType.SUCCEEDED, "False", reason, message)
        case _:
            held = (each.reason for each in conditions if each.reason == RequestReason.WAITING)
            reason = next(held, str(state) or RequestReason.NEW)
            return _condition(request, RequestConditionType.SUCCEEDED, "Unknown", reason, message)


def _completed(request: DynamoGraphDeploymentRequest) -> Condition:
    text = "Profiling job completed successfully"
    return _condition(
        request, RequestConditionType.PROFILING, "True", RequestReason.PROFILING_COMPLETED, text
    )


def _condition(
    request: DynamoGraphDeploymentRequest,
    type_: RequestConditionType,
    value: str,
    reason: str,
    text: str,
) -> Condition:
    generation = None if type_ is RequestConditionType.DEPLOYED else request.metadata.generation
    if (
        type_ in (RequestConditionType.PROFILING, RequestConditionType.GENERATED)
        and request.status.observed_generation
    ):
        generation = request.status.observed_generation  # of the spec that it is about
    return Condition(
        type_, value, str(reason), text[:MESSAGE_LIMIT], observed_generation=generation
    )


def _end(request: DynamoGraphDeploymentRequest, now: str) -> str:
    """When profiling has ended; it is recorded once."""
    return request.status.completion_time or now


def _why(graph: DynamoGraphDeployment) -> str:
    """The graph's own reason, if it contains more than that it is not ready yet."""
    ready = condition(graph.status.conditions, "Ready")
    if ready is None or ready.status == "True" or ready.reason not in _EXPLAINING:
        return ""
    return f"{ready.reason}: {ready.message}"


def _unready(
    request: DynamoGraphDeploymentRequest, name: str, found: str
) -> tuple[RequestReason, str, Events]:
    """Reason, text and event for a graph that is not ready."""
    before = condition(request.status.conditions, RequestConditionType.DEPLOYED)
    if found == GraphState.FAILED:
        event = ("DeploymentFailed", f"DynamoGraphDeployment {name} failed", True)
        is_known = before is not None and before.reason == RequestReason.DEPLOYMENT_FAILED
        return RequestReason.DEPLOYMENT_FAILED, f"DGD {name} failed", () if is_known else (event,)
    if request.status.state == RequestState.READY:
        text = f"DynamoGraphDeployment {name} degraded from Ready to {found}"
        event = ("DeploymentDegraded", text, True)
        return RequestReason.DEPLOYMENT_DEGRADED, f"Deployment degraded to {found}", (event,)
    if before is not None and before.reason == RequestReason.DEPLOYMENT_DEGRADED:
        return RequestReason.DEPLOYMENT_DEGRADED, f"Deployment degraded to {found}", ()
    text = f"DGD {name} created, waiting for Ready"
    return RequestReason.DEPLOYMENT_CREATED, text, ()
