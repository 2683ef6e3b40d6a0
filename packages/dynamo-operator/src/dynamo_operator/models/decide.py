"""Decide what one reconcile of a model does: which calls to workers are due, and the status before them."""

from dataclasses import dataclass

from dynamo_operator.models import plan as planning
from dynamo_operator.models.api import DynamoModel, DynamoModelSpec, DynamoModelStatus
from dynamo_operator.models.plan import Endpoint, Lora, ModelInputs, Work
from dynamo_operator.models.status import invalid_status, model_status, recorded_places
from dynamo_operator.models.validate import model_problems


@dataclass(frozen=True, slots=True)
class ModelDecision:
    """What to do for a model: the `status` to write, and the calls that are `due`.

    `known` are the endpoints to remember, and `needs_finalizer` is true if workers have, or will get, a LoRA
    of the model; None leaves both as they are. `requeue_after_seconds` has None where no call becomes due by
    time alone.
    """

    status: DynamoModelStatus
    due: tuple[Work, ...] = ()
    known: tuple[Endpoint, ...] | None = None
    needs_finalizer: bool | None = None
    requeue_after_seconds: tuple[float | None, ...] = ()


def decide(model: DynamoModel, inputs: ModelInputs) -> ModelDecision:
    """Decide what to do for a model that is neither paused nor being deleted."""
    problems = model_problems(model)
    if problems or model.spec is None:  # loaded LoRAs stay
        return ModelDecision(invalid_status(model, problems))
    owner = planning.holder(model, inputs.siblings)
    lora = None if owner else planning.lora_of(model.spec)
    present, past = _endpoints(model, model.spec, lora, inputs)
    busy, now = inputs.running.keys(), inputs.now
    loads, next_load = planning.plan(lora, map(inputs.view, present), now=now, busy=busy, room=inputs.room)
    unloads, next_unload = planning.plan(None, past, now=now, busy=busy)
    due = () if inputs.silence else (*loads, *unloads)
    soon = {work.endpoint.id: planning.pending(work.endpoint, work.calls) for work in due}
    soon = {**inputs.running, **soon}
    status = model_status(
        model,
        model.spec,
        inputs,
        endpoints=[soon.get(endpoint.id, endpoint) for endpoint in present],
        former=[soon.get(endpoint.id, endpoint) for endpoint in past],
        holder=owner.metadata.name if owner else "",
    )
    recorded = recorded_places(status)
    will_load = lora is not None and not inputs.silence
    return ModelDecision(
        status,
        due=tuple(work for work in due if work.endpoint.id in recorded),
        known=(*present, *past),
        needs_finalizer=will_load or any(endpoint.names for endpoint in (*present, *past)),
        requeue_after_seconds=() if inputs.silence else (next_load, next_unload),
    )


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
        return planning.with_stale_lora(endpoint, lora) if lora and was_waiting else endpoint

    base, recorded, pod_of = spec.base_model_name, inputs.recorded, inputs.pods.get
    present = {one.id: one for one in planning.endpoints(base, inputs.slices, recorded, pod_of)}
    past = planning.former(base, recorded.values(), present, pod_of)
    settled_past = tuple(endpoint for endpoint in map(settled, past) if endpoint.names)
    return tuple(map(settled, present.values())), settled_past
