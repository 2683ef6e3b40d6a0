"""The status and events of a DynamoGraphDeploymentRequest once it creates its graph."""

from msgspec.structs import replace

from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.request import DeploymentStatus, DynamoGraphDeploymentRequest
from dynamo_graphs.plan.request import RequestConditionType, RequestReason, RequestState
from dynamo_graphs.plan.request_output import ProfilingResult
from dynamo_graphs.status.events import StatusEvent
from dynamo_graphs.status.graph import GraphState
from dynamo_graphs.status.reasons import GraphReason
from dynamo_graphs.status.request import (
    RequestReport,
    failed_status,
    request_condition,
    request_status,
)
from kube_runtime.kind import Key
from kube_runtime.types.meta import condition

_EXPLAINING = frozenset(GraphReason) - {
    GraphReason.ALL_READY,
    GraphReason.SOME_NOT_READY,
    GraphReason.PODS_NOT_READY,
    GraphReason.UPDATING,
    GraphReason.UPDATE_COMPLETE,
}
"""Reasons of a graph that explain more than that it is not ready yet."""


def renamed(request: DynamoGraphDeploymentRequest, result: ProfilingResult) -> RequestReport:
    """ConfigMaps of the graph have new names; the graph mounts them by these."""
    return RequestReport(
        replace(
            request.status,
            generated_deployment=result.graph,
            additional_resources=result.config_maps,
        )
    )


def created(
    request: DynamoGraphDeploymentRequest, at: Key, warnings: tuple[str, ...]
) -> RequestReport:
    """The graph was created."""
    text = f"DGD {at.name} created, waiting for Ready"
    waiting = request_condition(
        request, RequestConditionType.DEPLOYED, "False", RequestReason.DEPLOYMENT_CREATED, text
    )
    message = "; ".join((text, *warnings))
    status = request_status(request, RequestState.DEPLOYING, waiting, message=message)
    made = DeploymentStatus(at.name, at.namespace, str(GraphState.PENDING), created=True)
    event = f"DynamoGraphDeployment {at.name} created successfully"
    failures = (
        StatusEvent("ConfigMapCreationFailed", warning, is_warning=True) for warning in warnings
    )
    events = (StatusEvent("DeploymentCreated", event), *failures)
    return RequestReport(replace(status, deployment=made), events)


def not_created(
    request: DynamoGraphDeploymentRequest, reason: RequestReason, text: str
) -> RequestReport:
    """The graph could not be created."""
    status = failed_status(request, RequestConditionType.DEPLOYED, reason, text)
    return RequestReport(status, (StatusEvent("DeploymentCreationFailed", text, is_warning=True),))


def mirrored(request: DynamoGraphDeploymentRequest, graph: DynamoGraphDeployment) -> RequestReport:
    """The graph exists; the request repeats its state."""
    name, state = graph.metadata.name, graph.status.state or ""
    deployment = DeploymentStatus(name, graph.metadata.namespace, state, created=True)
    if state == GraphState.SUCCESSFUL:
        text = f"DynamoGraphDeployment {name} is ready"
        ready = request_condition(
            request, RequestConditionType.DEPLOYED, "True", RequestReason.DEPLOYMENT_READY, text
        )
        status = replace(
            request_status(request, RequestState.READY, ready, message=text), deployment=deployment
        )
        event = StatusEvent("DeploymentReady", text)
        return RequestReport(status, () if request.status.state == RequestState.READY else (event,))
    why = _why(graph)
    reason, text, events = _unready(request, name, state)
    text = f"{text}: {why}" if why else text
    waiting = request_condition(request, RequestConditionType.DEPLOYED, "False", reason, text)
    status = request_status(request, RequestState.DEPLOYING, waiting, message=text)
    return RequestReport(replace(status, deployment=deployment), events)


def lost(request: DynamoGraphDeploymentRequest) -> RequestReport:
    """A user deleted the graph, and the operator does not recreate it."""
    deployment = request.status.deployment
    name = deployment.name if deployment and deployment.name else request.metadata.name
    text = "Deployment was deleted by user. Create a new DGDR to redeploy."
    gone = request_condition(
        request, RequestConditionType.DEPLOYED, "False", RequestReason.DEPLOYMENT_DELETED, text
    )
    kept = DeploymentStatus(name, deployment.namespace if deployment else None, created=True)
    warning = (
        f"DGD {name} was deleted. DGDR will not recreate it. Delete this DGDR and create a new one to "
        "redeploy."
    )
    event = StatusEvent("DeploymentDeleted", warning, is_warning=True)
    status = request_status(request, RequestState.DELETED, gone, message=text)
    return RequestReport(replace(status, deployment=kept), (event,))


def _why(graph: DynamoGraphDeployment) -> str:
    """The reason and message of the graph, if they explain more than that it is not ready yet."""
    ready = condition(graph.status.conditions, "Ready")
    if ready is None or ready.status == "True" or ready.reason not in _EXPLAINING:
        return ""
    return f"{ready.reason}: {ready.message}"


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
