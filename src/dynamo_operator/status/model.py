"""What is true of a model: its endpoints, how many serve it, and why the others do not.

The hard part is that `ready` means something for a LoRA only. Nothing is asked of the endpoints of a base
model, so none of them is ever ready, and the model is well all the same.
"""

from collections import Counter
from collections.abc import Sequence
from enum import StrEnum

from dynamo_operator.api.model import DynamoModel, DynamoModelSpec, EndpointInfo
from dynamo_operator.kube.kind import Object
from dynamo_operator.kube.types.meta import Condition
from dynamo_operator.lifecycle.adapter_calls import Adapter, Endpoint
from dynamo_operator.validation import Problem

WAITING = "waiting for pod"

_MESSAGE_LIMIT = 1024


class ModelReason(StrEnum):
    """Reasons of a model's conditions. Source: specification `models` 8, `beyond` F9."""

    VALID = "ValidationPassed"
    INVALID = "ValidationFailed"
    SERVICES_FOUND = "ServicesFound"
    NO_SERVICES = "NoServicesFound"
    ALL_READY = "AllEndpointsReady"
    NOT_READY = "NotReady"
    NONE_READY = "NoReadyEndpoints"
    DISCOVERED = "EndpointsDiscovered"
    NO_ENDPOINTS = "NoEndpoints"


def adapter_of(spec: DynamoModelSpec) -> Adapter | None:
    """What is to be loaded into the endpoints. None means: nothing, it is no LoRA."""
    if spec.model_type != "lora" or spec.source is None:
        return None
    return Adapter(spec.model_name, spec.source.uri)


def is_ready(adapter: Adapter | None, endpoint: Endpoint) -> bool:
    """Whether requests for the adapter can go to the endpoint."""
    return adapter is not None and endpoint.is_callable and endpoint.loaded == adapter


def invalid_status(model: DynamoModel, problems: Sequence[Problem]) -> Object:
    """The status of a model whose spec cannot be followed; what was last seen of its endpoints stays."""
    text = f"Validation failed: {'; '.join(str(each) for each in problems)}"
    return {"conditions": [_condition(model, "Valid", "False", ModelReason.INVALID, text)]}


def model_status(
    model: DynamoModel,
    spec: DynamoModelSpec,
    services: Sequence[str],
    endpoints: Sequence[Endpoint],
) -> Object:
    """The status of a valid model. `services` are those that its endpoints were found through."""
    adapter = adapter_of(spec)
    seen = [
        EndpointInfo(each.address, each.pod_name, is_ready(adapter, each)) for each in endpoints
    ]
    valid = ModelReason.VALID, "DynamoModel spec is valid"
    return {
        "endpoints": tuple(seen),
        "readyEndpoints": sum(each.ready for each in seen),
        "totalEndpoints": len(seen),
        "conditions": [
            _condition(model, "Valid", "True", *valid),
            _services_found(model, spec, services, endpoints),
            _endpoints_ready(model, spec, adapter, endpoints),
        ],
    }


def _services_found(
    model: DynamoModel,
    spec: DynamoModelSpec,
    services: Sequence[str],
    endpoints: Sequence[Endpoint],
) -> Condition:
    if services:
        text = f"Found {len(services)} service(s)"
        return _condition(model, "ServicesFound", "True", ModelReason.SERVICES_FOUND, text)
    text = "No services associated with endpoint slices" if endpoints else _no_slices(spec)
    return _condition(model, "ServicesFound", "False", ModelReason.NO_SERVICES, text)


def _endpoints_ready(
    model: DynamoModel,
    spec: DynamoModelSpec,
    adapter: Adapter | None,
    endpoints: Sequence[Endpoint],
) -> Condition:
    total, ready = len(endpoints), sum(is_ready(adapter, each) for each in endpoints)
    if not total:
        found = "False", ModelReason.NO_ENDPOINTS, _no_slices(spec)
    elif adapter is None:
        text = f"Found {total} endpoint(s) for base model"
        found = "True", ModelReason.DISCOVERED, text
    elif ready == total:
        found = "True", ModelReason.ALL_READY, f"All {total} endpoint(s) are ready"
    else:
        reason = ModelReason.NOT_READY if ready else ModelReason.NONE_READY
        text = f"Found {ready} ready endpoint(s) out of {total} total{_cause(adapter, endpoints)}"
        found = "False", reason, text
    return _condition(model, "EndpointsReady", *found)


def _cause(adapter: Adapter, endpoints: Sequence[Endpoint]) -> str:
    """What keeps most of the others; nothing while their first calls are under way."""
    causes = Counter(
        each.message if each.is_callable else WAITING
        for each in endpoints
        if not is_ready(adapter, each) and (each.message or not each.is_callable)
    )
    if not causes:
        return ""
    # Of equally frequent ones the same is told each time, so that the status does not change for nothing.
    message, count = min(causes.items(), key=lambda each: (-each[1], each[0]))
    return f"; {count} of them: {message}"


def _no_slices(spec: DynamoModelSpec) -> str:
    return f"No endpoint slices found for base model {spec.base_model_name}"


def _condition(
    model: DynamoModel, type_: str, status: str, reason: ModelReason, text: str
) -> Condition:
    if len(text) > _MESSAGE_LIMIT:
        text = text[: _MESSAGE_LIMIT - 1] + "…"
    return Condition(type_, status, reason, text, observed_generation=model.metadata.generation)
