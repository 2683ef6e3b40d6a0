"""Decide what one reconcile of a model does: which calls to workers are due, and the status before them."""

from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum

from dynamo_operator.labels import FINALIZER
from dynamo_operator.models import plan as planning
from dynamo_operator.models.api import DynamoModel, DynamoModelSpec, DynamoModelStatus
from dynamo_operator.models.plan import Endpoint, EndpointId, Lora, ModelInputs, Work
from dynamo_operator.models.status import invalid_status, is_recorded, model_status, recorded_places
from dynamo_operator.models.validate import model_problems
from dynamo_operator.shared.conditions import StatusEvent

UNLOAD_RETRY_SECONDS = 5.0
"""Seconds until the unloading of a deleted model is retried after a namespace lease interrupted it."""


class Unload(Enum):
    """What to do for a deleted model."""

    START = "start to unload its LoRAs"
    WAIT = "wait for the end of that"
    RETRY = "start again later"
    END = "let the model go"


@dataclass(frozen=True, slots=True)
class ModelDecision:
    """What to do for a model: the `status` to write and the `due` calls, or `unload` if it is deleted.

    What the calls may change `is_recorded` if the stored status has it; else they wait for the new one.
    `known` are the endpoints to remember or to unload, and `needs_finalizer` is true if workers have, or will
    get, a LoRA of the model; None leaves both as they are. The pods of `gone` do not exist any more: calls to
    them would hold their slots until the timeout. `requeue_after_seconds` has None where no call becomes due
    by time alone.
    """

    status: DynamoModelStatus | None = None
    due: tuple[Work, ...] = ()
    is_recorded: bool = True
    known: tuple[Endpoint, ...] | None = None
    needs_finalizer: bool | None = None
    gone: tuple[EndpointId, ...] = ()
    requeue_after_seconds: tuple[float | None, ...] = ()
    unload: Unload = Unload.WAIT
    event: StatusEvent | None = None


def decide(model: DynamoModel, inputs: ModelInputs, now: datetime) -> ModelDecision:
    """Decide what to do for a model that is not paused, or is being deleted."""
    gone = tuple(place for place, endpoint in inputs.running.items() if inputs.is_gone(endpoint))
    if model.metadata.deletion_timestamp:
        return replace(_unload(model, inputs), gone=gone)
    problems = model_problems(model)
    if problems or model.spec is None:  # loaded LoRAs stay
        return ModelDecision(invalid_status(model, problems), gone=gone)
    return replace(_load(model, model.spec, inputs, now), gone=gone)


def _unload(model: DynamoModel, inputs: ModelInputs) -> ModelDecision:
    """Decide what to do for a model that is being deleted."""
    if FINALIZER not in model.metadata.finalizers:
        return ModelDecision(unload=Unload.END)
    if (unloading := inputs.unloading) is None:
        ends = planning.plan_unloading(model, inputs)
        if ends and not inputs.silence:
            return ModelDecision(unload=Unload.START, known=ends)
        text = f"{len(ends)} endpoint(s) keep the LoRA: {inputs.silence}"
        event = StatusEvent("LoRAUnloadFailed", text, is_warning=True) if ends else None
        return ModelDecision(unload=Unload.END, event=event)
    if not unloading.is_done:
        return ModelDecision(unload=Unload.WAIT)
    if unloading.failed is None:
        return ModelDecision(unload=Unload.RETRY, requeue_after_seconds=(UNLOAD_RETRY_SECONDS,))
    event = StatusEvent("LoRAUnloaded", f"Unloaded LoRA from {len(inputs.recorded)} endpoint(s)")
    if unloading.failed:
        text = f"Failed to unload LoRA from some endpoints: {unloading.failed} task(s) failed"
        event = StatusEvent("LoRAUnloadFailed", text, is_warning=True)
    return ModelDecision(unload=Unload.END, event=event)


def _load(model: DynamoModel, spec: DynamoModelSpec, inputs: ModelInputs, now: datetime) -> ModelDecision:
    """Decide what to do for a valid model."""
    owner = planning.holder(model, inputs.siblings)
    lora = None if owner else planning.lora_of(spec)
    present, past = _endpoints(model, spec, lora, inputs)
    busy = inputs.running.keys()
    loads, next_load = planning.plan(lora, map(inputs.view, present), now=now, busy=busy, room=inputs.room)
    unloads, next_unload = planning.plan(None, past, now=now, busy=busy)
    due = () if inputs.silence else (*loads, *unloads)
    soon = {work.endpoint.id: planning.pending(work.endpoint, work.calls) for work in due}
    soon = {**inputs.running, **soon}
    status = model_status(
        model,
        spec,
        inputs,
        now,
        endpoints=[soon.get(endpoint.id, endpoint) for endpoint in present],
        former=[soon.get(endpoint.id, endpoint) for endpoint in past],
        holder=owner.metadata.name if owner else "",
    )
    recorded = recorded_places(status)
    due = chosen(tuple(work for work in due if work.endpoint.id in recorded), inputs)
    will_load = lora is not None and not inputs.silence
    return ModelDecision(
        status,
        due=due,
        is_recorded=all(is_recorded(model, planning.pending(work.endpoint, work.calls)) for work in due),
        known=(*present, *past),
        needs_finalizer=will_load or any(endpoint.names for endpoint in (*present, *past)),
        requeue_after_seconds=() if inputs.silence else (next_load, next_unload),
    )


def chosen(due: tuple[Work, ...], inputs: ModelInputs) -> tuple[Work, ...]:
    """The due calls for which a slot is free; endpoints that failed get the last, and half at most."""
    for_failing = max(0, max(1, inputs.room // 2) - inputs.running_after_failure)
    healthy = [work for work in due if not work.endpoint.failures]
    failing = [work for work in due if work.endpoint.failures]
    return tuple([*healthy, *failing[:for_failing]][: max(0, inputs.room - len(inputs.running))])


def _endpoints(
    model: DynamoModel, spec: DynamoModelSpec, lora: Lora | None, inputs: ModelInputs
) -> tuple[tuple[Endpoint, ...], tuple[Endpoint, ...]]:
    """The present and the former endpoints, without LoRAs that other models hold now."""
    taken = planning.held_names(inputs.siblings) | planning.awaited_names(inputs.siblings)
    given_up = taken - {lora.name if lora else ""}
    was_waiting = planning.is_waiting(model)

    def settled(endpoint: Endpoint) -> Endpoint:
        if endpoint.id in inputs.running:
            return endpoint  # the call in progress will record its result
        endpoint = planning.without_loras(endpoint, given_up)
        if lora is None or not was_waiting or endpoint.loaded == lora or lora.name in endpoint.leftovers:
            return endpoint
        # Another model may have loaded other weights under the same name.
        return replace(endpoint, leftovers=(*endpoint.leftovers, lora.name))

    base, recorded, pod_of = spec.base_model_name, inputs.recorded, inputs.pods.get
    present = {one.id: one for one in planning.endpoints(base, inputs.slices, recorded, pod_of)}
    past = planning.former(base, recorded.values(), present, pod_of)
    settled_past = tuple(endpoint for endpoint in map(settled, past) if endpoint.names)
    return tuple(map(settled, present.values())), settled_past
