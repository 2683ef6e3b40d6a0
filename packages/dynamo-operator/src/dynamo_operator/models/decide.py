"""Decide what one reconcile of a model does: which calls to workers are due, and the status before them."""

from dataclasses import dataclass

from dynamo_operator.models.api import DynamoModel, DynamoModelStatus
from dynamo_operator.models.plan import Endpoint, ModelInputs, Work, plan_model
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
    plan = plan_model(model, model.spec, inputs)
    status = model_status(model, model.spec, plan, inputs)
    recorded = recorded_places(status)
    return ModelDecision(
        status,
        due=tuple(work for work in plan.due if work.endpoint.id in recorded),
        known=(*plan.present, *plan.former),
        needs_finalizer=plan.needs_finalizer,
        requeue_after_seconds=plan.requeue_after_seconds,
    )
