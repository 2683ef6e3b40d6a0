"""What the status of an object says that cannot be read, is too large, or cannot be written; by kind."""

from functools import cache as cached
from typing import NamedTuple, TypeVar

from msgspec import structs

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.features.scaling.api import DynamoGraphDeploymentScalingAdapter
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.models.plan import ModelReason
from dynamo_operator.requests.api import DynamoGraphDeploymentRequest, RequestReason
from dynamo_operator.shared.conditions import ComponentReason, GraphReason, GraphState, ScalingReason
from kube_runtime.types.meta import Condition, Kind, Resource, Status

S = TypeVar("S", bound=Status)


class _BareStatus(Status):
    """The part of a status that is the same for all kinds."""

    state: str = ""
    observed_generation: int = 0
    ready_endpoints: int | None = None
    total_endpoints: int | None = None


class _Bare(Resource):
    """An object of any kind without its spec."""

    READ_LEVELS = 4  # a condition, or an owner reference

    status: _BareStatus = _BareStatus()


class FailureReasons(NamedTuple):
    """The conditions of a kind, and their reasons.

    `rejected` is for a failed write on which everything else depends, such as one of the object's metadata.
    """

    conditions: tuple[str, ...]
    unreadable: str
    too_large: str
    rejected: str


FAILURE_REASONS: dict[type[Resource], FailureReasons] = {
    DynamoGraphDeployment: FailureReasons(
        ("Ready",), GraphReason.DECODE_FAILED, GraphReason.TOO_LARGE, GraphReason.REJECTED
    ),
    DynamoComponentDeployment: FailureReasons(
        ("Available", "DynamoComponentReady"),
        ComponentReason.DECODE_FAILED,
        ComponentReason.TOO_LARGE,
        ComponentReason.REJECTED,
    ),
    DynamoGraphDeploymentScalingAdapter: FailureReasons(
        ("Ready",), ScalingReason.DECODE_FAILED, ScalingReason.TOO_LARGE, ScalingReason.REJECTED
    ),
    DynamoModel: FailureReasons(
        ("Valid",), ModelReason.DECODE_FAILED, ModelReason.TOO_LARGE, ModelReason.REJECTED
    ),
    DynamoGraphDeploymentRequest: FailureReasons(
        ("Succeeded",), RequestReason.UNREADABLE, RequestReason.TOO_LARGE, RequestReason.REJECTED
    ),
}
"""By kind. A process with the kinds of the older generation adds theirs."""


@cached
def bare_type(kind: Kind) -> type[_Bare]:
    """A type for objects of the kind without their specs."""
    return type(f"Bare{kind.name}", (_Bare,), {"KIND": kind})


def failed_status(type_: type[Resource], status: S, generation: int, reason: str, text: str) -> S:
    """The status of an object of that type for which the operator can do nothing."""
    status = status.with_conditions(
        Condition(condition, "False", reason, text, observed_generation=generation)
        for condition in FAILURE_REASONS[type_].conditions
    )
    is_graph = type_ is DynamoGraphDeployment
    return structs.replace(status, state=str(GraphState.FAILED)) if is_graph else status
