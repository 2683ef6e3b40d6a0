"""What has just happened to a model, as events: recorded once, when its status was written.

A load in progress, a change in the number of endpoints and a retry are not events; they are in the status.
An event is for what users search for later.
"""

from collections.abc import Iterator

from dynamo_graphs.api.model import DynamoModel, EndpointInfo
from dynamo_graphs.plan.model import ModelReason
from dynamo_graphs.status.events import StatusEvent
from kube_runtime.types.meta import Condition, condition


def model_status_events(before: DynamoModel, after: DynamoModel) -> Iterator[StatusEvent]:
    """What changed from one status of a model to the next."""
    yield from _validity(before, after)
    old, new = (_ready(each) for each in (before, after))
    base = after.spec.base_model_name if after.spec else ""
    total, ready = after.status.total_endpoints or 0, after.status.ready_endpoints or 0
    failing = [sum(map(_is_failing, each.status.endpoints)) for each in (before, after)]
    if failing[1] and not failing[0]:
        cause = new.message.partition("; ")[2]
        text = f"Some endpoints failed to load LoRA: {failing[1]} task(s) failed"
        text = f"{text}; {cause}" if cause else text
        yield StatusEvent("PartialEndpointFailure", text, is_warning=True)
    has_lost = old.reason == ModelReason.ALL_READY and ready < (before.status.ready_endpoints or 0)
    if new.reason in (ModelReason.NOT_READY, ModelReason.NONE_READY):
        if has_lost or (failing[1] and not failing[0]):  # one more pod is not a loss
            text = f"Only {ready} of {total} endpoints ready for base model {base}"
            yield StatusEvent("NotReady", text, is_warning=True)
    elif new.reason != old.reason:
        yield from _of_reason(new, base, total)


def _of_reason(new: Condition, base: str, total: int) -> Iterator[StatusEvent]:
    match new.reason:
        case ModelReason.ALL_READY:
            text = f"All {total} endpoints ready for base model {base}"
            yield StatusEvent("EndpointsReady", text)
        case ModelReason.DISCOVERED:
            yield StatusEvent(
                "EndpointsDiscovered", f"Discovered {total} endpoints for base model {base}"
            )
        case ModelReason.NO_ENDPOINTS:
            yield StatusEvent("NoEndpointsFound", new.message, is_warning=True)
        case ModelReason.CONFLICT | ModelReason.NOT_CALLED:
            yield StatusEvent(new.reason, new.message, is_warning=True)
        case _:
            pass


def _validity(before: DynamoModel, after: DynamoModel) -> Iterator[StatusEvent]:
    old, new = (condition(each.status.conditions, "Valid") for each in (before, after))
    if new is None or new.status == "True" or (old is not None and old.message == new.message):
        return
    yield StatusEvent(new.reason, new.message.removeprefix("Validation failed: "), is_warning=True)


def _ready(model: DynamoModel) -> Condition:
    return condition(model.status.conditions, "EndpointsReady") or Condition("EndpointsReady", "")


def _is_failing(endpoint: EndpointInfo) -> bool:
    return endpoint.failures > 0 and not endpoint.fallback_covered
