"""The status of a DynamoGraphDeploymentRequest after each step, and its events.

The operator remembers nothing but this status. So the accepted spec, the results and the name of the graph
must be in it before the next step relies on them.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from msgspec.structs import replace

from dynamo_operator import names
from dynamo_operator.component.pods import pod_report
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests.api import (
    FIXED,
    DeploymentStatus,
    DynamoGraphDeploymentRequest,
    DynamoGraphDeploymentRequestSpec,
    DynamoGraphDeploymentRequestStatus,
    JobPod,
    RequestConditionType,
    RequestReason,
    RequestState,
    as_accepted,
)
from dynamo_operator.requests.results import ProfilingProgress, ProfilingResult
from dynamo_operator.shared.conditions import POD_REASONS, GraphReason, GraphState, StatusEvent
from kube_runtime.types.kinds import ContainerStatus, Job
from kube_runtime.types.meta import Condition, Key, condition, fitted

MESSAGE_LIMIT = 4096
"""Characters of a condition's message. The API server accepts 32,768."""


@dataclass(frozen=True, slots=True)
class RequestReport:
    """A status to write, and the events to queue once it is written."""

    status: DynamoGraphDeploymentRequestStatus
    events: tuple[StatusEvent, ...] = ()


def request_status(
    request: DynamoGraphDeploymentRequest,
    state: RequestState,
    *conditions: Condition,
    message: str,
) -> DynamoGraphDeploymentRequestStatus:
    """The request's status in this state, with `conditions` and `Succeeded`."""
    message = message[:MESSAGE_LIMIT]
    succeeded = summary(request, state, conditions, message)
    return replace(request.status, state=str(state), message=message, conditions=(*conditions, succeeded))


def summary(
    request: DynamoGraphDeploymentRequest,
    state: RequestState,
    conditions: tuple[Condition, ...],
    message: str,
) -> Condition:
    """`Succeeded`, which sums up the other conditions."""
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


def request_condition(
    request: DynamoGraphDeploymentRequest,
    type_: RequestConditionType,
    value: str,
    reason: str,
    text: str,
) -> Condition:
    """A condition with the generation that it describes: for profiling that of the accepted spec."""
    generation: int | None = request.metadata.generation
    if type_ is RequestConditionType.DEPLOYED:
        generation = None
    elif type_ in (RequestConditionType.PROFILING, RequestConditionType.GENERATED):
        generation = request.status.observed_generation or generation
    return Condition(type_, value, str(reason), text[:MESSAGE_LIMIT], observed_generation=generation)


_RUNNING = "Profiling is in progress"
_HELD = (RequestReason.PAUSED, RequestReason.UNREADABLE, RequestReason.TOO_LARGE, RequestReason.REJECTED)
"""Reasons of `Succeeded` while the operator does nothing for a request; `restated` replaces them."""

_TYPE, _REASON = RequestConditionType, RequestReason


def _reported(
    request: DynamoGraphDeploymentRequest,
    state: RequestState,
    step: tuple[RequestConditionType, str, RequestReason, str],
    *events: StatusEvent,
    message: str = "",
    earlier: tuple[Condition, ...] = (),
    **fields: Any,
) -> RequestReport:
    """Report a step (type, status, reason and text of its condition) that puts the request into a state.

    `message` is that of the request, by default the text. `fields` are other fields of the status.
    """
    status = request_status(
        request, state, *earlier, request_condition(request, *step), message=message or step[-1]
    )
    return RequestReport(replace(status, **fields), events)


def _failed(
    request: DynamoGraphDeploymentRequest,
    type_: RequestConditionType,
    reason: RequestReason,
    text: str,
    event: str,
    **fields: Any,
) -> RequestReport:
    """Report a step that failed, with the warning `event`."""
    warning = StatusEvent(event, text, is_warning=True)
    return _reported(request, RequestState.FAILED, (type_, "False", reason, text), warning, **fields)


def refused(request: DynamoGraphDeploymentRequest, problems: tuple[str, ...]) -> RequestReport:
    """The spec is invalid."""
    reason, text = _REASON.VALIDATION_FAILED, "\n".join(problems)
    return _failed(request, _TYPE.VALIDATION, reason, text, "ValidationFailed", observed_generation=0)


def accepted(request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec) -> RequestReport:
    """The spec is accepted; results of an earlier spec are dropped."""
    steps = [(_TYPE.VALIDATION, "True", _REASON.ACCEPTED, "The spec is valid")]
    steps += [
        (type_, "Unknown", _REASON.STARTED_ANEW, "The spec has changed")
        for type_ in (_TYPE.PROFILING, _TYPE.GENERATED, _TYPE.DEPLOYED)
        if condition(request.status.conditions, type_)
    ]
    conditions = (request_condition(request, *step) for step in steps)
    pending = request_status(
        request, RequestState.PENDING, *conditions, message="Profiling is about to start"
    )
    status = DynamoGraphDeploymentRequestStatus(
        state=pending.state,
        message=pending.message,
        conditions=pending.conditions,
        observed_generation=request.metadata.generation,
        backend=spec.backend,
        accepted_spec=as_accepted(spec),
    )
    return RequestReport(status, (StatusEvent("Initialized", "DGDR initialized successfully"),))


def waiting(request: DynamoGraphDeploymentRequest, text: str) -> RequestReport:
    """The Job cannot be created yet, because an earlier one or its pods still exist."""
    text = f"Profiling waits for an earlier Job to terminate: {text}"
    return _reported(request, RequestState.PENDING, (_TYPE.PROFILING, "False", _REASON.WAITING, text))


def begun(request: DynamoGraphDeploymentRequest, now: str, *, is_offline: bool) -> RequestReport:
    """The Job was created."""
    return _reported(
        request,
        RequestState.PROFILING,
        (_TYPE.PROFILING, "False", _REASON.PROFILING_RUNNING, _RUNNING),
        StatusEvent("ProfilingJobCreated", f"{'AIC profiling' if is_offline else 'Profiling'} job created"),
        profiling_job_name=names.profiling_job(request.metadata.name),
        start_time=request.status.start_time or now,
    )


def watched(
    request: DynamoGraphDeploymentRequest, progress: ProfilingProgress, obstacle: str
) -> RequestReport:
    """The Job exists. `obstacle` is why its pod is not ready; "" if it is."""
    text = f"{_RUNNING}: {obstacle}" if obstacle else _RUNNING
    detail = obstacle or progress.message
    return _reported(
        request,
        RequestState.PROFILING,
        (_TYPE.PROFILING, "False", _REASON.PROFILING_RUNNING, text),
        message=f"{_RUNNING}: {detail}" if detail else _RUNNING,
        **_phase(progress),
    )


def blocked(
    request: DynamoGraphDeploymentRequest, type_: RequestConditionType, reason: RequestReason, text: str
) -> RequestReport:
    """The Job (`Profiling`) or the graph (`DeploymentReady`) could not be created."""
    event = "ProfilingJobFailed" if type_ is _TYPE.PROFILING else "DeploymentCreationFailed"
    return _failed(request, type_, reason, text, event)


def profiling_failed(
    request: DynamoGraphDeploymentRequest, text: str, progress: ProfilingProgress, now: str
) -> RequestReport:
    """The Job failed or was deleted."""
    reason, fields = _REASON.PROFILING_FAILED, _ended(request, progress, now)
    return _failed(request, _TYPE.PROFILING, reason, text, "ProfilingCheckFailed", **fields)


def not_generated(
    request: DynamoGraphDeploymentRequest, text: str, progress: ProfilingProgress, now: str
) -> RequestReport:
    """The Job succeeded, but its output is unusable."""
    # The API server refuses changes of an object with a malformed graph.
    fields = {**_ended(request, progress, now), "generated_deployment": None, "additional_resources": ()}
    reason, earlier = _REASON.GENERATION_FAILED, (_completed(request),)
    return _failed(request, _TYPE.GENERATED, reason, text, "GenerationFailed", earlier=earlier, **fields)


def generated(
    request: DynamoGraphDeploymentRequest,
    result: ProfilingResult,
    progress: ProfilingProgress,
    *,
    target: Key | None,
    warnings: tuple[tuple[str, str], ...],
    now: str,
) -> RequestReport:
    """Profiling produced a graph. `target` is where to create it; None if that was not requested."""
    event = "DynamoGraphDeployment spec generated successfully"
    text = event if target else "Generated spec is available in status.generatedDeployment"
    planned = DeploymentStatus(target.name, target.namespace) if target else None
    return _reported(
        request,
        RequestState.DEPLOYING if target else RequestState.READY,
        (_TYPE.GENERATED, "True", _REASON.GENERATED, text),
        StatusEvent("SpecGenerated", event),
        *(StatusEvent(reason, warning, is_warning=True) for reason, warning in warnings),
        message="; ".join((text, *(warning for _, warning in warnings))),
        earlier=(_completed(request),),
        generated_deployment=result.graph,
        additional_resources=tuple(result.config_maps),
        profiling_results=f"configmap/{names.profiling_output(request.metadata.name)}",
        deployment=planned or request.status.deployment,
        **_ended(request, progress, now),
    )


def settled(request: DynamoGraphDeploymentRequest) -> RequestReport:
    """The generated graph is ready for the user to apply; the operator does not create it."""
    return RequestReport(request_status(request, RequestState.READY, message=request.status.message or ""))


def stopped(request: DynamoGraphDeploymentRequest, reason: RequestReason, text: str) -> RequestReport:
    """The operator does nothing for the request: it is paused, or it names something too large."""
    is_wanted = reason is RequestReason.PAUSED
    value = "Unknown" if is_wanted else "False"
    held = request_condition(request, _TYPE.SUCCEEDED, value, reason, text)
    event = StatusEvent(str(reason), text, is_warning=not is_wanted)
    return RequestReport(request.status.with_conditions([held]), (event,))


def change_rejected(request: DynamoGraphDeploymentRequest) -> tuple[StatusEvent, ...]:
    """The event for a change of the spec that comes too late; once for each change."""
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
    return (StatusEvent("SpecChangeRejected", text, is_warning=True),)


def has_to_be_restated(request: DynamoGraphDeploymentRequest) -> bool:
    """Whether the status does not show yet that a pause is over, or that the spec changed too late."""
    succeeded = condition(request.status.conditions, RequestConditionType.SUCCEEDED)
    was_held = succeeded is not None and succeeded.reason in _HELD
    return was_held or bool(change_rejected(request))


def restated(request: DynamoGraphDeploymentRequest) -> RequestReport:
    """`Succeeded` as before, for the newest generation of the spec."""
    status = request.status
    last = condition(status.conditions, RequestConditionType.SUCCEEDED)
    if last is None or last.reason in _HELD:
        last = summary(request, RequestState(status.state or ""), status.conditions, status.message or "")
    again = request_condition(request, _TYPE.SUCCEEDED, last.status, last.reason, last.message)
    return RequestReport(status.with_conditions([again]))


def _completed(request: DynamoGraphDeploymentRequest) -> Condition:
    text = "Profiling job completed successfully"
    return request_condition(request, _TYPE.PROFILING, "True", _REASON.PROFILING_COMPLETED, text)


def _phase(progress: ProfilingProgress) -> dict[str, Any]:
    return {"profiling_phase": progress.phase} if progress.phase else {}


def _ended(request: DynamoGraphDeploymentRequest, progress: ProfilingProgress, now: str) -> dict[str, Any]:
    """The phase, and when profiling ended, as first recorded."""
    return {**_phase(progress), "completion_time": request.status.completion_time or now}


_EXPLAINING = frozenset(GraphReason) - {
    GraphReason.ALL_READY,
    GraphReason.SOME_NOT_READY,
    GraphReason.PODS_NOT_READY,
    GraphReason.UPDATING,
    GraphReason.UPDATE_COMPLETE,
}
"""Reasons of a graph that explain more than that it is not ready yet."""


def created(request: DynamoGraphDeploymentRequest, at: Key, warnings: tuple[str, ...]) -> RequestReport:
    """The graph was created."""
    text = f"DGD {at.name} created, waiting for Ready"
    return _reported(
        request,
        RequestState.DEPLOYING,
        (_TYPE.DEPLOYED, "False", _REASON.DEPLOYMENT_CREATED, text),
        StatusEvent("DeploymentCreated", f"DynamoGraphDeployment {at.name} created successfully"),
        *(StatusEvent("ConfigMapCreationFailed", warning, is_warning=True) for warning in warnings),
        message="; ".join((text, *warnings)),
        deployment=DeploymentStatus(at.name, at.namespace, str(GraphState.PENDING), created=True),
    )


def mirrored(request: DynamoGraphDeploymentRequest, graph: DynamoGraphDeployment) -> RequestReport:
    """The graph exists; the request repeats its state."""
    name, state = graph.metadata.name, graph.status.state or ""
    deployment = DeploymentStatus(name, graph.metadata.namespace, state, created=True)
    if state == GraphState.SUCCESSFUL:
        text = f"DynamoGraphDeployment {name} is ready"
        ready = [] if request.status.state == RequestState.READY else [StatusEvent("DeploymentReady", text)]
        step = (_TYPE.DEPLOYED, "True", _REASON.DEPLOYMENT_READY, text)
        return _reported(request, RequestState.READY, step, *ready, deployment=deployment)
    reason, text, events = _unready(request, name, state)
    cause = condition(graph.status.conditions, "Ready")
    if cause is not None and cause.status != "True" and cause.reason in _EXPLAINING:
        text = f"{text}: {cause.reason}: {cause.message}"
    step = (_TYPE.DEPLOYED, "False", reason, text)
    return _reported(request, RequestState.DEPLOYING, step, *events, deployment=deployment)


def lost(request: DynamoGraphDeploymentRequest) -> RequestReport:
    """A user deleted the graph, and the operator does not recreate it."""
    deployment = request.status.deployment
    name = deployment.name if deployment and deployment.name else request.metadata.name
    warning = (
        f"DGD {name} was deleted. DGDR will not recreate it. Delete this DGDR and create a new one to "
        "redeploy."
    )
    text = "Deployment was deleted by user. Create a new DGDR to redeploy."
    return _reported(
        request,
        RequestState.DELETED,
        (_TYPE.DEPLOYED, "False", _REASON.DEPLOYMENT_DELETED, text),
        StatusEvent("DeploymentDeleted", warning, is_warning=True),
        deployment=DeploymentStatus(name, deployment.namespace if deployment else None, created=True),
    )


def taken_graph(at: Key) -> str:
    """Message: the graph's name is taken."""
    return (
        f"DynamoGraphDeployment {at.name} exists in namespace {at.namespace} and was not created "
        "by this request; the operator leaves it alone: delete it, or set "
        "spec.deploymentOverrides.name"
    )


def _unready(
    request: DynamoGraphDeploymentRequest, name: str, state: str
) -> tuple[RequestReason, str, tuple[StatusEvent, ...]]:
    """Reason, message and events for a graph that is not ready."""
    before = condition(request.status.conditions, RequestConditionType.DEPLOYED)
    if state == GraphState.FAILED:
        text = f"DynamoGraphDeployment {name} failed"
        is_reported = before is not None and before.reason == RequestReason.DEPLOYMENT_FAILED
        events = () if is_reported else (StatusEvent("DeploymentFailed", text, is_warning=True),)
        return RequestReason.DEPLOYMENT_FAILED, f"DGD {name} failed", events
    if request.status.state == RequestState.READY:
        text = f"DynamoGraphDeployment {name} degraded from Ready to {state}"
        event = StatusEvent("DeploymentDegraded", text, is_warning=True)
        return RequestReason.DEPLOYMENT_DEGRADED, f"Deployment degraded to {state}", (event,)
    if before is not None and before.reason == RequestReason.DEPLOYMENT_DEGRADED:
        return RequestReason.DEPLOYMENT_DEGRADED, f"Deployment degraded to {state}", ()
    text = f"DGD {name} created, waiting for Ready"
    return RequestReason.DEPLOYMENT_CREATED, text, ()


LAST_LINES = 10
"""Lines of a container's last output that a message quotes."""

_LAST_CHARACTERS = 2000
_NAMES_CHARACTERS = 300
_BLOCKED = frozenset(POD_REASONS) - {GraphReason.PODS_NOT_READY}


# An evicted pod, a crashed profiler and a copier that could not write all end in the same condition
# of the Job; the message distinguishes them.
def failure(end: Condition, pods: Iterable[JobPod], progress: ProfilingProgress) -> str:
    """Why the Job failed: its own message, then that of the pod that failed last."""
    text = f"profiling job failed: {end.message or end.reason}"
    newest = sorted(pods, key=_age, reverse=True)
    details = next((detail for pod in newest for detail in _details(pod)), "")
    if details:
        text += f". Details: {details}"
    if progress.message and progress.has_failed and progress.message.rstrip("…") not in text:
        text += f". The profiler reports: {progress.message}"
    return text


def left_over(job: Job | None, pods: Sequence[str]) -> str:
    """What is left of an earlier Job: the Job itself, being deleted, or pods that have not terminated."""
    if job is not None:
        return f"Job {job.metadata.name} is being deleted"
    names = fitted(pods, _NAMES_CHARACTERS, between=", ")
    return f"{len(pods)} of its pods {'has' if len(pods) == 1 else 'have'} not terminated: {names}"


def obstacle(pods: Iterable[JobPod], now: datetime) -> tuple[str, float | None]:
    """Why the profiling pod is not ready ("" if unknown), and the seconds after which that may change.

    None means that it changes only with the pod.
    """
    times: list[float] = []
    for pod in sorted(pods, key=_age, reverse=True):
        report = pod_report(pod, now)
        if report.requeue_after_seconds is not None:
            times.append(report.requeue_after_seconds)
        blockage = report.blockage
        if blockage is not None and blockage.reason in _BLOCKED:
            return blockage.describe(pod.metadata.name), None
    return "", min(times, default=None)


def _age(pod: JobPod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp or "", pod.metadata.name


def _details(pod: JobPod) -> Iterator[str]:
    """What went wrong in a pod, the likeliest cause first."""
    if pod.status.phase != "Failed":
        return
    if pod.status.reason:
        # Not a container's failure: the pod was evicted, or its node is gone.
        yield f"Pod: {pod.metadata.name}, Reason: {pod.status.reason}{_message(pod.status.message)}"
    for container in pod.status.container_statuses:
        ended = container.state.terminated
        if ended is not None and ended.exit_code:
            code, reason = f"ExitCode: {ended.exit_code}", f"Reason: {ended.reason}"
            yield f"{_subject(pod, container)}, {code}, {reason}{_message(ended.message)}"
    for container in pod.status.container_statuses:
        waiting = container.state.waiting
        if waiting is not None:
            detail = f"Reason: {waiting.reason}, Message: {waiting.message}"
            yield f"{_subject(pod, container)}, Waiting - {detail}"


def _subject(pod: JobPod, container: ContainerStatus) -> str:
    return f"Pod: {pod.metadata.name}, Container: {container.name}"


def _message(text: str) -> str:
    """The last lines of a text: a program reports its fatal error last."""
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    last = "\n".join(lines[-LAST_LINES:])
    if len(last) > _LAST_CHARACTERS:
        last = f"…{last[1 - _LAST_CHARACTERS :]}"
    return f", Message: {last}" if last else ""
