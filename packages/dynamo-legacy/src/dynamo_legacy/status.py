"""The statuses of the older generation."""

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final

from msgspec.structs import replace

from dynamo_legacy.api import (
    DynamoDeployment,
    DynamoDeploymentStatus,
    DynamoNimDeployment,
    DynamoNimDeploymentStatus,
    DynamoNimRequest,
    DynamoNimSpec,
)
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.translate import as_component
from dynamo_operator.component.api import ingress_host
from dynamo_operator.component.diagnosis import Diagnosis
from dynamo_operator.component.status import Readiness
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.conditions import Stop, pause_over, stop_of_problems
from dynamo_operator.shared.problems import Problem
from kube_runtime.apply.result import Blocked
from kube_runtime.types.meta import Condition, condition, cut, fitted

AVAILABLE: Final = "Available"
NIM_FOUND: Final = "DynamoNimFound"
REQUEST_FOUND: Final = "DynamoNimRequestFound"
NIM_AVAILABLE: Final = "DynamoNimAvailable"
"""Of a DynamoNimRequest: whether its build has written the DynamoNim."""
READY: Final = "Ready"
EXPOSED: Final = "EndpointExposed"
WARNING: Final = "ConfigurationWarning"

MESSAGE_LIMIT: Final = 1024
"""Characters of a message, as for graphs. The API server accepts 32,768."""


class NimReason(StrEnum):
    """Reasons of a DynamoNimDeployment's conditions."""

    READY = "DeploymentReady"
    NOT_READY = "DeploymentNotReady"
    RECONCILING = "Reconciling"


class DeploymentReason(StrEnum):
    """Reasons of a DynamoDeployment's conditions."""

    ALL_READY = "all_deployments_are_ready"
    SOME_NOT_READY = "some_deployments_are_not_ready"
    NO_CONFIG = "failed_to_get_the_DynamoNIMConfig"
    NOT_GENERATED = "failed_to_generate_the_DynamoNimDeployments"
    REQUEST_NOT_SYNCED = "failed_to_sync_the_DynamoNimRequest"
    NOT_SYNCED = "failed_to_sync_the_DynamoNimDeployment"
    EXPOSED = "EndpointExposed"
    NOT_EXPOSED = "EndpointNotExposed"
    UNKNOWN_SERVICES = "unknown_services"
    NO_WARNING = "no_warning"
    UNDEFINED = "undefined"


class State(StrEnum):
    """The state of a DynamoDeployment."""

    FAILED = "failed"
    PENDING = "pending"
    SUCCESSFUL = "successful"


def unresolved_status(
    deployment: DynamoDeployment, state: State, reason: DeploymentReason, text: str
) -> DynamoDeploymentStatus:
    """The status of a deployment without a graph; running components stay."""
    ready = _said(deployment, READY, "False", cut(text, MESSAGE_LIMIT), reason)
    return _status(deployment, state, [ready])


def deployment_status(
    deployment: DynamoDeployment,
    components: Iterable[DynamoNimDeployment],
    blocked: Sequence[Blocked],
    urls: Sequence[str],
    unknown_services: Sequence[str],
) -> DynamoDeploymentStatus:
    """The status after an apply, from the status of all components.

    `urls` are those of exposed components. `unknown_services` are overridden but not in the graph.
    """
    state, ready = _readiness(deployment, components, blocked)
    named = ", ".join(f"spec.services.{service}" for service in unknown_services)
    ignored = named and cut(f"{named}: not found in the graph; ignored", MESSAGE_LIMIT)
    address = fitted(list(urls), MESSAGE_LIMIT) if urls else ""
    exposed = (address, DeploymentReason.EXPOSED)
    unexposed = ("No component is reached from outside", DeploymentReason.NOT_EXPOSED)
    unknown = (ignored, DeploymentReason.UNKNOWN_SERVICES)
    known = ("All services are in the graph", DeploymentReason.NO_WARNING)
    optional = (
        *_optional(deployment, EXPOSED, exposed, unexposed),
        *_optional(deployment, WARNING, unknown, known),
    )
    status = _status(deployment, state, [ready, *optional])
    # The observed generation shows that nothing blocked that spec.
    generation = deployment.metadata.generation
    return status if blocked else replace(status, observed_generation=generation)


def urls(component: DynamoNimDeployment, settings: RenderSettings, legacy: LegacySettings) -> tuple[str, ...]:
    """The URLs of a component outside the cluster; none before its Ingress has been applied."""
    ingress = as_component(component, DynamoNimSpec(), settings, legacy).spec.ingress
    is_applied = component.status.observed_generation > 0
    if not is_applied or ingress is None:
        return ()
    if not (ingress.ingress_controller_class_name or ingress.virtual_service_gateway):
        return ()
    scheme = "https" if ingress.tls and ingress.tls.secret_name else "http"
    return (f"{scheme}://{ingress_host(ingress)}",)


def is_ready(component: DynamoNimDeployment) -> bool:
    """Whether a component runs its newest spec."""
    available = condition(component.status.conditions, AVAILABLE)
    is_current = component.status.observed_generation == component.metadata.generation
    return is_current and available is not None and available.status == "True"


def _readiness(
    deployment: DynamoDeployment, components: Iterable[DynamoNimDeployment], blocked: Sequence[Blocked]
) -> tuple[State, Condition]:
    if blocked:
        text = fitted([obstruction.message for obstruction in blocked], MESSAGE_LIMIT)
        is_request = blocked[0].kind != DynamoNimDeployment.KIND.name
        reason = DeploymentReason.REQUEST_NOT_SYNCED if is_request else DeploymentReason.NOT_SYNCED
        return State.FAILED, _said(deployment, READY, "False", text, reason)
    waiting = {component.metadata.name: component for component in components}
    waiting = {name: waiting[name] for name in sorted(waiting) if not is_ready(waiting[name])}
    if waiting:
        named = fitted(list(waiting), MESSAGE_LIMIT - 64, between=" ")
        summary = f"The following deployments are not ready: [{named}]"
        text = fitted([summary, *_failures(waiting.values())], MESSAGE_LIMIT)
        reason = DeploymentReason.SOME_NOT_READY
        return State.PENDING, _said(deployment, READY, "False", text, reason)
    text, reason = "All deployments are ready", DeploymentReason.ALL_READY
    return State.SUCCESSFUL, _said(deployment, READY, "True", text, reason)


def _optional(
    deployment: DynamoDeployment,
    type_: str,
    positive: tuple[str, DeploymentReason],
    negative: tuple[str, DeploymentReason],
) -> Iterator[Condition]:
    """A condition that is true while there is a text, and false afterwards; none before."""
    if positive[0]:
        yield _said(deployment, type_, "True", *positive)
    elif condition(deployment.status.conditions, type_) is not None:
        yield _said(deployment, type_, "False", *negative)


def _failures(components: Iterable[DynamoNimDeployment]) -> Iterator[str]:
    for component in components:
        available = condition(component.status.conditions, AVAILABLE)
        if available and available.status == "False" and available.reason == NimReason.RECONCILING:
            yield f"{component.metadata.name}: {available.message}"


def _status(
    deployment: DynamoDeployment, state: State, reported: Iterable[Condition]
) -> DynamoDeploymentStatus:
    over = pause_over(deployment.metadata.generation, deployment.status.conditions)
    return replace(deployment.status, state=str(state), conditions=(*reported, *over))


_FAILED = "Failed to reconcile DynamoNimDeployment: "


def refusal(nim: DynamoNimDeployment, problems: tuple[Problem, ...]) -> Stop:
    """Stop a reconcile because the spec has problems; running pods stay."""
    return stop_of_problems(_nim_status(nim, _failed(nim, map(str, problems))), problems)


def claimless_status(
    nim: DynamoNimDeployment, request: DynamoNimRequest | None, problem: str
) -> DynamoNimDeploymentStatus:
    """The status of a component whose image exists and whose PVC does not."""
    return _nim_status(nim, _failed(nim, (problem,)), *_image_found(nim, request))


def imageless_status(nim: DynamoNimDeployment, request: DynamoNimRequest | None) -> DynamoNimDeploymentStatus:
    """The status of a component without its image, and whether a request builds it."""
    name = nim.spec.dynamo_nim
    image_missing = _said(nim, NIM_FOUND, "False", f"DynamoNim {name} not found")
    if request is None:
        available = _said(nim, AVAILABLE, "Unknown", f"Waiting for DynamoNim {name}")
        text = f"DynamoNimRequest {name} not found"
        return _nim_status(nim, available, image_missing, _said(nim, REQUEST_FOUND, "False", text))
    built = condition(request.status.conditions, NIM_AVAILABLE)
    status, text = "Unknown", f"Waiting for DynamoNimRequest {name}"
    if built is not None and built.status == "False":
        status, text = "False", f"DynamoNimRequest {name}: {built.message}"
    available = _said(nim, AVAILABLE, status, text)
    request_found = _said(nim, REQUEST_FOUND, "True", "DynamoNimRequest found")
    return _nim_status(nim, available, image_missing, request_found)


def nim_status(
    nim: DynamoNimDeployment,
    request: DynamoNimRequest | None,
    readiness: Readiness,
    blocked: tuple[Blocked, ...],
    diagnosis: Diagnosis,
) -> DynamoNimDeploymentStatus:
    """The status after an apply. An object that could not be written makes the component unavailable."""
    if blocked:
        available = _failed(nim, (obstruction.message for obstruction in blocked))
    elif readiness.is_ready:
        available = _said(nim, AVAILABLE, "True", readiness.message, NimReason.READY)
    else:
        texts = [readiness.message, *([diagnosis.message] if diagnosis.message else [])]
        text = fitted(texts, MESSAGE_LIMIT)
        available = _said(nim, AVAILABLE, "False", text, NimReason.NOT_READY)
    status = _nim_status(nim, available, *_image_found(nim, request))
    # The observed generation shows that nothing blocked that spec.
    generation = nim.metadata.generation
    return status if blocked else replace(status, observed_generation=generation)


def _failed(nim: DynamoNimDeployment, problems: Iterable[str]) -> Condition:
    text = _FAILED + fitted(list(problems), MESSAGE_LIMIT - len(_FAILED))
    return _said(nim, AVAILABLE, "False", text)


def _image_found(nim: DynamoNimDeployment, request: DynamoNimRequest | None) -> list[Condition]:
    conditions = [_said(nim, NIM_FOUND, "True", "DynamoNim found")]
    if request is not None:
        conditions.append(_said(nim, REQUEST_FOUND, "True", "DynamoNimRequest found"))
    return conditions


def _said(
    stated: DynamoDeployment | DynamoNimDeployment,
    type_: str,
    status: str,
    text: str,
    reason: NimReason | DeploymentReason = NimReason.RECONCILING,
) -> Condition:
    generation = stated.metadata.generation
    return Condition(type_, status, reason, text, observed_generation=generation)


def _nim_status(nim: DynamoNimDeployment, *reported: Condition) -> DynamoNimDeploymentStatus:
    over = pause_over(nim.metadata.generation, nim.status.conditions)
    return nim.status.with_conditions([*reported, *over])
