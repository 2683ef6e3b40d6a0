"""Print changes: of files (`dynamoctl diff`), and those in the history of a graph (`rollout history`)."""

import sys
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime

from rich.text import Text

from dynamo_graphs.ages import short_age
from dynamo_graphs.changes import RENDERED, Change, planned_changes, some_of
from dynamo_graphs.history import numbered
from dynamo_graphs.output import write_yaml
from dynamoctl.authoring.render import Manifest
from dynamoctl.change.apply import bodies_of
from dynamoctl.options import Where
from dynamoctl.screen import Cell, Styled, show, show_json, table
from dynamoctl.target import cluster, parse_graph
from kube_runtime.commandline import ExitCode, visible
from kube_runtime.types.meta import Key, Object

_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_VERBS = {"restart": "yellow", "delete": "red", "create": "green", "scale": "cyan"}


async def print_diff(
    manifests: Sequence[Manifest], where: Where, output: str, *, force: bool, has_exit_code: bool
) -> ExitCode:
    """Print the changes. With `has_exit_code` the code is 1 if there are any.

    Raises: OperatorError, or a group of ConfigError.
    """
    async with cluster(where) as at:
        bodies = await bodies_of(manifests, at, where)
        changes = await planned_changes(at.reading, bodies, force=force)
    if output == "json":
        show_json([_json(change) for change in changes])
    else:
        print_changes(changes)
    has_changes = any(change.lines for change in changes)
    return ExitCode.PROBLEMS if has_changes and has_exit_code else ExitCode.OK


def print_changes(changes: Sequence[Change]) -> None:
    """Print the diffs, then the effects on each service, and on stderr a summary."""
    for change in changes:
        if change.lines:
            show(*(Text(visible(line), style=_STYLES.get(line[:1], "")) for line in change.lines))
    print()
    for change in changes:
        show(table((), [(Styled(change.name, "bold"), change.verb)]))
        if change.effects:
            show(
                table(
                    (), [("", Styled(it.verb, _VERBS[it.verb]), it.service, it.text) for it in change.effects]
                )
            )
        elif change.verb == "change" and change.name.partition(" ")[0] in RENDERED:
            print("  no pod restarts")
    counts = [sum(change.verb == verb for change in changes) for verb in ("create", "change")]
    print(f"{counts[0]} to create, {counts[1]} to change", file=sys.stderr)


def _json(change: Change) -> Object:
    return {
        "object": change.name,
        "verb": change.verb,
        "diff": list(change.lines),
        "effects": [asdict(effect) for effect in change.effects],
    }


async def print_history(name: str, where: Where, output: str, number: int | None) -> None:
    """Print the revisions of a graph, the newest last, or the spec of one of them."""
    graph = parse_graph(name)
    async with cluster(where) as at:
        revisions, key = await at.history(graph), Key(at.namespace, graph)
    if number is not None:
        spec = numbered(key, revisions, number).spec
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
                    "changes": revision.changes,
                    "spec": revision.spec,
                }
                for revision in revisions
            ]
        )
    else:
        now, rows = datetime.now(UTC), list[Sequence[Cell]]()
        for revision in revisions:
            first: Cell = str(revision.number)
            if revision is revisions[-1]:
                first = Styled(f"{first} (current)", "bold")
            age = short_age(revision.created, now)
            rows.append((first, age, some_of(revision.changes) or "-", revision.cause or "-"))
        show(table(("REVISION", "AGE", "CHANGE", "CAUSE"), rows))
