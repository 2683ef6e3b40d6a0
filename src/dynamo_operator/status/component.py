"""The status of a DynamoComponentDeployment."""

from collections.abc import Sequence

import msgspec

from dynamo_operator.api.component import DynamoComponentDeployment, ServiceReplicaStatus
from dynamo_operator.kube.applied import Blocked, Obstacle
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.meta import Condition
from dynamo_operator.status.groups import NO_ORCHESTRATOR
from dynamo_operator.status.reasons import ComponentReason
from dynamo_operator.status.workload import Readiness
from dynamo_operator.validation import Problem

_OBSTACLE_REASONS = {
    Obstacle.NAME_CONFLICT: ComponentReason.NAME_CONFLICT,
    Obstacle.REJECTED: ComponentReason.REJECTED,
    Obstacle.NOT_SERVED: ComponentReason.NOT_SERVED,
    Obstacle.PREDECESSOR: ComponentReason.DEPLOYMENT_NOT_READY,
}


def refused_status(component: DynamoComponentDeployment, problems: Sequence[Problem]) -> Object:
    """The status of a component whose spec cannot be used; counts stay as they were."""
    text = "Validation failed: " + "; ".join(str(each) for each in problems)
    generation = component.metadata.generation
    return {
        "observedGeneration": generation,
        "conditions": [
            Condition(
                "Valid",
                "False",
                ComponentReason.VALIDATION_FAILED,
                text,
                observed_generation=generation,
            ),
            *_availability(_unready(ComponentReason.VALIDATION_FAILED, text), generation),
        ],
    }


def unorchestrated_status(component: DynamoComponentDeployment) -> Object:
    """The status of a component on several nodes where nothing runs such pods."""
    generation = component.metadata.generation
    readiness = _unready(ComponentReason.NO_ORCHESTRATOR, NO_ORCHESTRATOR)
    return {"conditions": [_valid(generation), *_availability(readiness, generation)]}


def component_status(
    component: DynamoComponentDeployment,
    readiness: Readiness,
    replicas: ServiceReplicaStatus | None,
    blocked: Sequence[Blocked],
) -> Object:
    """The status after an apply. An object that could not be written makes the component unavailable."""
    generation = component.metadata.generation
    if blocked:
        text = "; ".join(each.message for each in blocked)
        readiness = _unready(_OBSTACLE_REASONS[blocked[0].obstacle], text)
    status: Object = {
        "conditions": [_valid(generation), *_availability(readiness, generation)],
        "service": msgspec.to_builtins(replicas) if replicas else None,
    }
    # The observed generation says that nothing stood in the way of that spec.
    return status if blocked else {**status, "observedGeneration": generation}


def _valid(generation: int) -> Condition:
    return Condition(
        "Valid",
        "True",
        ComponentReason.VALID,
        "DynamoComponentDeployment spec is valid",
        observed_generation=generation,
    )


def _unready(reason: ComponentReason, message: str) -> Readiness:
    return Readiness(is_ready=False, reason=reason, message=message)


def _availability(readiness: Readiness, generation: int) -> list[Condition]:
    """`Available` and its twin `DynamoComponentReady`, which both say the same."""
    status = "True" if readiness.is_ready else "False"
    return [
        Condition(
            type_, status, readiness.reason, readiness.message, observed_generation=generation
        )
        for type_ in ("Available", "DynamoComponentReady")
    ]
