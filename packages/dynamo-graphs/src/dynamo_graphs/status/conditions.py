"""How conditions are built, and the conditions of a paused object."""

from typing import Final

from msgspec.structs import replace

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.status.reasons import PauseReason
from kube_runtime.text import cut
from kube_runtime.types.meta import Condition, Resource, Status, condition, status_of

MESSAGE_LIMIT: Final = 1024
"""Characters of a message. The API server accepts 32,768; this leaves a listing readable."""

_PAUSED: Final = "Paused"
_PAUSED_TEXT: Final = f"{labels.PAUSED} is true: the operator writes nothing for this object"


def new_condition(
    resource: Resource, type_: str, status: str, reason: str, message: str
) -> Condition:
    """A condition that describes the newest spec of the object; a long message is cut."""
    generation = resource.metadata.generation
    return Condition(
        type_, status, reason, cut(message, MESSAGE_LIMIT), observed_generation=generation
    )


def paused_status(resource: Resource) -> Status:
    """The status of a paused object.

    A graph reports the pause in `Progressing`, and its progress deadline no longer runs. The other kinds have
    no such condition, so they get `Paused`.
    """
    status = status_of(resource)
    type_, state, reason = _PAUSED, "True", PauseReason.COMPONENT_PAUSED
    if isinstance(resource, DynamoGraphDeployment):
        status = replace(status, progress=None)
        type_, state, reason = "Progressing", "Unknown", PauseReason.GRAPH_PAUSED
    return status.with_conditions([new_condition(resource, type_, state, reason, _PAUSED_TEXT)])


def pause_over(generation: int, conditions: tuple[Condition, ...]) -> tuple[Condition, ...]:
    """`Paused` is False, for an object with these conditions; empty if it was never paused."""
    if condition(conditions, _PAUSED) is None:
        return ()
    text, reason = "Reconciliation has resumed", PauseReason.COMPONENT_NOT_PAUSED
    return (Condition(_PAUSED, "False", reason, text, observed_generation=generation),)
