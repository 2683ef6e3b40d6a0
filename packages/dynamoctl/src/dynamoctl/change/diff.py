"""`dynamoctl diff`: what files would change in a cluster, and which pods that restarts.

The changes come from a dry run of the API server, so defaults and webhooks count. The pods come from the
controllers' own plan and rendering of the graph as it is and as it would be.
"""

import difflib
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from io import StringIO

from rich.text import Text

from dynamo_operator.component.api import DynamoComponentDeployment
from dynamo_operator.documents import write_yaml
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.settings import RenderSettings
from dynamo_operator.shared.cluster import OPTIONAL_APIS, Facts
from dynamoctl.authoring.render import Manifest
from dynamoctl.change.apply import bodies_of, comparable, server_apply
from dynamoctl.change.edits import Effect, effects, workloads
from dynamoctl.cluster.target import cluster, served_groups
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.installation.manifests import render_settings
from dynamoctl.installation.upgrade import running_settings
from dynamoctl.options import Where
from dynamoctl.screen import Styled, show, show_json, table, warn
from kube_runtime.commandline import ExitCode, visible
from kube_runtime.errors import ApiError, ConfigError
from kube_runtime.kind import Kind, Object, key_of

_RENDERED = (DynamoGraphDeployment.KIND.name, DynamoComponentDeployment.KIND.name)
_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_VERBS = {"restart": "yellow", "delete": "red", "create": "green", "scale": "cyan"}


@dataclass(frozen=True, slots=True)
class Change:
    """The planned change of one object; `lines` are a unified diff of YAML, empty if nothing changes."""

    name: str
    verb: str
    lines: tuple[str, ...] = ()
    effects: tuple[Effect, ...] = ()


async def print_diff(
    manifests: Sequence[Manifest],
    where: Where,
    output: str,
    *,
    force: bool,
    has_exit_code: bool,
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


def unified(before: Object, after: Object, name: str) -> tuple[str, ...]:
    """A unified diff of two objects as YAML."""
    left, right = (_yaml(body) if body else [] for body in (before, after))
    return tuple(difflib.unified_diff(left, right, f"live/{name}", f"file/{name}", lineterm=""))


async def planned_changes(
    reading: Reading, bodies: Iterable[tuple[Kind, Object]], *, force: bool
) -> list[Change]:
    """What applying the objects would change; writes nothing.

    Raises: OperatorError.
    """
    rendering: tuple[Facts, RenderSettings] | None = None
    changes = []
    for kind, body in bodies:
        live = await reading.raw(kind, key_of(body))
        after = await server_apply(reading, kind, body, is_dry=True, force=force)
        before, planned = comparable(live), comparable(after)
        name = f"{kind.name} {key_of(body)}"
        impact: tuple[Effect, ...] = ()
        if before != planned and kind.name in _RENDERED:
            rendering = rendering or await _rendering_inputs(reading)
            impact = _impact(before, planned, *rendering)
        verb = "create" if live is None else "change" if before != planned else "unchanged"
        changes.append(Change(name, verb, unified(before, planned, name), impact))
    return changes


async def with_effects(reading: Reading, change: Change, before: Object, after: Object) -> Change:
    """The change of a graph, with its diff and the effects on its pods.

    Raises: ConfigError if the graph cannot be rendered; OperatorError.
    """
    impact = _impact(before, after, *await _rendering_inputs(reading))
    return replace(change, lines=unified(before, after, change.name), effects=impact)


async def _rendering_inputs(reading: Reading) -> tuple[Facts, RenderSettings]:
    """The APIs of the cluster and the settings of its operator; the defaults if they cannot be read."""
    groups = await served_groups(reading.client)
    served = {api.key: all(kind.group in groups for kind in api.kinds) for api in OPTIONAL_APIS}
    facts = Facts(
        lws_served=served["leaderWorkerSet"],
        grove_served=served["grove"],
        kai_served=served["kai"],
        istio_served=served["istio"],
        inference_pools_served=served["inferencePool"],
    )
    try:
        return facts, await running_settings(reading)
    except (ApiError, ConfigError) as error:
        warn(f"the settings of the running operator are not known ({error}); using the defaults")
    return facts, render_settings(None)


def _impact(
    before: Object, after: Object, facts: Facts, settings: RenderSettings
) -> tuple[Effect, ...]:
    try:
        present = workloads(before, facts, settings) if before else {}
        return tuple(effects(present, workloads(after, facts, settings)))
    except ValueError as error:
        raise ConfigError(after["metadata"]["name"], str(error)) from error


def print_changes(changes: Sequence[Change]) -> None:
    """Print the diffs, then the effects on each service, and on stderr a summary."""
    for change in changes:
        if change.lines:
            show(*(_line(line) for line in change.lines))
    print()
    for change in changes:
        show(table((), [(Styled(change.name, "bold"), change.verb)]))
        if change.effects:
            show(
                table(
                    (),
                    [
                        ("", Styled(it.verb, _VERBS[it.verb]), it.service, it.text)
                        for it in change.effects
                    ],
                )
            )
        elif change.verb == "change" and change.name.partition(" ")[0] in _RENDERED:
            print("  no pod restarts")
    counts = [sum(change.verb == verb for change in changes) for verb in ("create", "change")]
    print(f"{counts[0]} to create, {counts[1]} to change", file=sys.stderr)


def _line(line: str) -> Text:
    return Text(visible(line), style=_STYLES.get(line[:1], ""))


def _yaml(body: Object) -> list[str]:
    stream = StringIO()
    write_yaml([body], stream)
    return stream.getvalue().splitlines()[1:]


def _json(change: Change) -> Object:
    return {
        "object": change.name,
        "verb": change.verb,
        "diff": list(change.lines),
        "effects": [
            {"service": effect.service, "verb": effect.verb, "text": effect.text}
            for effect in change.effects
        ],
    }
