"""The former specs of a graph, and the way back to one.

The operator keeps each spec in a ControllerRevision, without fields at their defaults. An undo is a merge
patch of the differences to the live spec, for exactly the version that was read. As with `kubectl rollout
undo`, replicas and `spec.restart` stay: scaling adapters, autoscalers and `dynamoctl scale` own them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from dynamo_graphs.changes import Change, changes_of, differences
from dynamo_graphs.edits import Edited, Unwritable, obstacles
from dynamo_graphs.ownership import Planned, merge_patch
from dynamo_graphs.reader import Reading, Target, retry_on_conflict
from dynamo_operator import labels
from dynamo_operator.component.api import VERSION
from dynamo_operator.features.history import CHANGE_CAUSE, SIZE_OF_SERVICE, SIZES, without_sizes
from dynamo_operator.graph.api import DynamoGraphDeployment
from kube_runtime.client.client import MERGE_PATCH
from kube_runtime.types.kinds import ControllerRevision
from kube_runtime.types.meta import Key, Kind, Object


@dataclass(frozen=True, slots=True)
class Revision:
    """A former or the current spec. `created` is RFC 3339; `cause` is "" without one.

    `changes` are the paths that differ from the revision before it, each with both values.
    """

    number: int
    spec: Object
    created: str
    cause: str
    changes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return " ".join(filter(None, (f"{self.number}: {self.created}", self.cause, "; ".join(self.changes))))


@dataclass(frozen=True, slots=True)
class Undone(Edited):
    """An undo; of a dry run with what it would change, None if that is nothing."""

    change: Change | None = None


async def undo(at: Target[DynamoGraphDeployment], number: int | None, *, is_dry: bool) -> Undone:
    """Return to the spec of a revision, or of the one before the current; with `is_dry` change nothing."""
    return await retry_on_conflict(lambda: _undo(at, number, is_dry=is_dry))


async def _undo(at: Target[DynamoGraphDeployment], number: int | None, *, is_dry: bool) -> Undone:
    graph = await at.get()
    revisions = await revisions_in(at.reading, graph)
    if number is not None:
        chosen = numbered(graph.key, revisions, number)
    elif len(revisions) > 1:
        chosen = revisions[-2]
    else:
        only = f"{revisions[0].number}: there is nothing to return to"
        raise Unwritable(f"graph {graph.key} has one revision only, {only}")
    present: Object = msgspec.to_builtins(graph.spec)
    patch = merge_patch(present, undone(present, chosen.spec))
    if not patch:
        return Undone(f"{graph.key} already has the spec of revision {chosen.number}", ())
    version = {"uid": graph.metadata.uid, "resourceVersion": graph.metadata.resource_version}
    kind = at.reading.client.stored(graph.KIND)
    live = await at.raw(kind.version)
    body = in_version(at.reading, kind, live, patch)
    body["metadata"] = {**body.get("metadata", {}), **version}
    after = await at.reading.patched(kind, graph.key, body, MERGE_PATCH, is_dry=is_dry)
    change = (await changes_of(at.reading, [Planned(live, after)]))[0] if is_dry else None
    text = f"Rolling back {graph.key} to revision {chosen.number}"
    return Undone(text, tuple(obstacles(graph)), change)


def in_version(reading: Reading, kind: Kind, live: Object, patch: Object) -> Object:
    """The patch of a spec in v1alpha1 as a merge patch of the live graph, which is in the version of `kind`.

    Raises: DecodeError if the graph cannot be converted.
    """
    if kind == DynamoGraphDeployment.KIND:
        return {"spec": patch}
    before = reading.shown(DynamoGraphDeployment.KIND, live, VERSION)
    after = {**before, "spec": patched(before["spec"], patch)}
    # What conversion alone would change in the live graph is not part of the patch.
    left, right = (reading.shown(DynamoGraphDeployment.KIND, body, kind.version) for body in (before, after))
    whole = merge_patch(left, right)
    notes = whole.get("metadata", {}).get("annotations", {})
    return {"spec": whole.get("spec", {}), "metadata": {"annotations": notes}}


def patched(value: object, patch: object) -> Any:
    """A JSON value after a merge patch (RFC 7386)."""
    if not isinstance(patch, dict):
        return patch
    fields = value if isinstance(value, dict) else {}
    kept = {name: inner for name, inner in fields.items() if name not in patch}
    new = {name: patched(fields.get(name), inner) for name, inner in patch.items() if inner is not None}
    return {**kept, **new}


def numbered(graph: Key, revisions: Sequence[Revision], number: int) -> Revision:
    """The revision with that number. Raises: Unwritable with the numbers that there are."""
    for revision in revisions:
        if revision.number == number:
            return revision
    numbers = ", ".join(str(revision.number) for revision in revisions)
    raise Unwritable(f"graph {graph}: revision {number} not found (revisions: {numbers})")


def revisions_of(uid: str, bodies: Sequence[Object]) -> list[Revision]:
    """The revisions that an owner controls, by their numbers."""
    revisions: list[Revision] = []
    before: Object = {}
    own = [
        body
        for body in bodies
        if any(
            owner.get("controller") and owner["uid"] == uid
            for owner in body["metadata"].get("ownerReferences", ())
        )
    ]
    for body in sorted(own, key=lambda body: int(body["revision"])):
        metadata = body["metadata"]
        spec = (body.get("data") or {}).get("spec", {})
        paths = differences(without_sizes(before), without_sizes(spec)) if before else ()
        cause = metadata.get("annotations", {}).get(CHANGE_CAUSE, "")
        revisions.append(Revision(body["revision"], spec, metadata["creationTimestamp"], cause, tuple(paths)))
        before = spec
    return revisions


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


async def revisions_in(reading: Reading, graph: DynamoGraphDeployment) -> list[Revision]:
    """The revisions of a graph, the current one last. Raises: Unwritable if there are none."""
    kind, namespace = ControllerRevision.KIND, graph.metadata.namespace
    every = await reading.all_raw(kind, namespace, labels=labels.GRAPH_REVISION)
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
