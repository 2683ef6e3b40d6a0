"""The status of a DynamoNimDeployment."""

from collections.abc import Iterable

from dynamo_graphs.status.diagnosis import Diagnosis
from dynamo_graphs.status.pause import pause_over
from dynamo_graphs.status.stop import Stop, refused
from dynamo_graphs.status.workload import Readiness
from dynamo_graphs.validation import Problem
from dynamo_legacy.api.nim_deployment import DynamoNimDeployment
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
from kube_runtime.kind import Object
from kube_runtime.text import fitted
from kube_runtime.types.meta import Condition, condition

_FAILED = "Failed to reconcile DynamoNimDeployment: "


def stopped_status(nim: DynamoNimDeployment, problems: Iterable[str]) -> Object:
    """The status of a component whose spec cannot be carried out; its running pods stay."""
    return {"conditions": _conditions(nim, _failed(nim, problems))}


def refusal(nim: DynamoNimDeployment, problems: tuple[Problem, ...]) -> Stop:
    """The end of a reconcile of a component whose spec has problems."""
    return refused(stopped_status(nim, map(str, problems)), problems)


def claimless_status(
    nim: DynamoNimDeployment, request: DynamoNimRequest | None, problem: str
) -> Object:
    """The status of a component that has its image, and not its PVC."""
    reported = (_failed(nim, (problem,)), *_image_found(nim, request))
    return {"conditions": _conditions(nim, *reported)}


def imageless_status(nim: DynamoNimDeployment, request: DynamoNimRequest | None) -> Object:
    """The status of a component whose image is not there, and whether a request builds it."""
    name = nim.spec.dynamo_nim
    if request is None:
        missing = f"DynamoNimRequest {name} not found"
        reported = (
            _available(nim, "Unknown", NimReason.RECONCILING, f"Waiting for DynamoNim {name}"),
            _found(nim, NIM_FOUND, "False", f"DynamoNim {name} not found"),
            _found(nim, REQUEST_FOUND, "False", missing),
        )
        return {"conditions": _conditions(nim, *reported)}
    built = condition(request.status.conditions, NIM_AVAILABLE)
    if built is not None and built.status == "False":
        text = f"DynamoNimRequest {name}: {built.message}"
        available = _available(nim, "False", NimReason.RECONCILING, text)
    else:
        text = f"Waiting for DynamoNimRequest {name}"
        available = _available(nim, "Unknown", NimReason.RECONCILING, text)
    reported = (
        available,
        _found(nim, NIM_FOUND, "False", f"DynamoNim {name} not found"),
        _found(nim, REQUEST_FOUND, "True", "DynamoNimRequest found"),
    )
    return {"conditions": _conditions(nim, *reported)}


def nim_status(
    nim: DynamoNimDeployment,
    request: DynamoNimRequest | None,
    readiness: Readiness,
    blocked: tuple[Blocked, ...],
    diagnosis: Diagnosis,
) -> Object:
    """The status after an apply. An object that could not be written makes the component unavailable."""
    if blocked:
        available = _failed(nim, (each.message for each in blocked))
    elif readiness.is_ready:
        available = _available(nim, "True", NimReason.READY, readiness.message)
    else:
        texts = [readiness.message, *([diagnosis.message] if diagnosis.message else [])]
        text = fitted(texts, MESSAGE_LIMIT)
        available = _available(nim, "False", NimReason.NOT_READY, text)
    reported = _conditions(nim, available, *_image_found(nim, request))
    status: Object = {"conditions": reported}
    # The observed generation shows that nothing blocked that spec.
    return status if blocked else {**status, "observedGeneration": nim.metadata.generation}


def _failed(nim: DynamoNimDeployment, problems: Iterable[str]) -> Condition:
    text = _FAILED + fitted(list(problems), MESSAGE_LIMIT - len(_FAILED))
    return _available(nim, "False", NimReason.RECONCILING, text)


def _image_found(nim: DynamoNimDeployment, request: DynamoNimRequest | None) -> list[Condition]:
    found = [_found(nim, NIM_FOUND, "True", "DynamoNim found")]
    if request is not None:
        found.append(_found(nim, REQUEST_FOUND, "True", "DynamoNimRequest found"))
    return found


def _available(nim: DynamoNimDeployment, status: str, reason: NimReason, text: str) -> Condition:
    generation = nim.metadata.generation
    return Condition(AVAILABLE, status, reason, text, observed_generation=generation)


def _found(nim: DynamoNimDeployment, type_: str, status: str, text: str) -> Condition:
    generation = nim.metadata.generation
    return Condition(type_, status, NimReason.RECONCILING, text, observed_generation=generation)


def _conditions(nim: DynamoNimDeployment, *reported: Condition) -> list[Condition]:
    over = pause_over(nim.metadata.generation, nim.status.conditions)
    return [*reported, *over]
