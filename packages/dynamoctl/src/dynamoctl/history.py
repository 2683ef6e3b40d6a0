"""`dynamoctl rollout history` and `rollout undo`: the former specs of a graph, and the way back to one.

The operator keeps each spec in a ControllerRevision, without the fields that have their defaults. An undo is
a merge patch of what differs from the present spec in the same form, for exactly the version that was read.
Replicas and the restart stay as they are, as with `kubectl rollout undo`: scaling adapters, autoscalers and
`dynamoctl scale` own them.
"""

import asyncio
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

import msgspec

from dynamo_graphs.api import labels
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.history import CHANGE_CAUSE, SIZE_OF_SERVICE, SIZES, spec_of, without_sizes
from dynamo_graphs.files.yaml_writer import write_yaml
from dynamoctl.ages import short_age
from dynamoctl.cluster_options import Where
from dynamoctl.diff import Change, print_changes, with_effects
from dynamoctl.edits import MANAGER
from dynamoctl.patches import Unwritable, obstacles
from dynamoctl.resource_args import GRAPHS
from dynamoctl.restarts import differences
from dynamoctl.screen import Cell, Styled, show, show_json, table
from dynamoctl.server_apply import comparable
from dynamoctl.target import Cluster, Target, place
from kube_runtime.client.requests import MERGE_PATCH
from kube_runtime.client.retry import once
from kube_runtime.client.transport import Request
from kube_runtime.commandline.errors import visible
from kube_runtime.kind import Object
from kube_runtime.types.apps import ControllerRevision

_MOST_PATHS = 3
"""Changed fields that a line of the history names."""


@dataclass(frozen=True, slots=True)
class Revision:
    """A former or the current spec. `created` is RFC 3339; `cause` is "" without one."""

    number: int
    spec: Object
    created: str
    cause: str


def print_history(name: str, where: Where, output: str, number: int | None) -> None:
    """Print the revisions of a graph, the newest last, or the spec of one of them.

    Raises: CycloptsError; OperatorError.
    """
    graph, found = asyncio.run(_read(name, where))
    if number is not None:
        spec = _numbered(graph, found, number).spec
        if output == "json":
            show_json(spec)
        else:
            write_yaml([spec], sys.stdout)
    elif output == "json":
        show_json([_json(each, said) for each, said in _with_changes(found)])
    else:
        now = datetime.now(UTC)
        show(table(("REVISION", "AGE", "CHANGE", "CAUSE"), _rows(found, now)))


def undo(name: str, where: Where, number: int | None, *, is_dry: bool) -> None:
    """Bring a former spec back: that of a revision, or the one before the current.

    Raises: CycloptsError; OperatorError.
    """
    asyncio.run(_undo(name, where, number, is_dry=is_dry))


def revisions_of(uid: str, found: Sequence[Object]) -> list[Revision]:
    """The revisions that an owner controls, by their numbers."""
    owned = [
        each
        for each in found
        if any(
            owner.get("controller") and owner["uid"] == uid
            for owner in each["metadata"].get("ownerReferences", ())
        )
    ]
    return sorted((_revision(each) for each in owned), key=lambda each: each.number)


def undone(live: Object, revision: Object) -> Object:
    """The spec of a revision with the numbers and the restart that the graph has now."""
    kept = {name: live[name] for name in SIZES if name in live}
    present = live.get("services", {})
    services = {
        key: _resized(service, present.get(key))
        for key, service in revision.get("services", {}).items()
    }
    rest = {name: each for name, each in revision.items() if name not in SIZES}
    return {**rest, **kept, "services": services}


def merge_patch(before: Object, after: Object) -> Object:
    """The JSON merge patch (RFC 7386) that makes one of the other; {} if they are alike."""
    patch: Object = {name: None for name in before if name not in after}
    for name, wanted in after.items():
        present = before.get(name)
        if isinstance(present, dict) and isinstance(wanted, dict):
            if part := merge_patch(present, wanted):
                patch[name] = part
        elif name not in before or present != wanted:
            patch[name] = wanted
    return patch


def _resized(service: Object, present: Object | None) -> Object:
    """A service as it was, with its present number; one that was removed gets its former number back."""
    if present is None:
        return service
    rest = {name: each for name, each in service.items() if name != SIZE_OF_SERVICE}
    if SIZE_OF_SERVICE in present:
        rest[SIZE_OF_SERVICE] = present[SIZE_OF_SERVICE]
    return rest


async def _read(name: str, where: Where) -> tuple[DynamoGraphDeployment, list[Revision]]:
    async with place(name, where, GRAPHS) as at:
        graph = await at.found()
        return graph, await _revisions(at, graph)


async def _revisions(
    at: Target[DynamoGraphDeployment], graph: DynamoGraphDeployment
) -> list[Revision]:
    """The revisions of a graph.

    Raises: Unwritable if there are none.
    """
    kind, namespace = ControllerRevision.KIND, graph.metadata.namespace
    every = await at.reading.all_raw(kind, namespace, labels=labels.GRAPH_REVISION)
    if found := revisions_of(graph.metadata.uid, every):
        return found
    if graph.metadata.annotations.get(labels.REVISION_HISTORY_LIMIT) == "0":
        raise Unwritable(
            f"graph {graph.key} keeps no history: its annotation {labels.REVISION_HISTORY_LIMIT} is 0"
        )
    raise Unwritable(
        f"graph {graph.key} has no revisions: the operator has not processed a valid spec of it, or "
        "is older than `rollout history`"
    )


async def _undo(name: str, where: Where, number: int | None, *, is_dry: bool) -> None:
    async with place(name, where, GRAPHS) as at:
        graph = await at.found()
        found = await _revisions(at, graph)
        chosen = _numbered(graph, found, number) if number is not None else _before(graph, found)
        present = spec_of(graph)
        patch = merge_patch(present, undone(present, chosen.spec))
        if not patch:
            print(f"{graph.key} already has the spec of revision {chosen.number}.")
            return
        if is_dry:
            await _print_effects(at, graph, patch)
            return
        await _patched(at, graph, patch, is_dry=False)
    print(visible(f"Rolling back {graph.key} to revision {chosen.number}."))
    for each in obstacles(graph):
        print(visible(f"note: {each}"), file=sys.stderr)


async def _print_effects(
    at: Target[DynamoGraphDeployment], graph: DynamoGraphDeployment, patch: Object
) -> None:
    """Print what the API server would store, and what that does to the pods."""
    live = await at.reading.raw(DynamoGraphDeployment.KIND, graph.key)
    after = await _patched(at, graph, patch, is_dry=True)
    scene = Cluster(at.reading, graph.metadata.namespace)
    change = Change(f"{DynamoGraphDeployment.KIND.name} {graph.key}", "change")
    print_changes([await with_effects(scene, change, comparable(live), comparable(after))])


async def _patched(
    at: Target[DynamoGraphDeployment], graph: DynamoGraphDeployment, patch: Object, *, is_dry: bool
) -> Object:
    """The graph after the patch, or as it would be."""
    version = {"uid": graph.metadata.uid, "resourceVersion": graph.metadata.resource_version}
    query = {"fieldManager": MANAGER, **({"dryRun": "All"} if is_dry else {})}
    kind = DynamoGraphDeployment.KIND
    body = msgspec.json.encode({"metadata": version, "spec": patch})
    request = Request("PATCH", kind.path(*graph.key), query, body, MERGE_PATCH)
    decoded: Object = msgspec.json.decode(
        await once(at.reading.transport, request, kind, graph.key)
    )
    return decoded


def _numbered(graph: DynamoGraphDeployment, found: Sequence[Revision], number: int) -> Revision:
    for each in found:
        if each.number == number:
            return each
    known = ", ".join(str(each.number) for each in found)
    raise Unwritable(f"graph {graph.key}: revision {number} not found (revisions: {known})")


def _before(graph: DynamoGraphDeployment, found: Sequence[Revision]) -> Revision:
    """The revision before the current one."""
    if len(found) > 1:
        return found[-2]
    raise Unwritable(
        f"graph {graph.key} has one revision only, {found[0].number}: there is nothing to return to"
    )


def _revision(body: Object) -> Revision:
    metadata = body["metadata"]
    cause = metadata.get("annotations", {}).get(CHANGE_CAUSE, "")
    data = body.get("data") or {}
    return Revision(body["revision"], data.get("spec", {}), metadata["creationTimestamp"], cause)


def _with_changes(found: Sequence[Revision]) -> Iterator[tuple[Revision, list[str]]]:
    """Each revision with the fields that differ from the one before."""
    for number, each in enumerate(found):
        before = found[number - 1].spec if number else None
        paths = differences(without_sizes(before), without_sizes(each.spec)) if before else ()
        yield each, list(paths)


def _rows(found: Sequence[Revision], now: datetime) -> Iterator[Sequence[Cell]]:
    for each, said in _with_changes(found):
        is_current = each is found[-1]
        number = f"{each.number} (current)" if is_current else str(each.number)
        more = [f"and {len(said) - _MOST_PATHS} more"] if len(said) > _MOST_PATHS else []
        change = "; ".join((*said[:_MOST_PATHS], *more)) or "-"
        first: Cell = Styled(number, "bold") if is_current else number
        yield first, short_age(each.created, now), change, each.cause or "-"


def _json(revision: Revision, changes: Sequence[str]) -> Mapping[str, object]:
    return {
        "revision": revision.number,
        "created": revision.created,
        "cause": revision.cause,
        "changes": list(changes),
        "spec": revision.spec,
    }
