"""The status of a DynamoDeployment."""

from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from dynamo_graphs.api.component_fields import ingress_host
from dynamo_graphs.settings import RenderSettings
from dynamo_graphs.status.conditions import pause_over
from dynamo_legacy.api.deployment import DynamoDeployment, DynamoDeploymentStatus
from dynamo_legacy.api.nim import DynamoNimSpec
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
from dynamo_legacy.settings import LegacySettings
from dynamo_legacy.status.conditions import (
    AVAILABLE,
    EXPOSED,
    MESSAGE_LIMIT,
    READY,
    WARNING,
    DeploymentReason,
    NimReason,
    State,
)
from dynamo_legacy.translate import as_component
from kube_runtime.apply.result import Blocked
from kube_runtime.text import cut, fitted
from kube_runtime.types.meta import Condition, condition


def unresolved_status(
    deployment: DynamoDeployment, state: State, reason: DeploymentReason, text: str
) -> DynamoDeploymentStatus:
    """The status of a deployment without a graph; running components stay."""
    ready = _condition(deployment, READY, "False", reason, cut(text, MESSAGE_LIMIT))
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
    conditions = [ready, *_exposed(deployment, urls), *_warning(deployment, unknown_services)]
    status = _status(deployment, state, conditions)
    # The observed generation shows that nothing blocked that spec.
    generation = deployment.metadata.generation
    return status if blocked else replace(status, observed_generation=generation)


def urls(
    component: DynamoNimDeployment, settings: RenderSettings, legacy: LegacySettings
) -> tuple[str, ...]:
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
    deployment: DynamoDeployment,
    components: Iterable[DynamoNimDeployment],
    blocked: Sequence[Blocked],
) -> tuple[State, Condition]:
    if blocked:
        text = fitted([obstruction.message for obstruction in blocked], MESSAGE_LIMIT)
        is_request = blocked[0].kind != DynamoNimDeployment.KIND.name
        reason = DeploymentReason.REQUEST_NOT_SYNCED if is_request else DeploymentReason.NOT_SYNCED
        return State.FAILED, _condition(deployment, READY, "False", reason, text)
    waiting = {component.metadata.name: component for component in components}
    waiting = {name: waiting[name] for name in sorted(waiting) if not is_ready(waiting[name])}
    if waiting:
        named = fitted(list(waiting), MESSAGE_LIMIT - 64, between=" ")
        summary = f"The following deployments are not ready: [{named}]"
        text = fitted([summary, *_failures(waiting.values())], MESSAGE_LIMIT)
        reason = DeploymentReason.SOME_NOT_READY
        return State.PENDING, _condition(deployment, READY, "False", reason, text)
    text, reason = "All deployments are ready", DeploymentReason.ALL_READY
    return State.SUCCESSFUL, _condition(deployment, READY, "True", reason, text)


def _failures(components: Iterable[DynamoNimDeployment]) -> Iterator[str]:
    """Why components cannot be reconciled; nothing of those that are only not ready yet."""
    for component in components:
        available = condition(component.status.conditions, AVAILABLE)
        if available and available.status == "False" and available.reason == NimReason.RECONCILING:
            yield f"{component.metadata.name}: {available.message}"


def _exposed(deployment: DynamoDeployment, urls: Sequence[str]) -> list[Condition]:
    if urls:
        text, reason = fitted(list(urls), MESSAGE_LIMIT), DeploymentReason.EXPOSED
        return [_condition(deployment, EXPOSED, "True", reason, text)]
    if condition(deployment.status.conditions, EXPOSED) is None:
        return []
    text, reason = "No component is reached from outside", DeploymentReason.NOT_EXPOSED
    return [_condition(deployment, EXPOSED, "False", reason, text)]


def _warning(deployment: DynamoDeployment, unknown_services: Sequence[str]) -> list[Condition]:
    if unknown_services:
        named = ", ".join(f"spec.services.{service}" for service in unknown_services)
        text = cut(f"{named}: not found in the graph; ignored", MESSAGE_LIMIT)
        reason = DeploymentReason.UNKNOWN_SERVICES
        return [_condition(deployment, WARNING, "True", reason, text)]
    if condition(deployment.status.conditions, WARNING) is None:
        return []
    text, reason = "All services are in the graph", DeploymentReason.NO_WARNING
    return [_condition(deployment, WARNING, "False", reason, text)]


def _condition(
    deployment: DynamoDeployment, type_: str, status: str, reason: DeploymentReason, text: str
) -> Condition:
    generation = deployment.metadata.generation
    return Condition(type_, status, reason, text, observed_generation=generation)


def _status(
    deployment: DynamoDeployment, state: State, reported: Iterable[Condition]
) -> DynamoDeploymentStatus:
    over = pause_over(deployment.metadata.generation, deployment.status.conditions)
    return replace(deployment.status, state=str(state), conditions=(*reported, *over))
