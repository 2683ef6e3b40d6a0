"""`dynamoctl get` and `events`, and the overview of an object."""

import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import aclosing, nullcontext
from datetime import UTC, datetime
from typing import Any

import msgspec
from cyclopts import CycloptsError
from rich.console import RenderableType
from rich.text import Text

from dynamo_graphs import reader
from dynamo_graphs.ages import ago, short_age, since
from dynamo_graphs.reader import Missing, Target
from dynamo_graphs.services import services
from dynamo_operator import labels
from dynamo_operator.shared.conditions import Stated, is_behind, is_ready, seen_generation
from dynamoctl.options import ListOptions, Where
from dynamoctl.output import is_for_people, name_of, show_document
from dynamoctl.screen import Cell, Styled, redrawing, show, table
from dynamoctl.target import cluster, namespace_in_words, parse_selection, target_of, version_in
from kube_runtime.commandline import ExitCode
from kube_runtime.crd import Column
from kube_runtime.errors import NotFound, visible
from kube_runtime.types.kinds import Event
from kube_runtime.types.meta import Key, Kind, Object, Resource, Selector

_LABELS = Column("Labels", ".metadata.labels")

_STEP = re.compile(r"""\.(\w+)(?:\[\?\(@\.type==["'](\w+)["']\)\])?""")
"""One field of a path; for a list of conditions with the type of the one that is meant."""


async def print_list(targets: Sequence[str], where: Where, output: str, options: ListOptions) -> ExitCode:
    """Print the objects of kinds, or those with a name, and again on each change if they are watched.

    `targets` are as kubectl takes them. A watch ends with Ctrl-C only.
    """
    selection, version = parse_selection(targets), version_in(targets)
    names = [name for _, of_kind in selection for name in of_kind]
    if names and options.everywhere:
        raise CycloptsError("an object cannot be read by name across all namespaces (expected -n NAMESPACE)")
    if names and (options.labels or options.fields):
        raise CycloptsError("expected either names or a selector")
    if options.watch and (len(selection) > 1 or len(names) > 1):
        raise CycloptsError("--watch follows one kind, or one object of it")
    missing: list[Missing] = []
    listed: list[tuple[type[Any], list[Object]]] = []
    async with cluster(where) as at:
        namespace = "" if options.everywhere else at.namespace
        for type_, of_kind in selection:
            if version and not at.reading.serves(type_.KIND, version):
                missing.append(reader.not_served(type_, version))
                continue
            shown = _in_version(type_, version or at.reading.served_version(type_.KIND))
            try:
                if options.watch:
                    fields = f"metadata.name={of_kind[0]}" if of_kind else options.fields
                    selector = _selector(namespace, options.labels, fields)
                    await _watched(at.reading, type_.KIND, shown, selector, output)
                if not of_kind:
                    labels, fields = options.labels, options.fields
                    bodies = await at.reading.documents(
                        type_.KIND, namespace, shown.KIND.version, labels=labels, fields=fields
                    )
                    listed.append((shown, bodies))
                    continue
            except NotFound:
                missing.append(reader.not_served(type_))
                continue
            listed.append((shown, []))
            for name in of_kind:
                try:
                    target = Target(at.reading, type_, Key(namespace, name))
                    listed[-1][1].append(await target.raw(shown.KIND.version))
                except Missing as error:
                    missing.append(error)
        is_empty = not names and not any(bodies for _, bodies in listed)
        hint = await reader.absent_namespace(at.reading, namespace) if is_empty and namespace else ""
    if is_for_people(output):
        _show_tables(listed, output, options)
        if is_empty and listed:
            nouns = f"{reader.NOUNS[selection[0][0]]}s" if len(listed) == 1 else "objects"
            print(f"no {nouns} found in {namespace_in_words(namespace)}{hint}", file=sys.stderr)
    else:
        _show_raw(
            [(type_.KIND, body) for type_, bodies in listed for body in bodies],
            output,
            is_one=len(names) == 1,
        )
    # A word other than a kind was taken as the name of a graph.
    kinds = "; the kinds are dgd, dcd, dgdsa, dm and dgdr" if targets and targets[0] in names else ""
    for absent in missing if not options.ignore_not_found else ():
        print(visible(f"Error from server (NotFound): {absent}{kinds}"), file=sys.stderr)
    return ExitCode.PROBLEMS if hint or (missing and not options.ignore_not_found) else ExitCode.OK


def _selector(namespace: str, labels: str, fields: str) -> Selector:
    try:
        return Selector(namespace, labels, fields)
    except ValueError as error:
        raise CycloptsError(f"--watch: {error}") from None


def _in_version(type_: type[Stated], version: str) -> type[Any]:
    """A kind in a version, with the columns of that version."""
    if type_.KIND.version == version:
        return type_
    from dynamo_operator.crds import resource_of  # with the schemas of all kinds

    head = {"apiVersion": f"{type_.KIND.group}/{version}", "kind": type_.KIND.name}
    return resource_of(head) or type_


def _columns(type_: type[Any], output: str) -> list[Column]:
    return [column for column in type_.DEFINITION.columns if output == "wide" or not column.priority]


def _show_tables(
    listed: Sequence[tuple[type[Any], Sequence[Object]]], output: str, options: ListOptions
) -> None:
    tables = [(type_, bodies) for type_, bodies in listed if bodies]
    for position, (type_, bodies) in enumerate(tables):
        prefix = f"{type_.DEFINITION.short_names[0]}/" if len(listed) > 1 else ""
        head, body = rows(
            [*_columns(type_, output), *([_LABELS] if options.show_labels else [])],
            bodies,
            everywhere=options.everywhere,
            now=datetime.now(UTC),
            prefix=prefix,
        )
        show(*([""] if position else []), table(() if options.no_headers else head, body))


def _show_raw(stored: Sequence[tuple[Kind, Object]], output: str, *, is_one: bool) -> None:
    """Print objects as they are stored: one that was named by itself, others as a List, as kubectl does."""
    for _, body in stored:
        body["metadata"].pop("managedFields", None)
    if is_one and not stored:
        return
    items = [body for _, body in stored]
    whole = {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items}
    names = (name_of(kind, body["metadata"]["name"]) for kind, body in stored)
    show_document(output, items[0] if is_one else whole, names)


def rows(
    columns: Sequence[Column], objects: Iterable[Object], *, everywhere: bool, now: datetime, prefix: str = ""
) -> tuple[list[str], list[list[Cell]]]:
    """The head and the rows of a table, sorted by namespace and name; `prefix` stands before names."""
    head = [*(["NAMESPACE"] if everywhere else []), "NAME", *(column.name.upper() for column in columns)]

    def cell(column: Column, value: object) -> str:
        if column.type == "date":
            return short_age(str(value) if value else None, now)
        if isinstance(value, dict):
            return ",".join(f"{name}={text}" for name, text in value.items()) or "-"
        return "-" if value is None or value == "" else str(value)

    ordered = sorted(objects, key=lambda it: (_namespace(it), it["metadata"]["name"]))
    return head, [
        [
            *([_namespace(body)] if everywhere else []),
            Styled(f"{prefix}{body['metadata']['name']}", "bold"),
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
    reading: reader.Reading, kind: Kind, type_: type[Any], selector: Selector, output: str
) -> None:
    """Draw the table in place on each change; on a pipe or for programs, print each changed object.

    `type_` is the kind in the version that is printed.
    """
    from dynamo_graphs.watching import snapshots

    columns, is_table = _columns(type_, output), is_for_people(output)
    changes = snapshots(reading.client, reader.stored_type(kind), selector)
    before: Mapping[Key, Resource] = {}
    async with aclosing(changes) as states:
        with redrawing() if is_table and sys.stdout.isatty() else nullcontext() as live:
            async for state in states:
                shown = [it for key, it in state.items() if live or before.get(key) != it]
                head = {"apiVersion": kind.api_version, "kind": kind.name}
                objects: list[Object] = [
                    reading.shown(kind, head | msgspec.to_builtins(it), type_.KIND.version) for it in shown
                ]
                everywhere = not selector.namespace
                titles, body = rows(columns, objects, everywhere=everywhere, now=datetime.now(UTC))
                if live:
                    live.update(table(titles, body), refresh=True)
                elif not is_table:
                    for item in objects:
                        _show_raw([(type_.KIND, item)], output, is_one=True)
                elif shown or not before:
                    show(table([] if before else titles, body))
                before = dict(state)


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


_EVENT_HEAD = ("LAST SEEN", "COUNT", "TYPE", "REASON", "OBJECT", "MESSAGE")


async def print_events(name: str, where: Where, output: str, *, only_warnings: bool) -> ExitCode:
    """Print the Events, the newest last."""
    from dynamo_graphs.members import events_about, members_of, owned_uids

    async with target_of(name, where, reader.STATED) as at:
        stated = await at.get()
        dependents = await members_of(at.reading.client, stated)
        listed = await at.reading.all_raw(Event.KIND, at.key.namespace)
    for note in dependents.unread:
        reader.warn(note)
    uids = owned_uids(stated, dependents.by_owner)
    shown = events_about(listed, uids, only_warnings=only_warnings)
    if not is_for_people(output):
        document = [{**event, "lastSeen": event["lastSeen"] or None} for event in shown]
        show_document(output, document, (name_of(Event.KIND, str(event["name"])) for event in shown))
    elif shown:
        now = datetime.now(UTC)
        rows = (
            (
                *(short_age(event["lastSeen"] or None, now), str(event["count"])),
                *(event["type"], event["reason"], Styled(event["object"], "bold")),
                event["message"],
            )
            for event in shown
        )
        show(table(_EVENT_HEAD, rows))
    else:
        which = "Warning Events" if only_warnings else "Events"
        reader.warn(f"no {which} about {stated.key} in the last hour or so: Kubernetes deletes old ones")
    return ExitCode.OK
