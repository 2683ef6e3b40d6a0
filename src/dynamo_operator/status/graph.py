"""The status of a DynamoGraphDeployment, put together from its components.

The hard part is a component that has not caught up: right after an edit its conditions speak of the old
spec, so they count only when they were computed for the generation that the graph has just applied.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum

import msgspec

from dynamo_operator.api.component import (
    ComponentSpec,
    DynamoComponentDeployment,
    ServiceReplicaStatus,
)
from dynamo_operator.api.graph import DynamoGraphDeployment
from dynamo_operator.api.names import group_name
from dynamo_operator.kube.applied import Blocked, Obstacle
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.meta import Condition, condition
from dynamo_operator.status.limits import limits
from dynamo_operator.status.reasons import GraphReason
from dynamo_operator.validation import Problem

_OBSTACLE_REASONS = {
    Obstacle.NAME_CONFLICT: GraphReason.NAME_CONFLICT,
    Obstacle.REJECTED: GraphReason.REJECTED,
    Obstacle.NOT_SERVED: GraphReason.FAILED,
}


class State(StrEnum):
    """`status.state`. Source: specification `beyond` S6."""

    PENDING = "pending"
    SUCCESSFUL = "successful"
    FAILED = "failed"


def refused_status(graph: DynamoGraphDeployment, problems: Sequence[Problem]) -> Object:
    """The status of a graph whose spec cannot be used; service counts stay as they were."""
    text = "Validation failed: " + "; ".join(str(each) for each in problems)
    return graph_condition(graph, State.FAILED, GraphReason.VALIDATION_FAILED, text)


def unavailable_status(graph: DynamoGraphDeployment, provider: str) -> Object:
    """The status of a graph whose recorded provider is not there; counts stay as they were."""
    text = f'The workload provider "{provider}", which is recorded for this graph, is not available'
    return graph_condition(graph, State.FAILED, GraphReason.PROVIDER_UNAVAILABLE, text)


def graph_status(
    graph: DynamoGraphDeployment,
    components: Mapping[str, tuple[str, DynamoComponentDeployment | None]],
    blocked: Sequence[Blocked],
) -> Object:
    """The status after an apply.

    `components` maps each service to the name of its DynamoComponentDeployment and to the object that the
    API server holds, or None when it does not exist.
    """
    services = {
        service: _replicas(name, component, graph.spec.services.get(service))
        for service, (name, component) in components.items()
    }
    waiting = {
        name: cause
        for name, component in components.values()
        if (cause := _obstacle(component)) is not None
    }
    return summary(graph, services, waiting, blocked)


def summary(
    graph: DynamoGraphDeployment,
    services: Mapping[str, ServiceReplicaStatus],
    waiting: Mapping[str, str],
    blocked: Sequence[Blocked],
) -> Object:
    """The status from the counts of each service and the causes to wait, by the name of the object."""
    hard = [each for each in blocked if not each.passes_by_itself]
    if hard:
        text = "; ".join(each.message for each in hard)
        status = graph_condition(graph, State.FAILED, _OBSTACLE_REASONS[hard[0].obstacle], text)
        del status["observedGeneration"]  # it says that nothing stood in the way of that spec
    elif blocked:
        text = "; ".join(each.message for each in blocked)
        status = graph_condition(graph, State.PENDING, GraphReason.SOME_NOT_READY, text)
    elif waiting:
        causes = "; ".join(f"{name}: {waiting[name]}" for name in sorted(waiting))
        text = f"Resources not ready: {causes}"
        status = graph_condition(graph, State.PENDING, GraphReason.SOME_NOT_READY, text)
    else:
        status = graph_condition(
            graph, State.SUCCESSFUL, GraphReason.ALL_READY, "All resources are ready"
        )
    return {**status, "services": msgspec.to_builtins(services)}


def is_ready(component: DynamoComponentDeployment) -> bool:
    """Whether a component says that its newest spec runs, and nothing older."""
    return _obstacle(component) is None


def _obstacle(component: DynamoComponentDeployment | None) -> str | None:
    """Why a component is not ready. None means: it is."""
    if component is None:
        return "it is being created"
    available = condition(component.status.conditions, "Available")
    if available is None:
        return "it has no status yet"
    observed = available.observed_generation or component.status.observed_generation
    if observed < component.metadata.generation:
        return "its newest spec has not been observed yet"
    return None if available.status == "True" else available.message


def _replicas(
    name: str, component: DynamoComponentDeployment | None, wanted: ComponentSpec | None
) -> ServiceReplicaStatus:
    """What the component reports; before it does, its kind and name with zero counts.

    Source: specification `beyond` S5 (the schema requires both).
    """
    if component is not None and component.status.service is not None:
        return component.status.service
    if wanted is None or wanted.nodes == 1:
        return ServiceReplicaStatus("Deployment", name, replicas=0, updated_replicas=0)
    first = group_name(name, 0)
    return ServiceReplicaStatus("LeaderWorkerSet", first, replicas=0, updated_replicas=0)


# A condition's message may have 32,768 characters; this leaves a listing readable.
# Source: specification `beyond` F1.
_MESSAGE_LIMIT = 1024


def graph_condition(
    graph: DynamoGraphDeployment, state: State, reason: GraphReason, message: str
) -> Object:
    """The part of the status that says how the graph is: its state, `Ready` and what limits that."""
    generation = graph.metadata.generation
    text = message if len(message) <= _MESSAGE_LIMIT else message[: _MESSAGE_LIMIT - 1] + "…"
    ready = "True" if state is State.SUCCESSFUL else "False"
    return {
        "observedGeneration": generation,
        "state": str(state),
        "conditions": [
            Condition("Ready", ready, reason, text, observed_generation=generation),
            *limits(graph),
        ],
    }
