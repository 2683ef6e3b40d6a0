"""What a DynamoModel is to do next: from its inputs, read once, to its endpoints and the calls that are due.

Pure: the calls run in `dynamo_operator.lora`, and `status.model` says what came of them.
"""

from collections.abc import Mapping
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
from dynamo_graphs.plan.model_siblings import holder, names_of_others
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
    other = holder(model, inputs.siblings)
    adapter = None if other else adapter_of(spec)
    present, past = _settled_endpoints(model, spec, adapter, inputs)
    busy = inputs.running.keys()
    loads = plan(adapter, map(inputs.view, present), now=inputs.now, busy=busy, room=inputs.room)
    unloads = plan(None, past, now=inputs.now, busy=busy)
    due = () if inputs.silence else (*loads.work, *unloads.work)
    soon = {each.endpoint.place: pending(each.endpoint, each.calls) for each in due}
    will_load = adapter is not None and not inputs.silence
    return ModelPlan(
        adapter=adapter,
        services=services(counting(spec.base_model_name, inputs.slices)),
        holder=other.metadata.name if other else "",
        present=present,
        former=past,
        seen=tuple(soon.get(each.place, inputs.view(each)) for each in present),
        seen_former=tuple(soon.get(each.place, inputs.view(each)) for each in past),
        due=due,
        requeue_after_seconds=()
        if inputs.silence
        else (loads.requeue_after_seconds, unloads.requeue_after_seconds),
        needs_finalizer=will_load or any(each.names for each in (*present, *past)),
    )


def plan_unloading(model: DynamoModel, inputs: ModelInputs) -> tuple[Endpoint, ...]:
    """Every endpoint, ready or not, that runs and may have an adapter of a model that is being deleted."""
    given_up = names_of_others(inputs.siblings)
    base = model.spec.base_model_name if model.spec else ""
    present = endpoints(base, inputs.slices, inputs.recorded, inputs.pods.get)
    every = {**inputs.recorded, **{each.place: each for each in present}}
    kept = (forgetting(inputs.view(each), given_up) for each in every.values())
    return former("", [each for each in kept if each.names], (), inputs.pods.get)


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
    was_waiting = _reports_conflict(model)

    def settled(each: Endpoint) -> Endpoint:
        if each.place in inputs.running:
            return each  # its calls end with what is known of it
        each = forgetting(each, given_up)
        return doubting(each, adapter) if adapter and was_waiting else each

    base, recorded = spec.base_model_name, inputs.recorded
    present = endpoints(base, inputs.slices, recorded, inputs.pods.get)
    past = former(base, recorded.values(), present, inputs.pods.get)
    return tuple(map(settled, present)), tuple(each for each in map(settled, past) if each.names)


def _reports_conflict(model: DynamoModel) -> bool:
    """Whether the status says that another model has the adapter's name."""
    found = condition(model.status.conditions, "EndpointsReady")
    return found is not None and found.reason == ModelReason.CONFLICT
