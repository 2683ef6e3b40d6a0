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
from dynamo_operator.component.diagnosis import pod_report
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.requests import api
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest as Request
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestSpec as RequestSpec
from dynamo_operator.requests.api import DynamoGraphDeploymentRequestStatus as RequestStatus
from dynamo_operator.requests.api import RequestConditionType as Type
from dynamo_operator.requests.api import RequestReason as Reason
from dynamo_operator.requests.api import RequestState as State
from dynamo_operator.requests.extras import in_v1beta1, is_switched_on, with_extras
from dynamo_operator.requests.results import ProfilingProgress, ProfilingResult
from dynamo_operator.shared.conditions import POD_REASONS, GraphReason, GraphState, StatusEvent
from kube_runtime.types.kinds import ContainerStatus, Job
from kube_runtime.types.meta import Condition, Key, condition, fitted

MESSAGE_LIMIT = 4096
"""Characters of a condition's message. The API server accepts 32,768."""


@dataclass(frozen=True, slots=True)
class RequestReport:
    """A status to write, and the events to queue once it is written."""

    status: RequestStatus
    events: tuple[StatusEvent, ...] = ()


def request_status(request: Request, state: State, *conditions: Condition, message: str) -> RequestStatus:
    """The request's status in this state, with `conditions` and `Succeeded`."""
    message = message[:MESSAGE_LIMIT]
    succeeded = summary(request, state, conditions, message)
    return replace(request.status, state=str(state), message=message, conditions=(*conditions, succeeded))


def summary(request: Request, state: State, conditions: tuple[Condition, ...], message: str) -> Condition:
    """`Succeeded`, which sums up the other conditions."""
    match state:
        case State.READY:
            value, reason = "True", "Ready"
        case State.FAILED | State.DELETED:
            steps = (step for step in conditions if step.type != Type.SUCCEEDED)
            failed = [step for step in steps if step.status == "False"]
            value, reason = "False", failed[-1].reason if failed else str(state)
        case _:
            held = any(step.reason == Reason.WAITING for step in conditions)
            value = "Unknown"
            reason = Reason.WAITING if held else str(state) or Reason.NEW
    return request_condition(request, Type.SUCCEEDED, value, reason, message)


def request_condition(request: Request, type_: Type, value: str, reason: str, text: str) -> Condition:
    """A condition with the generation that it describes: for profiling that of the accepted spec."""
    generation: int | None = request.metadata.generation
    if type_ is Type.DEPLOYED:
        generation = None
    elif type_ in (Type.PROFILING, Type.GENERATED):
        generation = request.status.observed_generation or generation
    return Condition(type_, value, str(reason), text[:MESSAGE_LIMIT], observed_generation=generation)


INITIALIZING = "Initializing"
"""The first phase of a profiler."""

_RUNNING = "Profiling is in progress"
_NO_RESULTS = {"graph_text": api.ABSENT, "config_maps_text": api.NONE_FOUND}


def _reported(
    request: Request,
    state: State,
    step: tuple[Type, str, Reason, str],
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
    request: Request, type_: Type, reason: Reason, text: str, event: str, **fields: Any
) -> RequestReport:
    warning = StatusEvent(event, text, is_warning=True)
    return _reported(request, State.FAILED, (type_, "False", reason, text), warning, **fields)


def refused(request: Request, problems: tuple[str, ...]) -> RequestReport:
    """The spec is invalid."""
    reason, text = Reason.VALIDATION_FAILED, "\n".join(problems)
    return _failed(request, Type.VALIDATION, reason, text, "ValidationFailed", observed_generation=0)


def accepted(request: Request, spec: RequestSpec, *, is_later: bool = False) -> RequestReport:
    """The spec is accepted; results of an earlier spec are dropped. `is_later`: written in v1beta1."""
    steps = [(Type.VALIDATION, "True", Reason.ACCEPTED, "The spec is valid")]
    steps += [
        (type_, "Unknown", Reason.STARTED_ANEW, "The spec has changed")
        for type_ in (Type.PROFILING, Type.GENERATED, Type.DEPLOYED)
        if condition(request.status.conditions, type_)
    ]
    conditions = [request_condition(request, *step) for step in steps]
    generation = request.metadata.generation
    accepted_spec = with_extras(spec, request.metadata, is_later=is_later)
    status = RequestStatus(observed_generation=generation, backend=spec.backend, accepted_spec=accepted_spec)
    anew, message = replace(request, status=status), "Profiling is about to start"
    status = request_status(anew, State.PENDING, *conditions, message=message)
    return RequestReport(status, (StatusEvent("Initialized", "DGDR initialized successfully"),))


def waiting(request: Request, text: str) -> RequestReport:
    """The Job cannot be created yet, because an earlier one or its pods still exist."""
    text = f"Profiling waits for an earlier Job to terminate: {text}"
    return _reported(request, State.PENDING, (Type.PROFILING, "False", Reason.WAITING, text))


def begun(request: Request, now: str, *, is_offline: bool) -> RequestReport:
    """The Job was created."""
    return _reported(
        request,
        State.PROFILING,
        (Type.PROFILING, "False", Reason.PROFILING_RUNNING, _RUNNING),
        StatusEvent("ProfilingJobCreated", f"{'AIC profiling' if is_offline else 'Profiling'} job created"),
        profiling_job_name=names.profiling_job(request.metadata.name),
        start_time=request.status.start_time or now,
        profiling_phase=INITIALIZING if in_v1beta1(request) else request.status.profiling_phase,
    )


def watched(request: Request, progress: ProfilingProgress, obstacle: str) -> RequestReport:
    """The Job exists. `obstacle` is why its pod is not ready; "" if it is."""
    text = f"{_RUNNING}: {obstacle}" if obstacle else _RUNNING
    detail = obstacle or progress.message
    return _reported(
        request,
        State.PROFILING,
        (Type.PROFILING, "False", Reason.PROFILING_RUNNING, text),
        message=f"{_RUNNING}: {detail}" if detail else _RUNNING,
        **_phase(progress),
    )


def blocked(request: Request, type_: Type, reason: Reason, text: str) -> RequestReport:
    """The Job (`Profiling`) or the graph (`DeploymentReady`) could not be created."""
    event = "ProfilingJobFailed" if type_ is Type.PROFILING else "DeploymentCreationFailed"
    return _failed(request, type_, reason, text, event)


def profiling_failed(request: Request, text: str, progress: ProfilingProgress, now: str) -> RequestReport:
    """The Job failed or was deleted."""
    reason, fields = Reason.PROFILING_FAILED, _ended(request, progress, now)
    return _failed(request, Type.PROFILING, reason, text, "ProfilingCheckFailed", **fields)


def not_generated(request: Request, text: str, progress: ProfilingProgress, now: str) -> RequestReport:
    """The Job succeeded, but its output is unusable."""
    # The API server refuses changes of an object with a malformed graph.
    fields = {**_ended(request, progress, now), **_NO_RESULTS}
    reason, earlier = Reason.GENERATION_FAILED, (_completed(request),)
    return _failed(request, Type.GENERATED, reason, text, "GenerationFailed", earlier=earlier, **fields)


def generated(
    request: Request, result: ProfilingResult, progress: ProfilingProgress, *, target: Key | None, now: str
) -> RequestReport:
    """Profiling produced a graph. `target` is where to create it; None if that was not requested.

    The request is ready for the user once the ConfigMaps that the graph mounts exist too.
    """
    event = "DynamoGraphDeployment spec generated successfully"
    place = "status.profilingResults.selectedConfig" if in_v1beta1(request) else "status.generatedDeployment"
    text = event if target else f"Generated spec is available in {place}"
    text = "; ".join((text, *result.warnings))
    planned = api.DeploymentStatus(target.name, target.namespace) if target else None
    return _reported(
        request,
        State.DEPLOYING if target or result.config_maps else State.READY,
        (Type.GENERATED, "True", Reason.GENERATED, text),
        StatusEvent("SpecGenerated", event),
        *(StatusEvent("DocumentsIgnored", warning, is_warning=True) for warning in result.warnings),
        earlier=(_completed(request),),
        graph_text=api.as_text(result.graph),
        config_maps_text=api.as_text(result.config_maps),
        profiling_results=f"configmap/{names.profiling_output(request.metadata.name)}",
        deployment=planned or request.status.deployment,
        **_ended(request, progress, now),
    )


def stopped(request: Request, reason: Reason, text: str) -> RequestReport:
    """The operator does nothing for the request: it is paused, or it names something too large."""
    is_wanted = reason is Reason.PAUSED
    value = "Unknown" if is_wanted else "False"
    generation = api.held_generation(request.status.conditions, request.metadata.generation)
    held = request_condition(request, Type.SUCCEEDED, value, reason, text)
    held = replace(held, observed_generation=generation)
    event = StatusEvent(str(reason), text, is_warning=not is_wanted)
    return RequestReport(request.status.with_conditions([held]), (event,))


def change_rejected(request: Request) -> tuple[StatusEvent, ...]:
    """The event for a change of the spec that comes too late; once for each change."""
    status, generation = request.status, request.metadata.generation
    succeeded = condition(status.conditions, Type.SUCCEEDED)
    is_reported = succeeded is not None and succeeded.observed_generation == generation
    if is_reported or status.state not in api.FIXED or generation == status.observed_generation:
        return ()
    if is_switched_on(request):
        return ()
    text = (
        f"Cannot modify spec in state '{status.state}'. DynamoGraphDeploymentRequest is immutable once "
        "profiling starts. Create a new resource with a different name instead."
    )
    return (StatusEvent("SpecChangeRejected", text, is_warning=True),)


def events_of(request: Request, stored: Request, report: RequestReport) -> tuple[StatusEvent, ...]:
    """The events to queue for a report: none if it did not change the status that is `stored` now."""
    if stored is request:
        return ()
    late = () if change_rejected(stored) else change_rejected(request)
    return (*report.events, *late)


def restated(request: Request) -> RequestReport | None:
    """`Succeeded` as before, after a pause or a change of the spec that came too late; None without one."""
    status = request.status
    last = condition(status.conditions, Type.SUCCEEDED)
    was_held = last is not None and last.reason in api.HELD
    if not was_held and not change_rejected(request):
        return None
    if last is None or was_held:
        last = summary(request, State(status.state or ""), status.conditions, status.message or "")
    again = request_condition(request, Type.SUCCEEDED, last.status, last.reason, last.message)
    return RequestReport(status.with_conditions([again]))


def _completed(request: Request) -> Condition:
    text = "Profiling job completed successfully"
    return request_condition(request, Type.PROFILING, "True", Reason.PROFILING_COMPLETED, text)


def _phase(progress: ProfilingProgress) -> dict[str, Any]:
    return {"profiling_phase": progress.phase} if progress.phase else {}


def _ended(request: Request, progress: ProfilingProgress, now: str) -> dict[str, Any]:
    return {**_phase(progress), "completion_time": request.status.completion_time or now}


_EXPLAINING = frozenset(GraphReason) - {
    GraphReason.ALL_READY,
    GraphReason.SOME_NOT_READY,
    GraphReason.PODS_NOT_READY,
    GraphReason.UPDATING,
    GraphReason.UPDATE_COMPLETE,
}
"""Reasons of a graph that explain more than that it is not ready yet."""


def created(
    request: Request, graph: DynamoGraphDeployment | None, problems: tuple[str, ...], *, is_complete: bool
) -> RequestReport:
    """The graph was created, with all of its ConfigMaps that can be created if it `is_complete`.

    If it is None, only these were, and the user creates it. `problems` are those of the ConfigMaps.
    """
    warnings = tuple(f"Failed to create ConfigMaps from profiling output: {problem}" for problem in problems)
    events = tuple(StatusEvent("ConfigMapCreationFailed", warning, is_warning=True) for warning in warnings)
    if graph is None:
        step = condition(request.status.conditions, Type.GENERATED)
        message = "; ".join((step.message if step is not None else "", *warnings))
        state = State.READY if is_complete else State.DEPLOYING
        return RequestReport(request_status(request, state, message=message), events)
    at, reason = graph.key, Reason.DEPLOYMENT_CREATED if is_complete else Reason.DEPLOYMENT_CREATION_FAILED
    text = f"DGD {at.name} created, waiting for Ready"
    message = "; ".join((text, *warnings))
    if is_switched_on(request):  # the change is carried out
        observed = replace(request.status, observed_generation=request.metadata.generation)
        request = replace(request, status=observed)
    return _reported(
        request,
        State.DEPLOYING,
        (Type.DEPLOYED, "False", reason, text if is_complete else message),
        StatusEvent("DeploymentCreated", f"DynamoGraphDeployment {at.name} created successfully"),
        *events,
        message=message,
        deployment=api.DeploymentStatus(at.name, at.namespace, str(GraphState.PENDING), created=True),
    )


def mirrored(request: Request, graph: DynamoGraphDeployment) -> RequestReport:
    """The graph exists; the request repeats its state."""
    name, state = graph.metadata.name, graph.status.state or ""
    deployment = api.DeploymentStatus(name, graph.metadata.namespace, state, created=True)
    if in_v1beta1(request):
        counts = graph.status.services.values()
        replicas = sum(count.replicas for count in counts)
        available = sum(count.available_replicas or 0 for count in counts)
        deployment = replace(deployment, replicas=replicas, available_replicas=available)
    if state == GraphState.SUCCESSFUL:
        text = f"DynamoGraphDeployment {name} is ready"
        ready = [] if request.status.state == State.READY else [StatusEvent("DeploymentReady", text)]
        step = (Type.DEPLOYED, "True", Reason.DEPLOYMENT_READY, text)
        return _reported(request, State.READY, step, *ready, deployment=deployment)
    reason, text, events = _unready(request, name, state)
    cause = condition(graph.status.conditions, "Ready")
    if cause is not None and cause.status != "True" and cause.reason in _EXPLAINING:
        text = f"{text}: {cause.reason}: {cause.message}"
        events = (*events, *_image_events(request, graph, text))
    step = (Type.DEPLOYED, "False", reason, text)
    return _reported(request, State.DEPLOYING, step, *events, deployment=deployment)


def lost(request: Request) -> RequestReport:
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
        State.DELETED,
        (Type.DEPLOYED, "False", Reason.DEPLOYMENT_DELETED, text),
        StatusEvent("DeploymentDeleted", warning, is_warning=True),
        deployment=api.DeploymentStatus(name, deployment.namespace if deployment else None, created=True),
    )


def taken_graph(at: Key) -> str:
    """Message: the graph's name is taken."""
    return (
        f"DynamoGraphDeployment {at.name} exists in namespace {at.namespace} and was not created "
        "by this request; the operator leaves it alone: delete it, or choose another name for the graph"
    )


def _unready(request: Request, name: str, state: str) -> tuple[Reason, str, tuple[StatusEvent, ...]]:
    before = condition(request.status.conditions, Type.DEPLOYED)
    reason = before.reason if before is not None else ""
    if state == GraphState.FAILED:
        event = StatusEvent("DeploymentFailed", f"DynamoGraphDeployment {name} failed", is_warning=True)
        events = () if reason == Reason.DEPLOYMENT_FAILED else (event,)
        return Reason.DEPLOYMENT_FAILED, f"DGD {name} failed", events
    was_ready = request.status.state == State.READY
    if was_ready or reason == Reason.DEPLOYMENT_DEGRADED:
        text = f"DynamoGraphDeployment {name} degraded from Ready to {state}"
        event = StatusEvent("DeploymentDegraded", text, is_warning=True)
        return Reason.DEPLOYMENT_DEGRADED, f"Deployment degraded to {state}", (event,) if was_ready else ()
    return Reason.DEPLOYMENT_CREATED, f"DGD {name} created, waiting for Ready", ()


def _image_events(request: Request, graph: DynamoGraphDeployment, text: str) -> Iterator[StatusEvent]:
    """Yield an event for each service whose image cannot be pulled, if `text` is the first to report it."""
    before = condition(request.status.conditions, Type.DEPLOYED)
    reported = before.message if before is not None else ""
    for service in graph.status.services.values():
        cause = service.message or ""
        is_new = cause in text and cause not in reported
        if service.reason == GraphReason.IMAGE_PULL_FAILED and is_new:
            yield StatusEvent("ImagePullFailed", cause, is_warning=True)


LAST_LINES = 10
"""Lines of a container's last output that a message quotes."""

_LAST_CHARACTERS = 2000
_NAMES_CHARACTERS = 300
_BLOCKED = frozenset(POD_REASONS) - {GraphReason.PODS_NOT_READY}


# An evicted pod, a crashed profiler and a copier that could not write all end in the same condition
# of the Job; the message distinguishes them.
def failure(end: Condition, pods: Iterable[api.JobPod], progress: ProfilingProgress) -> str:
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


def obstacle(pods: Iterable[api.JobPod], now: datetime) -> tuple[str, float | None]:
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


def _age(pod: api.JobPod) -> tuple[str, str]:
    return pod.metadata.creation_timestamp or "", pod.metadata.name


def _details(pod: api.JobPod) -> Iterator[str]:
    # The likeliest cause comes first.
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


def _subject(pod: api.JobPod, container: ContainerStatus) -> str:
    return f"Pod: {pod.metadata.name}, Container: {container.name}"


def _message(text: str) -> str:
    # A program reports its fatal error last.
    lines = [line.rstrip() for line in text.strip().splitlines() if line.strip()]
    last = "\n".join(lines[-LAST_LINES:])
    if len(last) > _LAST_CHARACTERS:
        last = f"…{last[1 - _LAST_CHARACTERS :]}"
    return f", Message: {last}" if last else ""
