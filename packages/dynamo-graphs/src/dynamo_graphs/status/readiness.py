"""Whether an object of ours is ready according to its status, and whether the status is up to date.

After an edit the conditions still describe the previous spec, so each names its generation. A refused graph
has conditions about its newest spec, but an older `observedGeneration`.
"""

from typing import TypeAlias

from dynamo_graphs.api.component import DynamoComponentDeployment
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.model import DynamoModel
from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from kube_runtime.types.meta import Condition, condition

Stated: TypeAlias = (
    DynamoGraphDeployment
    | DynamoComponentDeployment
    | DynamoGraphDeploymentScalingAdapter
    | DynamoModel
    | DynamoGraphDeploymentRequest
)
"""An object of ours that has conditions."""

_SUMMARY_TYPES = {
    DynamoGraphDeployment: "Ready",
    DynamoComponentDeployment: "Available",
    DynamoGraphDeploymentScalingAdapter: "Ready",
    DynamoModel: "EndpointsReady",
    DynamoGraphDeploymentRequest: "Succeeded",
}


def summary(stated: Stated) -> Condition | None:
    """The condition that sums up the others; None if the operator has not written it yet."""
    return condition(stated.status.conditions, _SUMMARY_TYPES[type(stated)])


def seen_generation(stated: Stated) -> int:
    """The newest generation that the status describes; 0 if none."""
    observed = [entry.observed_generation or 0 for entry in stated.status.conditions]
    if not isinstance(stated, DynamoModel):  # the only kind without the field
        observed.append(stated.status.observed_generation)
    return max(observed, default=0)


def is_behind(stated: Stated) -> bool:
    """Whether the newest spec has not been reconciled yet.

    A request follows the spec that was accepted, so later changes do not count.
    """
    if isinstance(stated, DynamoGraphDeploymentRequest):
        return not stated.status.conditions
    return seen_generation(stated) < stated.metadata.generation


def is_ready(stated: Stated) -> bool:
    """Whether the newest spec is ready and the object is not being deleted."""
    overall = summary(stated)
    if overall is None or overall.status != "True" or stated.metadata.deletion_timestamp:
        return False
    if isinstance(stated, DynamoGraphDeploymentRequest) or overall.observed_generation is None:
        return not is_behind(stated)
    return overall.observed_generation >= stated.metadata.generation
