"""The status of a DynamoNimDeployment."""

from collections.abc import Iterable

from msgspec.structs import replace

from dynamo_graphs.status.conditions import pause_over
from dynamo_graphs.status.diagnosis import Diagnosis
from dynamo_graphs.status.stop import Stop, refused
from dynamo_graphs.status.workload import Readiness
from dynamo_graphs.validation import Problem
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment, DynamoNimDeploymentStatus
from dynamo_legacy.api.nim_request import DynamoNimRequest
from dynamo_legacy.status.conditions import (
    AVAILABLE,
    MESSAGE_LIMIT,
    NIM_AVAILABLE,
    NIM_FOUND,
    REQUEST_FOUND,
    NimReason,
)
from kube_runtime.apply.result import Blocked
from kube_runtime.text import fitted
from kube_runtime.types.meta import Condition, condition

_FAILED = "Failed to reconcile DynamoNimDeployment: "


def stopped_status(nim: DynamoNimDeployment, problems: Iterable[str]) -> DynamoNimDeploymentStatus:
    """The status of a component with an invalid spec; running pods stay."""
    return _status(nim, _failed(nim, problems))


def refusal(nim: DynamoNimDeployment, problems: tuple[Problem, ...]) -> Stop:
    """Stop a reconcile because the spec has problems."""
    return refused(stopped_status(nim, map(str, problems)), problems)


def claimless_status(
    nim: DynamoNimDeployment, request: DynamoNimRequest | None, problem: str
) -> DynamoNimDeploymentStatus:
    """The status of a component whose image exists and whose PVC does not."""
    return _status(nim, _failed(nim, (problem,)), *_image_found(nim, request))


def imageless_status(
    nim: DynamoNimDeployment, request: DynamoNimRequest | None
) -> DynamoNimDeploymentStatus:
    """The status of a component without its image, and whether a request builds it."""
    name = nim.spec.dynamo_nim
    image_missing = _condition(nim, NIM_FOUND, "False", f"DynamoNim {name} not found")
    if request is None:
        available = _condition(nim, AVAILABLE, "Unknown", f"Waiting for DynamoNim {name}")
        text = f"DynamoNimRequest {name} not found"
        return _status(nim, available, image_missing, _condition(nim, REQUEST_FOUND, "False", text))
    built = condition(request.status.conditions, NIM_AVAILABLE)
    status, text = "Unknown", f"Waiting for DynamoNimRequest {name}"
    if built is not None and built.status == "False":
        status, text = "False", f"DynamoNimRequest {name}: {built.message}"
    available = _condition(nim, AVAILABLE, status, text)
    request_found = _condition(nim, REQUEST_FOUND, "True", "DynamoNimRequest found")
    return _status(nim, available, image_missing, request_found)


def nim_status(
    nim: DynamoNimDeployment,
    request: DynamoNimRequest | None,
    readiness: Readiness,
    blocked: tuple[Blocked, ...],
    diagnosis: Diagnosis,
) -> DynamoNimDeploymentStatus:
    """The status after an apply. An object that could not be written makes the component unavailable."""
    if blocked:
        available = _failed(nim, (obstruction.message for obstruction in blocked))
    elif readiness.is_ready:
        available = _condition(nim, AVAILABLE, "True", readiness.message, NimReason.READY)
    else:
        texts = [readiness.message, *([diagnosis.message] if diagnosis.message else [])]
        text = fitted(texts, MESSAGE_LIMIT)
        available = _condition(nim, AVAILABLE, "False", text, NimReason.NOT_READY)
    status = _status(nim, available, *_image_found(nim, request))
    # The observed generation shows that nothing blocked that spec.
    generation = nim.metadata.generation
    return status if blocked else replace(status, observed_generation=generation)


def _failed(nim: DynamoNimDeployment, problems: Iterable[str]) -> Condition:
    text = _FAILED + fitted(list(problems), MESSAGE_LIMIT - len(_FAILED))
    return _condition(nim, AVAILABLE, "False", text)


def _image_found(nim: DynamoNimDeployment, request: DynamoNimRequest | None) -> list[Condition]:
    conditions = [_condition(nim, NIM_FOUND, "True", "DynamoNim found")]
    if request is not None:
        conditions.append(_condition(nim, REQUEST_FOUND, "True", "DynamoNimRequest found"))
    return conditions


def _condition(
    nim: DynamoNimDeployment,
    type_: str,
    status: str,
    text: str,
    reason: NimReason = NimReason.RECONCILING,
) -> Condition:
    generation = nim.metadata.generation
    return Condition(type_, status, reason, text, observed_generation=generation)


def _status(nim: DynamoNimDeployment, *reported: Condition) -> DynamoNimDeploymentStatus:
    over = pause_over(nim.metadata.generation, nim.status.conditions)
    return nim.status.with_conditions([*reported, *over])
