"""The status of a DynamoGraphDeploymentRequest after each action, and the events that go with it.

A status is all the memory there is: what was accepted, what was found and where the graph is must be in it
before the next action relies on it.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

from dynamo_graphs.api import names
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest, DynamoGraphDeploymentRequestSpec
from dynamo_graphs.plan.request import FIXED, Reason, State, Type, as_accepted
from dynamo_graphs.plan.request_output import Found, Progress
from dynamo_graphs.status.graph import State as GraphState
from dynamo_graphs.status.reasons import GraphReason
from kube_runtime.kind import Key, Object
from kube_runtime.types.meta import Condition, condition

MESSAGE_LIMIT = 4096
"""Characters of a condition's message. The API server takes eight times as many."""

_RUNNING = "Profiling is in progress"
_HELD = (Reason.PAUSED, Reason.UNREADABLE, Reason.TOO_LARGE, Reason.TOO_EXPENSIVE)
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
class Told:
    """A status to write, and the events to queue once it is written."""

    status: Object
    events: Events = ()


def refused(request: DynamoGraphDeploymentRequest, problems: tuple[str, ...]) -> Told:
    """The spec cannot be carried out."""
    text = "\n".join(problems)
    failed = _condition(request, Type.VALIDATION, "False", Reason.VALIDATION_FAILED, text)
    status = _status(request, State.FAILED, failed, message=text, observedGeneration=None)
    return Told(status, (("ValidationFailed", text, True),))


def accepted(request: DynamoGraphDeploymentRequest, spec: DynamoGraphDeploymentRequestSpec) -> Told:
    """The spec counts from now on; what was found for an earlier one is forgotten."""
    text = "DGDR initialized successfully"
    valid = _condition(request, Type.VALIDATION, "True", Reason.ACCEPTED, "The spec is valid")
    again = [
        _condition(request, each, "Unknown", Reason.STARTED_ANEW, "The spec has changed")
        for each in (Type.PROFILING, Type.GENERATED, Type.DEPLOYED)
        if condition(request.status.conditions, each)
    ]
    status = _status(
        request,
        State.PENDING,
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
    return Told(status, (("Initialized", text, False),))


def waiting(request: DynamoGraphDeploymentRequest, text: str) -> Told:
    """The Job is not made yet, because something is left of an earlier one."""
    text = f"Profiling waits for an earlier Job to terminate: {text}"
    held = _condition(request, Type.PROFILING, "False", Reason.WAITING, text)
    return Told(_status(request, State.PENDING, held, message=text))


def begun(request: DynamoGraphDeploymentRequest, now: str, *, is_offline: bool) -> Told:
    """The Job is there."""
    text = f"{'AIC profiling' if is_offline else 'Profiling'} job created"
    running = _condition(request, Type.PROFILING, "False", Reason.PROFILING_RUNNING, _RUNNING)
    status = _status(
        request,
        State.PROFILING,
        running,
        message=_RUNNING,
        profilingJobName=names.profiling_job(request.metadata.name),
        startTime=now,
    )
    return Told(status, (("ProfilingJobCreated", text, False),))


def watched(request: DynamoGraphDeploymentRequest, said: Progress, obstacle: str) -> Told:
    """The Job runs, or waits for something."""
    text = f"{_RUNNING}: {obstacle}" if obstacle else _RUNNING
    running = _condition(request, Type.PROFILING, "False", Reason.PROFILING_RUNNING, text)
    message = f"{_RUNNING}: {obstacle or said.message}" if obstacle or said.message else _RUNNING
    phase = {"profilingPhase": said.phase} if said.phase else {}
    return Told(_status(request, State.PROFILING, running, message=message, **phase))


def not_started(request: DynamoGraphDeploymentRequest, reason: Reason, text: str) -> Told:
    """The Job could not be made."""
    failed = _condition(request, Type.PROFILING, "False", reason, text)
    status = _status(request, State.FAILED, failed, message=text)
    return Told(status, (("ProfilingJobFailed", text, True),))


def profiling_failed(
    request: DynamoGraphDeploymentRequest, text: str, said: Progress, now: str
) -> Told:
    """The Job has come to a bad end, or is gone."""
    failed = _condition(request, Type.PROFILING, "False", Reason.PROFILING_FAILED, text)
    phase = {"profilingPhase": said.phase} if said.phase else {}
    status = _status(
        request, State.FAILED, failed, message=text, completionTime=_end(request, now), **phase
    )
    return Told(status, (("ProfilingCheckFailed", text, True),))


def not_generated(
    request: DynamoGraphDeploymentRequest, text: str, said: Progress, now: str
) -> Told:
    """The Job has ended well, and what it left cannot be used."""
    failed = _condition(request, Type.GENERATED, "False", Reason.GENERATION_FAILED, text)
    phase = {"profilingPhase": said.phase} if said.phase else {}
    status = _status(
        request,
        State.FAILED,
        *(_completed(request), failed),
        message=text,
        completionTime=_end(request, now),
        **phase,
    )
    return Told(status, (("GenerationFailed", text, True),))


def generated(
    request: DynamoGraphDeploymentRequest,
    found: Found,
    said: Progress,
    *,
    target: Key | None,
    warnings: tuple[tuple[str, str], ...],
    now: str,
) -> Told:
    """There is a graph. `target` None means: its creation was not requested."""
    event = "DynamoGraphDeployment spec generated successfully"
    text = event if target else "Generated spec is available in status.generatedDeployment"
    done = _condition(request, Type.GENERATED, "True", Reason.GENERATED, text)
    more: Object = {"profilingPhase": said.phase} if said.phase else {}
    if target is not None:
        more["deployment"] = {"name": target.name, "namespace": target.namespace}
    status = _status(
        request,
        State.DEPLOYING if target else State.READY,
        *(_completed(request), done),
        message="; ".join((text, *(each for _, each in warnings))),
        generatedDeployment=found.graph,
        additionalResources=list(found.config_maps) or None,
        profilingResults=f"configmap/{output_name(request)}",
        completionTime=_end(request, now),
        **more,
    )
    odd = tuple((reason, each, True) for reason, each in warnings)
    return Told(status, (("SpecGenerated", event, False), *odd))


def created(request: DynamoGraphDeploymentRequest, at: Key, warnings: tuple[str, ...]) -> Told:
    """The graph was created."""
    text = f"DGD {at.name} created, waiting for Ready"
    waiting = _condition(request, Type.DEPLOYED, "False", Reason.DEPLOYMENT_CREATED, text)
    status = _status(
        request,
        State.DEPLOYING,
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
    return Told(status, (event, *odd))


def not_created(request: DynamoGraphDeploymentRequest, reason: Reason, text: str) -> Told:
    """The graph could not be created."""
    failed = _condition(request, Type.DEPLOYED, "False", reason, text)
    status = _status(request, State.FAILED, failed, message=text)
    return Told(status, (("DeploymentCreationFailed", text, True),))


def mirrored(request: DynamoGraphDeploymentRequest, graph: DynamoGraphDeployment) -> Told:
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
        ready = _condition(request, Type.DEPLOYED, "True", Reason.DEPLOYMENT_READY, text)
        status = _status(request, State.READY, ready, message=text, deployment=deployment)
        event = ("DeploymentReady", text, False)
        return Told(status, () if request.status.state == State.READY else (event,))
    why = _why(graph)
    reason, text, events = _unready(request, name, found)
    text = f"{text}: {why}" if why else text
    waiting = _condition(request, Type.DEPLOYED, "False", reason, text)
    return Told(
        _status(request, State.DEPLOYING, waiting, message=text, deployment=deployment), events
    )


def lost(request: DynamoGraphDeploymentRequest) -> Told:
    """A user deleted the graph, and the operator does not recreate it."""
    deployment = request.status.deployment
    name = deployment.name if deployment and deployment.name else request.metadata.name
    text = "Deployment was deleted by user. Create a new DGDR to redeploy."
    gone = _condition(request, Type.DEPLOYED, "False", Reason.DEPLOYMENT_DELETED, text)
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
    status = _status(request, State.DELETED, gone, message=text, deployment=kept)
    return Told(status, (("DeploymentDeleted", event, True),))


def settled(request: DynamoGraphDeploymentRequest) -> Told:
    """There is nothing to deploy."""
    return Told(_status(request, State.READY, message=request.status.message or ""))


def paused(request: DynamoGraphDeploymentRequest, text: str) -> Told:
    """Nothing is done until a user asks for it."""
    held = _condition(request, Type.SUCCEEDED, "Unknown", Reason.PAUSED, text)
    return Told({"conditions": [held]}, (("Paused", text, False),))


def too_expensive(request: DynamoGraphDeploymentRequest, text: str) -> Told:
    """Nothing is done until the spec changes, or after a while."""
    held = _condition(request, Type.SUCCEEDED, "False", Reason.TOO_EXPENSIVE, text)
    return Told({"conditions": [held]}, (("TooExpensive", text, True),))


def change_rejected(
    request: DynamoGraphDeploymentRequest,
) -> Events:
    """The event about a change of the spec that comes too late; once for each change."""
    status = request.status
    said = condition(status.conditions, Type.SUCCEEDED)
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


def has_to_be_resaid(request: DynamoGraphDeploymentRequest) -> bool:
    """Whether a pause is over, or the spec was changed too late, and the status does not show it."""
    said = condition(request.status.conditions, Type.SUCCEEDED)
    was_held = said is not None and said.reason in _HELD
    return was_held or bool(change_rejected(request))


def output_name(request: DynamoGraphDeploymentRequest) -> str:
    """The ConfigMap with the results."""
    return names.profiling_output(request.metadata.name)


def resaid(request: DynamoGraphDeploymentRequest) -> Told:
    """The same as before, said about the newest generation of the spec."""
    said = condition(request.status.conditions, Type.SUCCEEDED)
    if said is None or said.reason in _HELD:
        status = request.status
        last = _verdict(request, State(status.state or ""), status.conditions, status.message or "")
        return Told({"conditions": [last]})
    again = _condition(request, Type.SUCCEEDED, said.status, said.reason, said.message)
    return Told({"conditions": [again]})


def _status(
    request: DynamoGraphDeploymentRequest,
    state: State,
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
    state: State,
    conditions: tuple[Condition, ...],
    message: str,
) -> Condition:
    """The condition that sums the others up."""
    match state:
        case State.READY:
            return _condition(request, Type.SUCCEEDED, "True", "Ready", message)
        case State.FAILED | State.DELETED:
            steps = (each for each in conditions if each.type != Type.SUCCEEDED)
            failed = [each for each in steps if each.status == "False"]
            reason = failed[-1].reason if failed else str(state)
            return _condition(request, Type.SUCCEEDED, "False", reason, message)
        case _:
            held = (each.reason for each in conditions if each.reason == Reason.WAITING)
            reason = next(held, str(state) or Reason.NEW)
            return _condition(request, Type.SUCCEEDED, "Unknown", reason, message)


def _completed(request: DynamoGraphDeploymentRequest) -> Condition:
    text = "Profiling job completed successfully"
    return _condition(request, Type.PROFILING, "True", Reason.PROFILING_COMPLETED, text)


def _condition(
    request: DynamoGraphDeploymentRequest, type_: Type, value: str, reason: str, text: str
) -> Condition:
    generation = None if type_ is Type.DEPLOYED else request.metadata.generation
    if type_ in (Type.PROFILING, Type.GENERATED) and request.status.observed_generation:
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
) -> tuple[Reason, str, Events]:
    """Reason, text and event for a graph that is not ready."""
    before = condition(request.status.conditions, Type.DEPLOYED)
    if found == GraphState.FAILED:
        event = ("DeploymentFailed", f"DynamoGraphDeployment {name} failed", True)
        is_known = before is not None and before.reason == Reason.DEPLOYMENT_FAILED
        return Reason.DEPLOYMENT_FAILED, f"DGD {name} failed", () if is_known else (event,)
    if request.status.state == State.READY:
        text = f"DynamoGraphDeployment {name} degraded from Ready to {found}"
        event = ("DeploymentDegraded", text, True)
        return Reason.DEPLOYMENT_DEGRADED, f"Deployment degraded to {found}", (event,)
    if before is not None and before.reason == Reason.DEPLOYMENT_DEGRADED:
        return Reason.DEPLOYMENT_DEGRADED, f"Deployment degraded to {found}", ()
    text = f"DGD {name} created, waiting for Ready"
    return Reason.DEPLOYMENT_CREATED, text, ()
