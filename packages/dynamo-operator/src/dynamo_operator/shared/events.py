"""The Events for a change of status of a graph or a model.

An Event is what an engineer on call searches for later: the start or end of a restart, a rollout or a
suspension, and a stalled graph. Ready pods, running loads, the number of endpoints and retries are in the
status only.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from dynamo_operator.graph.api import DynamoGraphDeployment, RestartStatus, RollingUpdateStatus
from dynamo_operator.models.api import DynamoModel
from dynamo_operator.models.plan import ModelReason
from dynamo_operator.shared.conditions import GraphReason
from kube_runtime.types.meta import Condition, condition


@dataclass(frozen=True, slots=True)
class StatusEvent:
    """The reason and message of an Event, and whether it is a warning."""

    reason: str
    message: str
    is_warning: bool = False


_SUSPENSIONS = {"True": "Suspended", "False": "Resumed"}
"""Events of the condition `Suspended`, by its new status."""


def status_events(
    before: DynamoGraphDeployment, after: DynamoGraphDeployment
) -> Iterator[StatusEvent]:
    """The Events between two statuses of a graph."""
    if after.status.restart is not None:
        yield from _restart(before.status.restart, after.status.restart)
    if after.status.rolling_update is not None:
        yield from _rolling_update(before.status.rolling_update, after.status.rolling_update)
    old = {entry.type: entry for entry in before.status.conditions}
    for new in after.status.conditions:
        was = old.get(new.type, Condition(new.type, ""))
        is_overdue = new.reason == GraphReason.DEADLINE_EXCEEDED != was.reason
        if new.type == "Suspended" and new.status != was.status and new.status in _SUSPENSIONS:
            yield StatusEvent(_SUSPENSIONS[new.status], new.message)
        elif new.type == "Progressing" and is_overdue:
            yield StatusEvent("ProgressDeadlineExceeded", new.message, is_warning=True)


def _restart(old: RestartStatus | None, new: RestartStatus) -> Iterator[StatusEvent]:
    before = (old.observed_id, old.phase) if old else (None, None)
    if before == (new.observed_id, new.phase):
        return
    if new.phase == "Restarting":
        yield StatusEvent("RestartStarted", f'Restart "{new.observed_id}" started')
    elif new.phase == "Superseded":
        text = f'Restart "{new.observed_id}" is superseded by the rolling update of the workers'
        yield StatusEvent("RestartSuperseded", text, is_warning=True)
    elif new.phase == "Completed" and before[1] == "Restarting":
        yield StatusEvent("RestartCompleted", f'Restart "{new.observed_id}" completed')


def _rolling_update(
    old: RollingUpdateStatus | None, new: RollingUpdateStatus
) -> Iterator[StatusEvent]:
    if old and (old.phase, old.to_hash) == (new.phase, new.to_hash):
        return
    old_workers = f"workers {new.from_hash or 'without a revision'}"
    change = f"{old_workers} with {new.to_hash or 'those without a revision'}"
    if new.phase == "InProgress":
        yield StatusEvent("RollingUpdateStarted", f"Replacing {change}")
    elif new.phase == "Completed" and old is not None:
        yield StatusEvent("RollingUpdateCompleted", f"Replaced {change}")


def model_status_events(before: DynamoModel, after: DynamoModel) -> Iterator[StatusEvent]:
    """The Events between two statuses of a model."""
    yield from _validity(before, after)
    old, new = (_ready(model) for model in (before, after))
    base = after.spec.base_model_name if after.spec else ""
    total, ready = after.status.total_endpoints or 0, after.status.ready_endpoints or 0
    failing = [
        sum(one.failures > 0 and not one.fallback_covered for one in model.status.endpoints)
        for model in (before, after)
    ]
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
        yield from _readiness(new, base, total)


def _readiness(new: Condition, base: str, total: int) -> Iterator[StatusEvent]:
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
    old, new = (condition(model.status.conditions, "Valid") for model in (before, after))
    if new is None or new.status == "True" or (old is not None and old.message == new.message):
        return
    yield StatusEvent(new.reason, new.message.removeprefix("Validation failed: "), is_warning=True)


def _ready(model: DynamoModel) -> Condition:
    return condition(model.status.conditions, "EndpointsReady") or Condition("EndpointsReady", "")
