"""`dynamoctl rollout history` and `rollout undo`: list the former specs of a graph, and return to one.

The operator keeps each spec in a ControllerRevision, without fields at their defaults. An undo is a merge
patch of the differences to the live spec, for exactly the version that was read. As with `kubectl rollout
undo`, replicas and `spec.restart` stay: scaling adapters, autoscalers and `dynamoctl scale` own them.
"""

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from dynamo_graphs.ages import short_age
from dynamo_graphs.changes import changes_of, differences, some_of
from dynamo_graphs.edits import Edited, Unwritable, obstacles
from dynamo_graphs.output import write_yaml
from dynamo_graphs.reader import GRAPHS, Target
from dynamo_operator import labels
from dynamo_operator.features.history import CHANGE_CAUSE, SIZE_OF_SERVICE, SIZES, without_sizes
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.change.diff import print_changes
from dynamoctl.options import Where
from dynamoctl.screen import Cell, Styled, show, show_json, table
from dynamoctl.target import target_of
from kube_runtime.client.client import MERGE_PATCH
from kube_runtime.types.kinds import ControllerRevision
from kube_runtime.types.meta import Object


@dataclass(frozen=True, slots=True)
class Revision:
    """A former or the current spec. `created` is RFC 3339; `cause` is "" without one."""

    number: int
    spec: Object
    created: str
    cause: str


async def print_history(name: str, where: Where, output: str, number: int | None) -> None:
    """Print the revisions of a graph, the newest last, or the spec of one of them."""
    async with target_of(name, where, GRAPHS) as at:
        graph = await at.get()
        revisions = await _revisions(at, graph)
    if number is not None:
        spec = _numbered(graph, revisions, number).spec
        if output == "json":
            show_json(spec)
        else:
            write_yaml([spec], sys.stdout)
    elif output == "json":
        show_json(
            [
                {
                    "revision": revision.number,
                    "created": revision.created,
                    "cause": revision.cause,
                    "changes": paths,
                    "spec": revision.spec,
                }
                for revision, paths in _with_changes(revisions)
            ]
        )
    else:
        now, rows = datetime.now(UTC), list[Sequence[Cell]]()
        for revision, paths in _with_changes(revisions):
            first: Cell = str(revision.number)
            if revision is revisions[-1]:
                first = Styled(f"{first} (current)", "bold")
            age = short_age(revision.created, now)
            rows.append((first, age, some_of(paths) or "-", revision.cause or "-"))
        show(table(("REVISION", "AGE", "CHANGE", "CAUSE"), rows))


async def undo(name: str, where: Where, number: int | None, *, is_dry: bool) -> Edited | None:
    """Return to the spec of a revision, or of the one before; with `is_dry` print what would change."""
    async with target_of(name, where, GRAPHS) as at:
        graph = await at.get()
        revisions = await _revisions(at, graph)
        if number is not None:
            chosen = _numbered(graph, revisions, number)
        elif len(revisions) > 1:
            chosen = revisions[-2]
        else:
            only = f"{revisions[0].number}: there is nothing to return to"
            raise Unwritable(f"graph {graph.key} has one revision only, {only}")
        present: Object = msgspec.to_builtins(graph.spec)
        patch = merge_patch(present, undone(present, chosen.spec))
        if not patch:
            return Edited(f"{graph.key} already has the spec of revision {chosen.number}", ())
        if not is_dry:
            await _patched(at, graph, patch, is_dry=False)
            text = f"Rolling back {graph.key} to revision {chosen.number}"
            return Edited(text, tuple(obstacles(graph)))
        pair = await at.raw(), await _patched(at, graph, patch, is_dry=True)
        print_changes(await changes_of(at.reading, [pair]))
    return None


def revisions_of(uid: str, bodies: Sequence[Object]) -> list[Revision]:
    """The revisions that an owner controls, by their numbers."""
    revisions = [
        Revision(
            body["revision"],
            (body.get("data") or {}).get("spec", {}),
            body["metadata"]["creationTimestamp"],
            body["metadata"].get("annotations", {}).get(CHANGE_CAUSE, ""),
        )
        for body in bodies
        if any(
            owner.get("controller") and owner["uid"] == uid
            for owner in body["metadata"].get("ownerReferences", ())
        )
    ]
    return sorted(revisions, key=lambda revision: revision.number)


def undone(live: Object, revision: Object) -> Object:
    """The spec of a revision with the live replicas and restart; a removed service keeps its own number."""
    kept = {name: live[name] for name in SIZES if name in live}
    services = {}
    for key, service in revision.get("services", {}).items():
        present = live.get("services", {}).get(key, service)
        size = {name: present[name] for name in (SIZE_OF_SERVICE,) if name in present}
        rest = {name: value for name, value in service.items() if name != SIZE_OF_SERVICE}
        services[key] = {**rest, **size}
    rest = {name: value for name, value in revision.items() if name not in SIZES}
    return {**rest, **kept, "services": services}


def merge_patch(before: Object, after: Object) -> Object:
    """The JSON merge patch (RFC 7386) from `before` to `after`; {} if they are equal."""
    patch: Object = {name: None for name in before if name not in after}
    for name, value in after.items():
        present = before.get(name)
        if isinstance(present, dict) and isinstance(value, dict):
            if part := merge_patch(present, value):
                patch[name] = part
        elif name not in before or present != value:
            patch[name] = value
    return patch


async def _revisions(at: Target[DynamoGraphDeployment], graph: DynamoGraphDeployment) -> list[Revision]:
    kind, namespace = ControllerRevision.KIND, graph.metadata.namespace
    every = await at.reading.all_raw(kind, namespace, labels=labels.GRAPH_REVISION)
    if revisions := revisions_of(graph.metadata.uid, every):
        return revisions
    if graph.metadata.annotations.get(labels.REVISION_HISTORY_LIMIT) == "0":
        raise Unwritable(
            f"graph {graph.key} keeps no history: its annotation {labels.REVISION_HISTORY_LIMIT} is 0"
        )
    raise Unwritable(
        f"graph {graph.key} has no revisions: the operator has not processed a valid spec of it, or "
        "is older than `rollout history`"
    )


async def _patched(
    at: Target[DynamoGraphDeployment], graph: DynamoGraphDeployment, patch: Object, *, is_dry: bool
) -> Object:
    version = {"uid": graph.metadata.uid, "resourceVersion": graph.metadata.resource_version}
    body: Object = {"metadata": version, "spec": patch}
    return await at.reading.patched(graph.KIND, graph.key, body, MERGE_PATCH, is_dry=is_dry)


def _numbered(graph: DynamoGraphDeployment, revisions: Sequence[Revision], number: int) -> Revision:
    for revision in revisions:
        if revision.number == number:
            return revision
    numbers = ", ".join(str(revision.number) for revision in revisions)
    raise Unwritable(f"graph {graph.key}: revision {number} not found (revisions: {numbers})")


def _with_changes(revisions: Sequence[Revision]) -> Iterator[tuple[Revision, list[str]]]:
    for number, revision in enumerate(revisions):
        before = revisions[number - 1].spec if number else None
        paths = differences(without_sizes(before), without_sizes(revision.spec)) if before else ()
        yield revision, list(paths)
