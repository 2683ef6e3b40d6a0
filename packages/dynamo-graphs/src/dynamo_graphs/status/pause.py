"""The condition of an object that is paused.

On a graph it is `Progressing`, which is Unknown then. A component and a model have no such condition
otherwise, so they have one of their own, which stays and says when the pause is over.
"""

from enum import StrEnum

from msgspec.structs import replace

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from kube_runtime.types.meta import Condition, Resource, Status, condition, status_of

_COMPONENT_TYPE = "Paused"


class PauseReason(StrEnum):
    """Reasons of `Progressing` on a paused graph, and of the `Paused` of a component or a model."""

    GRAPH_PAUSED = "paused"
    COMPONENT_PAUSED = "Paused"
    COMPONENT_NOT_PAUSED = "NotPaused"


_TEXT = f"{labels.PAUSED} is true: the operator writes nothing for this object"


def paused_status(resource: Resource) -> Status:
    """The status of an object while it is paused. A paused graph has not stalled, so its progress ends."""
    status, generation = status_of(resource), resource.metadata.generation
    if isinstance(resource, DynamoGraphDeployment):
        status = replace(status, progress=None)
        type_, state, reason = "Progressing", "Unknown", PauseReason.GRAPH_PAUSED
    else:
        type_, state, reason = _COMPONENT_TYPE, "True", PauseReason.COMPONENT_PAUSED
    paused = Condition(type_, state, reason, _TEXT, observed_generation=generation)
    return status.with_conditions([paused])


def pause_over(generation: int, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """That an object with these conditions is not paused any more; empty if it never was."""
    if condition(conditions, _COMPONENT_TYPE) is None:
        return ()
    text, reason = "Reconciliation has resumed", PauseReason.COMPONENT_NOT_PAUSED
    return (Condition(_COMPONENT_TYPE, "False", reason, text, observed_generation=generation),)
