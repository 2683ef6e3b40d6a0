"""`dynamoctl get`, `models`, `requests` and `events`, and the overview of an object."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from datetime import UTC, datetime

import msgspec
from cyclopts import CycloptsError
from rich.console import RenderableType
from rich.text import Text

from dynamo_graphs import reader
from dynamo_graphs.ages import ago, short_age, since
from dynamo_graphs.services import services
from dynamo_operator import labels
from dynamo_operator.shared.conditions import Stated, is_behind, is_ready, seen_generation
from dynamoctl.options import Where
from dynamoctl.screen import Cell, Styled, redrawing, show, show_json, table
from dynamoctl.target import cluster, namespace_in_words, target_of, type_named
from kube_runtime.commandline import ExitCode, visible
from kube_runtime.crd import Column
from kube_runtime.errors import NotFound
from kube_runtime.types.kinds import Event
from kube_runtime.types.meta import Key, Kind, Object, Resource

RAW = ("json", "yaml", "name")
"""Output formats of objects as they are stored."""

_STEP = re.compile(r"""\.(\w+)(?:\[\?\(@\.type==["'](\w+)["']\)\])?""")
"""One field of a path; for a list of conditions with the type of the one that is meant."""


async def print_list(
    kind: str, where: Where, output: str, *, everywhere: bool, selector: str, watch: bool
) -> ExitCode:
    """Print the objects of a kind, and again on each change if they are watched.

    `kind` is any name that kubectl takes. A watch ends with Ctrl-C only.
    """
    if watch and output in RAW:
        raise CycloptsError(f"--watch prints a table (expected --output table or wide, not {output})")
    type_ = type_named(kind, reader.STATED)
    columns = [column for column in type_.DEFINITION.columns if output == "wide" or not column.priority]
    async with cluster(where) as at:
        namespace = "" if everywhere else at.namespace
        try:
            if watch:
                await _watched(at.reading, type_.KIND, namespace, selector, columns)
                return ExitCode.OK
            objects = await at.reading.all_raw(type_.KIND, namespace, labels=selector)
        except NotFound:
            raise reader.not_served(type_) from None
        hint = "" if objects or everywhere else await reader.absent_namespace(at.reading, namespace)
    if output in RAW:
        whole = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": objects}
        print_raw(type_.KIND, objects, whole, output)
    elif objects:
        head, body = rows(columns, objects, everywhere=everywhere, now=datetime.now(UTC))
        show(table(head, body))
    else:
        print(f"no {reader.NOUNS[type_]}s found in {namespace_in_words(namespace)}{hint}", file=sys.stderr)
    return ExitCode.PROBLEMS if hint else ExitCode.OK


def rows(
    columns: Sequence[Column], objects: Iterable[Object], *, everywhere: bool, now: datetime
) -> tuple[list[str], list[list[Cell]]]:
    """The head and the rows of a table, sorted by namespace and name."""
    head = [*(["NAMESPACE"] if everywhere else []), "NAME", *(column.name.upper() for column in columns)]

    def cell(column: Column, value: object) -> str:
        if column.type == "date":
            return short_age(str(value) if value else None, now)
        return "-" if value is None or value == "" else str(value)

    ordered = sorted(objects, key=lambda it: (_namespace(it), it["metadata"]["name"]))
    return head, [
        [
            *([_namespace(body)] if everywhere else []),
            Styled(body["metadata"]["name"], "bold"),
            *(cell(column, value_at(column.path, body)) for column in columns),
        ]
        for body in ordered
    ]


def value_at(path: str, value: object) -> object:
    """The value at the path of a column, such as `.status.state`; None if there is none.

    Columns of our CRDs use fields, and conditions by type.
    """
    for field, type_ in _STEP.findall(path):
        value = value.get(field) if isinstance(value, dict) else None
        if type_:
            items = value if isinstance(value, list) else []
            value = next((condition for condition in items if condition.get("type") == type_), None)
    return value


async def _watched(
    reading: reader.Reading, kind: Kind, namespace: str, selector: str, columns: Sequence[Column]
) -> None:
    """Draw the table in place on each change; on a pipe, print each changed row."""
    from dynamo_graphs.watching import snapshots
    from kube_runtime.types.meta import Selector

    changes = snapshots(reading.client, reader.stored_type(kind), Selector(namespace, labels=selector))
    before: Mapping[Key, Resource] = {}
    async with aclosing(changes) as states:
        with redrawing() if sys.stdout.isatty() else nullcontext() as live:
            async for state in states:
                shown = [it for key, it in state.items() if live or before.get(key) != it]
                objects = map(msgspec.to_builtins, shown)
                head, body = rows(columns, objects, everywhere=not namespace, now=datetime.now(UTC))
                if live:
                    live.update(table(head, body), refresh=True)
                elif shown or not before:
                    show(table([] if before else head, body))
                before = dict(state)


def print_raw(kind: Kind, objects: Sequence[Object], whole: Object, output: str) -> None:
    """Print objects as they are stored, in a format of `RAW`; as JSON they are the document `whole`."""
    for body in objects:
        body["metadata"].pop("managedFields", None)  # as kubectl does
    if output == "json":
        show_json(whole)
    elif output == "name":
        sys.stdout.write("".join(f"{kind}/{body['metadata']['name']}\n" for body in objects))
    else:
        from dynamo_graphs.output import write_yaml

        write_yaml(objects, sys.stdout)


def _namespace(item: Object) -> str:
    return str(item["metadata"].get("namespace", ""))


_HEAD = ("SERVICE", "WANTED", "READY", "UPDATED", "REASON", "MESSAGE")


def overview(stated: Stated, *, now: datetime) -> list[RenderableType]:
    """The parts of a screen: the object, its services, its conditions, and notes."""
    known = overview_json(stated)
    title = Text(visible(f"{stated.KIND.name} {stated.key}: "))
    title.append(*_standing(known))
    parts: list[RenderableType] = [title]
    if known["services"]:
        rows = [
            (
                service["name"],
                *("-" if service[it] is None else str(service[it]) for it in ("wanted", "ready", "updated")),
                *(service["reason"] or "-", service["message"] or ""),
            )
            for service in known["services"]
        ]
        parts += ["", table(_HEAD, rows)]
    if conditions := stated.status.conditions:
        lines = [
            (
                *(it.type, it.status),
                f"{it.reason}{since(it.last_transition_time, now)}"
                + (f": {it.message}" if it.message else ""),
            )
            for it in conditions
        ]
        parts += ["", table((), lines)]
    notes = []
    newest, seen, deleted = known["generation"], known["observedGeneration"], known["deletionTimestamp"]
    if known["observed"] and not deleted:
        notes.append(f"Status is up to date (generation {newest}).")
    elif not deleted:  # a deletion increments the generation, with nothing to reconcile
        about = f"the status describes generation {seen}" if seen else "there is no status"
        notes.append(f"Status is behind generation {newest}: {about}.")
    if known["paused"]:
        notes.append("Reconciliation is paused: the operator writes nothing for this object.")
    if deleted:
        held = ", ".join(known["finalizers"]) or "nothing"
        notes.append(f"Deletion was requested{ago(deleted, now)}; blocked by: {held}.")
    return [*parts, "", *map(visible, notes)]


def _standing(known: Object) -> tuple[str, str]:
    """Whether an object is ready, and the colour. Conditions below may describe an earlier spec."""
    if known["ready"]:
        return "ready", "green"
    if known["observed"] or known["deletionTimestamp"]:
        return "not ready", "red"
    return f"not ready, generation {known['generation']} has not been reconciled", "red"


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
        "paused": stated.metadata.is_true(labels.PAUSED),
        "deletionTimestamp": stated.metadata.deletion_timestamp,
        "finalizers": list(stated.metadata.finalizers),
        "services": [
            {
                "name": service.name,
                "wanted": service.desired,
                "ready": service.ready,
                "updated": service.updated,
                "reason": service.reason or None,
                "message": service.message or None,
            }
            for service in services(stated)
        ],
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


_EVENT_HEAD = ("LAST SEEN", "TYPE", "REASON", "OBJECT", "COUNT", "MESSAGE")


async def print_events(name: str, where: Where, output: str, *, only_warnings: bool) -> ExitCode:
    """Print the Events, the newest last."""
    from dynamo_graphs.members import events_about, members, owned_uids

    async with target_of(name, where, reader.GRAPHS) as at:
        graph = await at.get()
        dependents = await members(at.reading.client, graph.key)
        listed = await at.reading.all_raw(Event.KIND, at.key.namespace)
    for note in dependents.unread:
        reader.warn(note)
    uids = owned_uids(graph, dependents.by_owner)
    shown = events_about(listed, uids, only_warnings=only_warnings)
    if output == "json":
        show_json([{**event, "lastSeen": event["lastSeen"] or None} for event in shown])
    elif shown:
        now = datetime.now(UTC)
        rows = (
            (
                short_age(event["lastSeen"] or None, now),
                *(event["type"], event["reason"], Styled(event["object"], "bold")),
                *(str(event["count"]), event["message"]),
            )
            for event in shown
        )
        show(table(_EVENT_HEAD, rows))
    else:
        which = "Warning Events" if only_warnings else "Events"
        reader.warn(f"no {which} about {graph.key} in the last hour or so: Kubernetes deletes old ones")
    return ExitCode.OK
