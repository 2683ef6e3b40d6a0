"""What a DynamoModel is to do next: from its inputs, read once, to its endpoints and the calls that are due.

Pure: the calls run in `dynamo_operator.lora`, and `status.model` says what came of them.

A worker knows LoRAs by name only, so two models with one name would overwrite and unload each other's. So
one model owns the name. When the owner changes, a model that gives a name up forgets it, and the one that
waited for it unloads what may be there before it loads its own weights.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum

from dynamo_graphs.api.model import DynamoModel, DynamoModelSpec
from dynamo_graphs.plan.lora_calls import (
    AT_ONCE,
    Endpoint,
    Lora,
    Place,
    Work,
    doubting,
    forgetting,
    pending,
    plan,
)
from dynamo_graphs.plan.model_endpoints import counting, endpoints, former, services
from kube_runtime.types.core import Pod
from kube_runtime.types.discovery import EndpointSlice
from kube_runtime.types.meta import condition


class ModelReason(StrEnum):
    """Reasons of a model's conditions."""

    VALID = "ValidationPassed"
    INVALID = "ValidationFailed"
    DECODE_FAILED = "DecodeFailed"
    TOO_LARGE = "TooLarge"
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
    """What the decisions on one model depend on beside itself, read once.

    `slices` are of its base model, `siblings` the other models on it, `pods` by name those that slices and
    recorded endpoints name. `lack` is why the slices have no endpoints, "" if they have some.
    `recorded` is what is known of endpoints, `running` what may be true of those that are called now.
    `silence` is why no worker is called, "" if they are; `room` is how many may be called at once.
    """

    now: datetime
    slices: tuple[EndpointSlice, ...] = ()
    siblings: tuple[DynamoModel, ...] = ()
    pods: Mapping[str, Pod] = field(default_factory=dict[str, Pod])
    lack: str = ""
    recorded: Mapping[Place, Endpoint] = field(default_factory=dict[Place, Endpoint])
    running: Mapping[Place, Endpoint] = field(default_factory=dict[Place, Endpoint])
    silence: str = ""
    room: int = AT_ONCE

    def view(self, endpoint: Endpoint) -> Endpoint:
        """The endpoint with what a running call may have done there."""
        return self.running.get(endpoint.place, endpoint)

    def is_gone(self, endpoint: Endpoint) -> bool:
        """Whether its pod does not exist any more."""
        pod = self.pods.get(endpoint.pod_name)
        return pod is None or pod.metadata.uid != endpoint.pod_uid


@dataclass(frozen=True, slots=True)
class ModelPlan:
    """The endpoints of a model, and what is to be done there.

    `adapter` None: nothing is to be loaded. `holder` is the name of the model that has the adapter's name, ""
    if it is this one. `present` and `former` are endpoints without, `seen` and `seen_former` with what calls
    that are due or running may do. None in `requeue_after_seconds`: nothing comes due by time alone.
    """

    adapter: Lora | None
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
    """What is to be done for a valid model now."""
    owner = holder(model, inputs.siblings)
    adapter = None if owner else adapter_of(spec)
    present, past = _settled_endpoints(model, spec, adapter, inputs)
    busy = inputs.running.keys()
    loads = plan(adapter, map(inputs.view, present), now=inputs.now, busy=busy, room=inputs.room)
    unloads = plan(None, past, now=inputs.now, busy=busy)
    due = () if inputs.silence else (*loads.work, *unloads.work)
    soon = {work.endpoint.place: pending(work.endpoint, work.calls) for work in due}
    will_load = adapter is not None and not inputs.silence
    return ModelPlan(
        adapter=adapter,
        services=services(counting(spec.base_model_name, inputs.slices)),
        holder=owner.metadata.name if owner else "",
        present=present,
        former=past,
        seen=tuple(soon.get(endpoint.place, inputs.view(endpoint)) for endpoint in present),
        seen_former=tuple(soon.get(endpoint.place, inputs.view(endpoint)) for endpoint in past),
        due=due,
        requeue_after_seconds=()
        if inputs.silence
        else (loads.requeue_after_seconds, unloads.requeue_after_seconds),
        needs_finalizer=will_load or any(endpoint.names for endpoint in (*present, *past)),
    )


def plan_unloading(model: DynamoModel, inputs: ModelInputs) -> tuple[Endpoint, ...]:
    """Every endpoint, ready or not, that runs and may have an adapter of a model that is being deleted."""
    given_up = names_of_others(inputs.siblings)
    base = model.spec.base_model_name if model.spec else ""
    present = endpoints(base, inputs.slices, inputs.recorded, inputs.pods.get)
    every = {**inputs.recorded, **{endpoint.place: endpoint for endpoint in present}}
    kept = (forgetting(inputs.view(endpoint), given_up) for endpoint in every.values())
    return former("", [endpoint for endpoint in kept if endpoint.names], (), inputs.pods.get)


def adapter_of(spec: DynamoModelSpec | None) -> Lora | None:
    """What is to be loaded into the endpoints. None means: nothing, it is not a LoRA."""
    if spec is None or spec.model_type != "lora" or spec.source is None:
        return None
    return Lora(spec.model_name, spec.source.uri)


def _settled_endpoints(
    model: DynamoModel, spec: DynamoModelSpec, adapter: Lora | None, inputs: ModelInputs
) -> tuple[tuple[Endpoint, ...], tuple[Endpoint, ...]]:
    """The present endpoints and the former ones, without LoRAs that have another owner by now."""
    given_up = names_of_others(inputs.siblings) - {adapter.name if adapter else ""}
    ready = condition(model.status.conditions, "EndpointsReady")
    was_waiting = ready is not None and ready.reason == ModelReason.CONFLICT

    def settled(endpoint: Endpoint) -> Endpoint:
        if endpoint.place in inputs.running:
            return endpoint  # its calls end with what is known of it
        endpoint = forgetting(endpoint, given_up)
        return doubting(endpoint, adapter) if adapter and was_waiting else endpoint

    base, recorded = spec.base_model_name, inputs.recorded
    present = endpoints(base, inputs.slices, recorded, inputs.pods.get)
    past = former(base, recorded.values(), present, inputs.pods.get)
    return tuple(map(settled, present)), tuple(
        endpoint for endpoint in map(settled, past) if endpoint.names
    )


def wanted_name(model: DynamoModel) -> str:
    """The adapter that the model wants to have loaded; "" if it is on its way out, or no LoRA."""
    adapter = adapter_of(model.spec)
    return adapter.name if adapter is not None and not model.metadata.deletion_timestamp else ""


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
    """The model that has the adapter that this one wants. None means: it is this one's.

    Of several that want it, one that has it already keeps it; else the oldest gets it.
    """
    name = wanted_name(model)
    if not name:
        return None
    for sibling in sorted(others, key=_age):
        wants = wanted_name(sibling) == name
        if not wants and not sibling.metadata.deletion_timestamp and _holds(sibling, name):
            return sibling
        if wants and _claim(sibling, name) < _claim(model, name):
            return sibling
    return None


def names_of_others(others: Iterable[DynamoModel]) -> frozenset[str]:
    """The adapters that other models want."""
    return frozenset(filter(None, map(wanted_name, others)))


def _claim(model: DynamoModel, name: str) -> tuple[bool, str, str]:
    """What decides between models, the smallest first."""
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
    """Whether what one model has or wants may be what the other waits for, or has to give up."""
    mine, theirs = wanted_name(changed), wanted_name(sibling)
    if theirs and (theirs == mine or _holds(changed, theirs)):
        return True
    return bool(mine) and _holds(sibling, mine)
