"""`dynamoctl diff`: what files would change in a cluster, and which pods that restarts.

The changes come from a dry run of the API server, so defaults and webhooks count. The pods come from the
controllers' own plan and rendering of the graph as it is and as it would be.
"""

import sys
from collections.abc import Sequence
from dataclasses import asdict

from rich.text import Text

from dynamo_graphs.changes import RENDERED, Change, planned_changes
from dynamoctl.authoring.render import Manifest
from dynamoctl.change.apply import bodies_of
from dynamoctl.options import Where
from dynamoctl.screen import Styled, show, show_json, table
from dynamoctl.target import cluster
from kube_runtime.commandline import ExitCode, visible
from kube_runtime.types.meta import Object

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
