"""The next step of a DynamoModel: its endpoints and the calls that are due, from inputs that were read once.

`dynamo_operator.lora` makes the calls, and `status.model` reports their results.

A worker identifies LoRAs by name only, so two models with one name would overwrite and unload each
other's. So one model holds the name. When the holder changes, the former one drops its record of the
LoRA, and the new one unloads what may be there before it loads its own weights.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from dynamo_graphs.api.model import DynamoModel, DynamoModelSpec
from dynamo_graphs.plan.lora_calls import (
    MAX_CONCURRENT_CALLS,
    Endpoint,
    EndpointId,
    Lora,
    Work,
    pending,
    plan,
    with_stale_lora,
    without_loras,
)
from dynamo_graphs.plan.model_endpoints import effective_slices, endpoints, former, services
from kube_runtime.types.core import Pod
from kube_runtime.types.discovery import EndpointSlice
from kube_runtime.types.meta import condition


class ModelReason(StrEnum):
    """Reasons of a model's conditions."""

    VALID = "ValidationPassed"
    INVALID = "ValidationFailed"
    DECODE_FAILED = "DecodeFailed"
    TOO_LARGE = "TooLarge"
    REJECTED = "RejectedByApiServer"
    SERVICES_FOUND = "ServicesFound"
    NO_SERVICES = "NoServicesFound"
    ALL_READY = "AllEndpointsReady"
    NOT_READY = "NotReady"
    NONE_READY = "NoReadyEndpoints"
    DISCOVERED = "EndpointsDiscovered"
    NO_ENDPOINTS = "NoEndpoints"
    CONFLICT = "AdapterNameTaken"
    NOT_CALLED = "CallsDisabled"


@dataclass(frozen=True, slots=True)
class ModelInputs:
    """Everything beside the model itself that its plan depends on, read once.

    `slices` and `siblings` are the EndpointSlices and the other models of its base model, `pods` those
    that slices and recorded endpoints name. `lack` is the reason why the slices have no endpoints, or
    "". `recorded` is the recorded state of endpoints, `running` the possible state of those with a call
    in progress. `silence` is the reason why no worker may be called, or ""; `room` limits concurrent
    calls.
    """

    now: datetime
    slices: tuple[EndpointSlice, ...] = ()
    siblings: tuple[DynamoModel, ...] = ()
    pods: Mapping[str, Pod] = field(default_factory=dict[str, Pod])
    lack: str = ""
    recorded: Mapping[EndpointId, Endpoint] = field(default_factory=dict[EndpointId, Endpoint])
    running: Mapping[EndpointId, Endpoint] = field(default_factory=dict[EndpointId, Endpoint])
    silence: str = ""
    room: int = MAX_CONCURRENT_CALLS

    def view(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint with the possible effect of a call in progress."""
        return self.running.get(endpoint.id, endpoint)

    def is_gone(self, endpoint: Endpoint) -> bool:
        """Whether its pod no longer exists."""
        pod = self.pods.get(endpoint.pod_name)
        return pod is None or pod.metadata.uid != endpoint.pod_uid


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """The endpoints of a model, and the calls to make there.

    `lora` is None if there is nothing to load. `holder` is the model that holds the LoRA's name, "" if
    it is this one. `seen` and `seen_former` are `present` and `former` endpoints with the possible
    effect of calls that are due or in progress. `requeue_after_seconds` has None where no call becomes
    due by time alone.
    """

    lora: Lora | None
    services: tuple[str, ...]
    holder: str
    present: tuple[Endpoint, ...]
    former: tuple[Endpoint, ...]
    seen: tuple[Endpoint, ...]
    seen_former: tuple[Endpoint, ...]
    due: tuple[Work, ...]
    requeue_after_seconds: tuple[float | None, ...]
    needs_finalizer: bool


def plan_model(model: DynamoModel, spec: DynamoModelSpec, inputs: ModelInputs) -> ModelPlan:
    """Plan the next step of a valid model."""
    owner = holder(model, inputs.siblings)
    lora = None if owner else lora_of(spec)
    present, past = _settled_endpoints(model, spec, lora, inputs)
    busy = inputs.running.keys()
    loads = plan(lora, map(inputs.view, present), now=inputs.now, busy=busy, room=inputs.room)
    unloads = plan(None, past, now=inputs.now, busy=busy)
    due = () if inputs.silence else (*loads.work, *unloads.work)
    soon = {work.endpoint.id: pending(work.endpoint, work.calls) for work in due}
    will_load = lora is not None and not inputs.silence
    return ModelPlan(
        lora=lora,
        services=services(effective_slices(spec.base_model_name, inputs.slices)),
        holder=owner.metadata.name if owner else "",
        present=present,
        former=past,
        seen=tuple(soon.get(endpoint.id, inputs.view(endpoint)) for endpoint in present),
        seen_former=tuple(soon.get(endpoint.id, inputs.view(endpoint)) for endpoint in past),
        due=due,
        requeue_after_seconds=()
        if inputs.silence
        else (loads.requeue_after_seconds, unloads.requeue_after_seconds),
        needs_finalizer=will_load or any(endpoint.names for endpoint in (*present, *past)),
    )


def plan_unloading(model: DynamoModel, inputs: ModelInputs) -> tuple[Endpoint, ...]:
    """Every running endpoint, ready or not, that may have a LoRA of a model that is being deleted."""
    given_up = desired_lora_names(inputs.siblings)
    base = model.spec.base_model_name if model.spec else ""
    present = endpoints(base, inputs.slices, inputs.recorded, inputs.pods.get)
    every = {**inputs.recorded, **{endpoint.id: endpoint for endpoint in present}}
    kept = (without_loras(inputs.view(endpoint), given_up) for endpoint in every.values())
    return former("", [endpoint for endpoint in kept if endpoint.names], (), inputs.pods.get)


def lora_of(spec: DynamoModelSpec | None) -> Lora | None:
    """The LoRA to load into the endpoints; None for models of other types."""
    if spec is None or spec.model_type != "lora" or spec.source is None:
        return None
    return Lora(spec.model_name, spec.source.uri)


def _settled_endpoints(
    model: DynamoModel, spec: DynamoModelSpec, lora: Lora | None, inputs: ModelInputs
) -> tuple[tuple[Endpoint, ...], tuple[Endpoint, ...]]:
    """The present and the former endpoints, without LoRAs that other models hold now."""
    given_up = desired_lora_names(inputs.siblings) - {lora.name if lora else ""}
    ready = condition(model.status.conditions, "EndpointsReady")
    was_waiting = ready is not None and ready.reason == ModelReason.CONFLICT

    def settled(endpoint: Endpoint) -> Endpoint:
        if endpoint.id in inputs.running:
            return endpoint  # the call in progress will record its result
        endpoint = without_loras(endpoint, given_up)
        return with_stale_lora(endpoint, lora) if lora and was_waiting else endpoint

    base, recorded = spec.base_model_name, inputs.recorded
    present = endpoints(base, inputs.slices, recorded, inputs.pods.get)
    past = former(base, recorded.values(), present, inputs.pods.get)
    return tuple(map(settled, present)), tuple(
        endpoint for endpoint in map(settled, past) if endpoint.names
    )


def desired_lora_name(model: DynamoModel) -> str:
    """The name of the LoRA to load; "" for other types, and while the model is being deleted."""
    lora = lora_of(model.spec)
    return lora.name if lora is not None and not model.metadata.deletion_timestamp else ""


def siblings(model: DynamoModel, models: Iterable[DynamoModel]) -> tuple[DynamoModel, ...]:
    """The other models on the same base model in the same namespace."""
    spec = model.spec
    return tuple(
        sibling
        for sibling in models
        if spec is not None
        and sibling.spec is not None
        and sibling.metadata.uid != model.metadata.uid
        and sibling.metadata.namespace == model.metadata.namespace
        and sibling.spec.base_model_name == spec.base_model_name
    )


def holder(model: DynamoModel, others: Iterable[DynamoModel]) -> DynamoModel | None:
    """The other model that holds the name of this one's LoRA; None if this one holds it.

    A model that already has loaded it keeps it, else the oldest model gets it.
    """
    name = desired_lora_name(model)
    if not name:
        return None
    for sibling in sorted(others, key=_age):
        wants = desired_lora_name(sibling) == name
        if not wants and not sibling.metadata.deletion_timestamp and _holds(sibling, name):
            return sibling
        if wants and _claim(sibling, name) < _claim(model, name):
            return sibling
    return None


def desired_lora_names(others: Iterable[DynamoModel]) -> frozenset[str]:
    """The names of the LoRAs that these models want to load."""
    return frozenset(filter(None, map(desired_lora_name, others)))


def _claim(model: DynamoModel, name: str) -> tuple[bool, str, str]:
    """Sort key of the models that want a LoRA; the smallest gets it."""
    return not _holds(model, name), *_age(model)


def _age(model: DynamoModel) -> tuple[str, str]:
    return model.metadata.creation_timestamp or "", model.metadata.uid


def _holds(model: DynamoModel, name: str) -> bool:
    status = model.status
    return any(
        name in (endpoint.loaded_name, endpoint.tried_name, *endpoint.leftovers)
        for endpoint in (*status.endpoints, *status.former_endpoints)
    )


def concerns(changed: DynamoModel, sibling: DynamoModel) -> bool:
    """Whether a change of one model may affect which LoRA the other holds."""
    mine, theirs = desired_lora_name(changed), desired_lora_name(sibling)
    if theirs and (theirs == mine or _holds(changed, theirs)):
        return True
    return bool(mine) and _holds(sibling, mine)
