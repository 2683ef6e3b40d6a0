"""The status of a DynamoComponentDeployment.

Programs match the reasons, which are the Go operator's. People need to know which pod fails, and why: that is
in the message and in the counts.
"""

from collections.abc import Sequence

from msgspec.structs import replace

from dynamo_graphs.api import labels, names
from dynamo_graphs.api.component import (
    DynamoComponentDeployment,
    DynamoComponentDeploymentStatus,
    ServiceReplicaStatus,
)
from dynamo_graphs.api.framework import declared_or_detected
from dynamo_graphs.facts import Facts
from dynamo_graphs.render.metadata import component_labels
from dynamo_graphs.render.plan import parent_graph
from dynamo_graphs.status.conditions import MESSAGE_LIMIT, new_condition, pause_over
from dynamo_graphs.status.diagnosis import UNKNOWN, Diagnosis
from dynamo_graphs.status.leaderworkerset import NO_ORCHESTRATOR
from dynamo_graphs.status.reasons import ComponentReason
from dynamo_graphs.status.service import cause, diagnosed, is_updating, unexplained
from dynamo_graphs.status.stop import Stop, refused
from dynamo_graphs.status.workload import Readiness
from dynamo_graphs.types.optional_apis import LEADER_WORKER_SET, withheld_text
from dynamo_graphs.validation import Problem
from dynamo_graphs.validation.multinode import lacks_orchestrator
from kube_runtime.apply.result import Blocked, Obstacle
from kube_runtime.text import fitted
from kube_runtime.types.meta import Condition, condition

_REFUSED = "Validation failed: "
_OBSTACLE_REASONS = {
    Obstacle.NAME_CONFLICT: ComponentReason.NAME_CONFLICT,
    Obstacle.REJECTED: ComponentReason.REJECTED,
    Obstacle.NOT_SERVED: ComponentReason.NOT_SERVED,
    Obstacle.NOT_ALLOWED: ComponentReason.NOT_ALLOWED,
    Obstacle.FORBIDDEN: ComponentReason.API_FORBIDDEN,
    Obstacle.PREDECESSOR: ComponentReason.DEPLOYMENT_NOT_READY,
}


def component_stop(
    component: DynamoComponentDeployment, problems: Sequence[Problem], facts: Facts
) -> Stop | None:
    """Why nothing may be applied for a component; None if it may be."""
    if problems:
        return refused(refused_status(component, problems), problems)
    if lacks_orchestrator(component.spec, facts):
        forbidden = withheld_text(facts.withheld, (LEADER_WORKER_SET,))
        reason = ComponentReason.API_FORBIDDEN if forbidden else ComponentReason.NO_ORCHESTRATOR
        text = forbidden or NO_ORCHESTRATOR
        availability = _availability(component, _unready(reason, text))
        status = component.status.with_conditions([_valid(component), *availability])
        return Stop(status, "WorkloadProviderUnavailable", [text])
    return None


def refused_status(
    component: DynamoComponentDeployment, problems: Sequence[Problem]
) -> DynamoComponentDeploymentStatus:
    """The status of a component with an invalid spec.

    Its counts stay, and `observedGeneration` stays at the last spec that was applied.
    """
    text = _REFUSED + fitted([str(problem) for problem in problems], MESSAGE_LIMIT - len(_REFUSED))
    reason = ComponentReason.VALIDATION_FAILED
    invalid = new_condition(component, "Valid", "False", reason, text)
    availability = _availability(component, _unready(reason, text))
    return component.status.with_conditions([invalid, *availability])


def expensive_status(
    component: DynamoComponentDeployment, text: str
) -> DynamoComponentDeploymentStatus:
    """The status of a component that exceeded the limit of CPU time or memory per object; its counts stay."""
    availability = _availability(component, _unready(ComponentReason.TOO_EXPENSIVE, text))
    return component.status.with_conditions(availability)


def component_status(
    component: DynamoComponentDeployment,
    readiness: Readiness,
    replicas: ServiceReplicaStatus | None,
    blocked: Sequence[Blocked],
    diagnosis: Diagnosis = UNKNOWN,
) -> DynamoComponentDeploymentStatus:
    """The status after an apply. An object that could not be written makes the component unavailable."""
    service = _service(component, readiness, replicas, diagnosis) if replicas else None
    if blocked:
        text = fitted([obstacle.message for obstacle in blocked], MESSAGE_LIMIT)
        readiness = _unready(_OBSTACLE_REASONS[blocked[0].obstacle], text)
    elif not readiness.is_ready and diagnosis.message:
        text = fitted([readiness.message, diagnosis.message], MESSAGE_LIMIT)
        readiness = _unready(readiness.reason, text)
    before, pods = component.status, _pod_selector(component)
    # One pod of each replica.
    selector = pods if component.spec.nodes == 1 else pods | {labels.ROLE: "leader"}
    return replace(
        before,
        conditions=(_valid(component), *_availability(component, readiness)),
        service=service,
        pod_selector=pods,
        selector=",".join(f"{name}={value}" for name, value in sorted(selector.items())),
        backend_framework=declared_or_detected(component.spec),
        # The newest spec that was applied without an obstacle.
        observed_generation=before.observed_generation
        if blocked
        else component.metadata.generation,
    )


def _service(
    component: DynamoComponentDeployment,
    readiness: Readiness,
    replicas: ServiceReplicaStatus,
    diagnosis: Diagnosis,
) -> ServiceReplicaStatus:
    """The counts of the component's workload, and why it is not ready."""
    runtime = _labels(component)[labels.DYNAMO_NAMESPACE]
    counts = replace(diagnosed(replicas, diagnosis), runtime_namespace=runtime)
    if readiness.is_ready:
        return unexplained(counts)
    status = component.status
    available = condition(status.conditions, "Available")
    updates = is_updating(
        status.service,
        is_same=status.observed_generation == component.metadata.generation,
        was_ready=available is not None and available.status == "True",
        is_rolling=readiness.is_rolling,
        has_older=readiness.has_older,
    )
    reason = cause(diagnosis.reason, updates=updates)
    named = f"{component.metadata.name}: {readiness.message}"
    return replace(counts, reason=reason, message=diagnosis.message or named)


def _pod_selector(component: DynamoComponentDeployment) -> dict[str, str]:
    """The labels that select the component's pods."""
    if component.spec.nodes == 1:
        return {labels.SELECTOR: names.workload_name(component.metadata.name)}
    return _labels(component)


def _labels(component: DynamoComponentDeployment) -> dict[str, str]:
    return component_labels(component, parent_graph(component))


def _valid(component: DynamoComponentDeployment) -> Condition:
    text = "DynamoComponentDeployment spec is valid"
    return new_condition(component, "Valid", "True", ComponentReason.VALID, text)


def _unready(reason: ComponentReason, message: str) -> Readiness:
    return Readiness(is_ready=False, reason=reason, message=message)


def _availability(component: DynamoComponentDeployment, readiness: Readiness) -> list[Condition]:
    """`Available`, its twin `DynamoComponentReady`, and the end of a pause."""
    status = "True" if readiness.is_ready else "False"
    twins = [
        new_condition(component, type_, status, readiness.reason, readiness.message)
        for type_ in ("Available", "DynamoComponentReady")
    ]
    return [*twins, *pause_over(component.metadata.generation, component.status.conditions)]
