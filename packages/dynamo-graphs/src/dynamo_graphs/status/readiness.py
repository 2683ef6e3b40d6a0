"""The readiness of an object of ours, from its status: whether it is ready, and whether that is current.

After an edit the conditions still describe the spec before, and each names its generation; a graph that was
refused has conditions about its newest spec and an older `observedGeneration`.
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
"""An object whose status says how it is."""

_SUMS_UP = {
    DynamoGraphDeployment: "Ready",
    DynamoComponentDeployment: "Available",
    DynamoGraphDeploymentScalingAdapter: "Ready",
    DynamoModel: "EndpointsReady",
    DynamoGraphDeploymentRequest: "Succeeded",
}


def summary(stated: Stated) -> Condition | None:
    """The condition that sums all others up. None means: it has never been written."""
    return condition(stated.status.conditions, _SUMS_UP[type(stated)])


def seen_generation(stated: Stated) -> int:
    """The newest spec that anything in the status is about; 0 if nothing is known."""
    observed = [entry.observed_generation or 0 for entry in stated.status.conditions]
    if not isinstance(stated, DynamoModel):  # which has no such field
        observed.append(stated.status.observed_generation)
    return max(observed, default=0)


def is_behind(stated: Stated) -> bool:
    """Whether the newest spec has not been reconciled yet.

    Of a request only the spec that it was accepted with counts, whatever is written later.
    """
    if isinstance(stated, DynamoGraphDeploymentRequest):
        return not stated.status.conditions
    return seen_generation(stated) < stated.metadata.generation


def is_ready(stated: Stated) -> bool:
    """Whether the object is what its newest spec asks for, and is to stay."""
    overall = summary(stated)
    if overall is None or overall.status != "True" or stated.metadata.deletion_timestamp:
        return False
    if isinstance(stated, DynamoGraphDeploymentRequest) or overall.observed_generation is None:
        return not is_behind(stated)
    return overall.observed_generation >= stated.metadata.generation
