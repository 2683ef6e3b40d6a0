"""The status and the conditions of a DynamoGraphDeploymentRequest, as every action writes them."""

from dataclasses import dataclass
from typing import TypeAlias

from dynamo_graphs.api.request import DynamoGraphDeploymentRequest
from dynamo_graphs.plan.request import RequestConditionType, RequestReason, RequestState
from kube_runtime.kind import Object
from kube_runtime.types.meta import Condition

MESSAGE_LIMIT = 4096
"""Characters of a condition's message. The API server takes eight times as many."""


Events: TypeAlias = tuple[tuple[str, str, bool], ...]
"""Reason, text, and whether it is a warning."""


@dataclass(frozen=True, slots=True)
class RequestReport:
    """A status to write, and the events to queue once it is written."""

    status: Object
    events: Events = ()


def request_status(
    request: DynamoGraphDeploymentRequest,
    state: RequestState,
    *conditions: Condition,
    message: str,
    **more: object,
) -> Object:
    """The fields of the status, with `conditions` and the one that sums them up."""
    message = message[:MESSAGE_LIMIT]
    succeeded = summary(request, state, conditions, message)
    return {
        "state": str(state),
        "message": message,
        "conditions": [*conditions, succeeded],
        **more,
    }


def summary(
    request: DynamoGraphDeploymentRequest,
    state: RequestState,
    conditions: tuple[Condition, ...],
    message: str,
) -> Condition:
    """The condition that sums the others up."""
    match state:
        case RequestState.READY:
            return request_condition(
                request, RequestConditionType.SUCCEEDED, "True", "Ready", message
            )
        case RequestState.FAILED | RequestState.DELETED:
            steps = (step for step in conditions if step.type != RequestConditionType.SUCCEEDED)
            failed = [step for step in steps if step.status == "False"]
            reason = failed[-1].reason if failed else str(state)
            return request_condition(
                request, RequestConditionType.SUCCEEDED, "False", reason, message
            )
        case _:
            held = (item.reason for item in conditions if item.reason == RequestReason.WAITING)
            reason = next(held, str(state) or RequestReason.NEW)
            return request_condition(
                request, RequestConditionType.SUCCEEDED, "Unknown", reason, message
            )


def request_condition(
    request: DynamoGraphDeploymentRequest,
    type_: RequestConditionType,
    value: str,
    reason: str,
    text: str,
) -> Condition:
    """A condition about the generation of the spec that it describes."""
    generation = None if type_ is RequestConditionType.DEPLOYED else request.metadata.generation
    if (
        type_ in (RequestConditionType.PROFILING, RequestConditionType.GENERATED)
        and request.status.observed_generation
    ):
        generation = request.status.observed_generation  # of the spec that it is about
    return Condition(
        type_, value, str(reason), text[:MESSAGE_LIMIT], observed_generation=generation
    )
