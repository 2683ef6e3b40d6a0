"""The text of `dynamoctl status`. Pure."""

from datetime import datetime

from rich.console import RenderableType
from rich.text import Text

from dynamo_graphs.api.annotations import is_paused
from dynamo_graphs.status.readiness import Stated, is_behind, is_ready, seen_generation
from dynamo_graphs.status.service_rows import Service, services
from dynamoctl.ages import ago, since
from dynamoctl.screen import table
from kube_runtime.commandline.errors import visible
from kube_runtime.kind import Object
from kube_runtime.types.meta import Condition

_HEAD = ("SERVICE", "WANTED", "READY", "UPDATED", "REASON", "MESSAGE")


def overview(stated: Stated, *, now: datetime) -> list[RenderableType]:
    """The parts of a screen: the object, its services, its conditions, and notes."""
    metadata, is_good = stated.metadata, is_ready(stated)
    title = Text(visible(f"{stated.KIND.name} {stated.key}: "))
    title.append("ready" if is_good else "not ready", style="green" if is_good else "red")
    parts: list[RenderableType] = [title]
    if listed := services(stated):
        parts += ["", table(_HEAD, map(_row, listed))]
    if conditions := stated.status.conditions:
        lines = [
            (condition.type, condition.status, _reason(condition, now)) for condition in conditions
        ]
        parts += ["", table((), lines)]
    # A deletion increments the generation, but there is nothing to reconcile.
    notes = [] if metadata.deletion_timestamp else [_about(stated)]
    if is_paused(stated):
        notes.append("Reconciliation is paused: the operator writes nothing for this object.")
    if metadata.deletion_timestamp:
        held = ", ".join(metadata.finalizers) or "nothing"
        asked = ago(metadata.deletion_timestamp, now)
        notes.append(f"Deletion was requested{asked}; blocked by: {held}.")
    return [*parts, "", *map(visible, notes)]


def overview_json(stated: Stated) -> Object:
    """The status as JSON values; null is unknown."""
    return {
        "kind": stated.KIND.name,
        "namespace": stated.metadata.namespace,
        "name": stated.metadata.name,
        "ready": is_ready(stated),
        "generation": stated.metadata.generation,
        "observedGeneration": seen_generation(stated),
        "observed": not is_behind(stated),
        "paused": is_paused(stated),
        "deletionTimestamp": stated.metadata.deletion_timestamp,
        "finalizers": list(stated.metadata.finalizers),
        "services": [_service_json(service) for service in services(stated)],
        "conditions": [
            {
                "type": condition.type,
                "status": condition.status,
                "reason": condition.reason,
                "message": condition.message,
                "lastTransitionTime": condition.last_transition_time,
                "observedGeneration": condition.observed_generation,
            }
            for condition in stated.status.conditions
        ],
    }


def _service_json(service: Service) -> Object:
    return {
        "name": service.name,
        "wanted": service.desired,
        "ready": service.ready,
        "updated": service.updated,
        "reason": service.reason or None,
        "message": service.message or None,
    }


def _row(service: Service) -> tuple[str, ...]:
    counts = (service.desired, service.ready, service.updated)
    numbers = ("-" if count is None else str(count) for count in counts)
    return (service.name, *numbers, service.reason or "-", service.message)


def _about(stated: Stated) -> str:
    newest, seen = stated.metadata.generation, seen_generation(stated)
    if not is_behind(stated):
        return f"Status is up to date (generation {newest})."
    about = f"the status describes generation {seen}" if seen else "there is no status"
    return f"Status is behind generation {newest}: {about}."


def _reason(condition: Condition, now: datetime) -> str:
    head = f"{condition.reason}{since(condition.last_transition_time, now)}"
    return f"{head}: {condition.message}" if condition.message else head
