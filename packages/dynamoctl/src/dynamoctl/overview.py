"""How an object stands, as a table: what `dynamoctl status` prints. Pure: an object in, text out."""

from collections.abc import Sequence
from datetime import datetime

from dynamo_graphs.api.pause import is_paused
from dynamo_graphs.status.readiness import Stated, is_behind, is_ready, seen_generation
from dynamoctl.ages import ago, since
from dynamoctl.services import Service, services
from kube_runtime.kind import Object

_HEAD = ("SERVICE", "WANTED", "READY", "UPDATED", "REASON", "MESSAGE")
_GAP = "  "


def overview(stated: Stated, *, now: datetime) -> list[str]:
    """The lines: the object, its services, its conditions, and what else a reader has to know."""
    metadata, ready = stated.metadata, "ready" if is_ready(stated) else "not ready"
    lines = [f"{stated.KIND.name} {stated.key}: {ready}"]
    if rows := services(stated):
        lines += ["", *_table([_HEAD, *map(_row, rows)])]
    if conditions := stated.status.conditions:
        said = [
            (each.type, each.status, f"{each.reason}{since(each.last_transition_time, now)}")
            for each in conditions
        ]
        heads = _table(said)
        texts = [f": {each.message}" if each.message else "" for each in conditions]
        lines += ["", *(f"{head}{text}" for head, text in zip(heads, texts, strict=True))]
    # A deletion counts as a new generation, which needs no look.
    notes = [] if metadata.deletion_timestamp else [_about(stated)]
    if is_paused(stated):
        notes.append("Reconciliation is paused: the operator writes nothing for this object.")
    if metadata.deletion_timestamp:
        held = ", ".join(metadata.finalizers) or "nothing"
        asked = ago(metadata.deletion_timestamp, now)
        notes.append(f"Deletion was requested{asked}; blocked by: {held}.")
    return [*lines, "", *notes]


def overview_json(stated: Stated) -> Object:
    """The same for machines. What is not known is null."""
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
        "services": [_service_json(each) for each in services(stated)],
        "conditions": [
            {
                "type": each.type,
                "status": each.status,
                "reason": each.reason,
                "message": each.message,
                "lastTransitionTime": each.last_transition_time,
                "observedGeneration": each.observed_generation,
            }
            for each in stated.status.conditions
        ],
    }


def _service_json(service: Service) -> Object:
    return {
        "name": service.name,
        "wanted": service.wanted,
        "ready": service.ready,
        "updated": service.updated,
        "reason": service.reason or None,
        "message": service.message or None,
    }


def _row(service: Service) -> tuple[str, ...]:
    counts = (service.wanted, service.ready, service.updated)
    numbers = ("-" if each is None else str(each) for each in counts)
    return (service.name, *numbers, service.reason or "-", service.message)


def _about(stated: Stated) -> str:
    newest, seen = stated.metadata.generation, seen_generation(stated)
    if not is_behind(stated):
        return f"Status is up to date (generation {newest})."
    about = f"the status describes generation {seen}" if seen else "there is no status"
    return f"Status is behind generation {newest}: {about}."


def _table(rows: Sequence[tuple[str, ...]]) -> list[str]:
    """The rows with their columns below each other; the last column is as long as it is."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    widths[-1] = 0
    return [
        _GAP.join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
