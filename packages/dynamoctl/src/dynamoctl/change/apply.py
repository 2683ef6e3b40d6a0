"""`dynamoctl diff` and `apply` for objects of any kind, and the changes in the history of a graph."""

import asyncio
import re
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime

from rich.console import RenderableType
from rich.padding import Padding
from rich.text import Text

from dynamo_graphs import AsyncCluster, InvalidObject
from dynamo_graphs.ages import first_of, short_age
from dynamo_graphs.changes import RENDERED, Change, changes_of
from dynamo_graphs.history import Revision, numbered
from dynamo_graphs.output import write_yaml
from dynamo_graphs.ownership import Planned, applied, ensure_no_conflict, overwriting, planned
from dynamo_graphs.reader import STATED, Missing, Namespace, Reading, Target, served_kind
from dynamo_operator.component.api import GROUP, LATER
from dynamo_operator.shared.conditions import Stated, is_ready
from dynamoctl.authoring.manifest import Manifest
from dynamoctl.options import Where
from dynamoctl.screen import Styled, show, show_json, table
from dynamoctl.target import cluster, parse_graph
from kube_runtime.commandline import ExitCode
from kube_runtime.errors import (
    ConfigError,
    ConfigErrors,
    Conflict,
    Forbidden,
    NotFound,
    OperatorError,
    Refused,
    visible,
)
from kube_runtime.types.meta import Key, Kind, Object, key_of

_VERSION = re.compile(r"([a-z0-9]([-.a-z0-9]*[a-z0-9])?/)?[a-z0-9]+")
_PATH_SEGMENT = re.compile(r"(?!\.{1,2}$)[^/%?#\s]+")
"""What may be a name in a URL; with anything else the request would be about another object."""


async def bodies_of(
    manifests: Sequence[Manifest], at: AsyncCluster, where: Where
) -> list[tuple[Kind, Object]]:
    """The objects with their kinds, each in its namespace, and in a version that the cluster serves.

    Raises: ConfigErrors, one for each object of a kind that is not served, or of a namespace
        other than that of the command line.
    """
    bodies: list[tuple[Kind, Object]] = []
    mistakes: list[ConfigError] = []
    for manifest in manifests:
        try:
            kind, value = await _served(at.reading, manifest)
            served = replace(manifest, value=value)
            in_namespace = kind.namespaced and served.placed(where.namespace, at.namespace)
            bodies.append((kind, in_namespace or value))
        except ConfigError as error:
            mistakes.append(error)
        except InvalidObject as error:
            mistakes += (manifest.problem(problem.path, problem.message) for problem in error.problems)
    if mistakes:
        raise ConfigErrors("manifests", mistakes)
    return bodies


async def _served(reading: Reading, manifest: Manifest) -> tuple[Kind, Object]:
    """The kind of an object, and the object in a version that the cluster serves.

    Raises: ConfigError without apiVersion, kind or name, or if the cluster does not serve the kind;
        InvalidObject, as `in_version`.
    """
    _ensure_named(manifest)
    if kind := await served_kind(reading, manifest.value):  # most files are sent as they are
        return kind, await _with_served_target(reading, manifest.value)
    from dynamo_graphs.served import in_served_version
    from dynamo_operator.versions.shapes import ConversionError

    try:
        return await in_served_version(reading, manifest.value)
    except Missing as error:
        raise manifest.problem("kind", str(error)) from None
    except ConversionError as error:
        raise manifest.problem(error.path or "spec", error.problem) from None


async def _with_served_target(reading: Reading, value: Object) -> Object:
    """An autoscaler with its scaling adapter in a version that is served; others as they are."""
    spec = value.get("spec")
    target = spec.get("scaleTargetRef") if isinstance(spec, dict) else None
    if not isinstance(target, dict) or target.get("apiVersion") != f"{GROUP}/{LATER}":
        return value
    from dynamo_graphs.versions import has_versions, with_target

    is_ours = has_versions(target)
    return with_target(value, "v1alpha1") if is_ours and not await served_kind(reading, target) else value


def _ensure_named(manifest: Manifest) -> None:
    value = manifest.value
    version, name = value.get("apiVersion"), value.get("kind")
    if not isinstance(version, str) or not isinstance(name, str):
        raise manifest.problem("kind", "missing (expected an object with apiVersion and kind)")
    if not _VERSION.fullmatch(version):
        raise manifest.problem("apiVersion", f'invalid value "{version}" (for example apps/v1)')
    if not isinstance(manifest.metadata.get("name"), str):
        raise manifest.problem("metadata.name", "missing")
    for field in ("name", "namespace"):
        text = manifest.metadata.get(field)
        if isinstance(text, str) and not _PATH_SEGMENT.fullmatch(text):
            raise manifest.problem(f"metadata.{field}", f'invalid {field} "{text}"')


async def plans_of(
    manifests: Sequence[Manifest], at: AsyncCluster, where: Where, *, force: bool
) -> list[Planned]:
    """What an apply would make of the objects, by dry runs.

    Raises: a group of OperatorError with all problems of all objects that the API server refuses, in the
        words and lines of `lint` where it has any, and unless `force` is set with the conflicts.
    """
    plans: list[Planned] = []
    problems: list[OperatorError] = []
    bodies = await bodies_of(manifests, at, where)
    namespaces = {body["metadata"]["name"] for kind, body in bodies if kind == Namespace.KIND}
    for manifest, (kind, body) in zip(manifests, bodies, strict=True):
        if kind.api_version != manifest.value["apiVersion"]:
            written = manifest.value["apiVersion"]
            text = f"{manifest.place()}: the cluster does not serve {written}: sent as {kind.api_version}"
            print(f"note: {visible(text)}", file=sys.stderr)
        try:
            plans.append(await planned(at.reading, kind, body))
            if not force:
                ensure_no_conflict(plans[-1])
        except NotFound as error:
            if body["metadata"].get("namespace") in namespaces:
                plans.append(Planned(None, body))  # after its namespace
            else:
                problems.append(error)
        except (Conflict, Forbidden) as error:
            problems.append(error)
        except Refused as error:
            from dynamoctl.authoring.lint import errors_of
            from dynamoctl.installation.manifests import render_settings

            whole = ConfigError(manifest.place(), str(error))
            problems += errors_of(manifest, at.namespace, render_settings(None)) or [whole]
    if problems:
        raise ExceptionGroup("manifests", problems)
    return plans


_GOES_ON = "stopped waiting; the objects stay, and the operator continues: dynamoctl get --watch"

_TYPES = {type_.KIND.name: type_ for type_ in STATED}


async def print_applied(
    manifests: Sequence[Manifest], where: Where, *, force: bool, wait: bool, timeout_seconds: float
) -> ExitCode:
    """Apply the objects in order and print the effect on each; 1 if they are not ready in time.

    Raises: OperatorError, or a group of them. Of what the API server refuses, nothing is written.
    """
    targets: list[Target[Stated]] = []
    async with cluster(where) as at:
        await plans_of(manifests, at, where, force=force)  # all, before the first one is written
        for kind, body in await bodies_of(manifests, at, where):
            key = key_of(body)
            done = await applied(at.reading, kind, body, force=force)
            print(visible(f"{kind.name} {key} {done.verb}"), flush=True)
            if kind.name in _TYPES:
                targets.append(Target(at.reading, _TYPES[kind.name], key))
        if not wait:
            return ExitCode.OK
        return await _ready(targets, timeout_seconds)


async def _ready(targets: Sequence[Target[Stated]], timeout_seconds: float) -> ExitCode:
    from dynamo_graphs.explanation import explained
    from dynamoctl.inspect.tree import follow
    from dynamoctl.inspect.why import print_explanation

    try:
        async with asyncio.timeout(timeout_seconds):
            for target in targets:
                await follow(target, "text")
    except asyncio.CancelledError:  # Ctrl-C
        print(_GOES_ON, file=sys.stderr)
        raise
    except TimeoutError:
        late = [(target, await target.get()) for target in targets]
        print(f"error: not ready within {timeout_seconds:g} s", file=sys.stderr)
        for target, stated in late:
            if not is_ready(stated):
                print_explanation(await explained(target.reading, stated))
        return ExitCode.PROBLEMS
    return ExitCode.OK


_STYLES = {"+": "green", "-": "red", "@": "cyan"}
_VERBS = {"restart": "yellow", "delete": "red", "create": "green", "scale": "cyan"}


async def print_diff(
    manifests: Sequence[Manifest], where: Where, output: str, *, has_exit_code: bool
) -> ExitCode:
    """Print the changes. With `has_exit_code` the code is 1 if there are any.

    Raises: OperatorError, or a group of them.
    """
    async with cluster(where) as at:
        changes = await changes_of(at.reading, await plans_of(manifests, at, where, force=True))
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
        for line in overwriting(change.overwritten):
            print(visible(f"  {line}"))
    counts = [sum(change.verb == verb for change in changes) for verb in ("create", "change")]
    print(f"{counts[0]} to create, {counts[1]} to change", file=sys.stderr)


def _json(change: Change) -> Object:
    return {
        "object": change.name,
        "verb": change.verb,
        "diff": list(change.lines),
        "effects": [asdict(effect) for effect in change.effects],
        "overwritten": [asdict(owned) for owned in change.overwritten],
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
        show(*_history_lines(revisions, datetime.now(UTC)))


def _history_lines(revisions: Sequence[Revision], now: datetime) -> Iterator[RenderableType]:
    """A row for each revision, and below it a line for each of its first changes."""
    rows = [("REVISION", "AGE", "CAUSE")]
    for revision in revisions:
        name = f"{revision.number}{' (current)' if revision is revisions[-1] else ''}"
        rows.append((name, short_age(revision.created, now), visible(revision.cause or "-")))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row, changes in zip(rows, [(), *(revision.changes for revision in revisions)], strict=True):
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield Text("  ".join(cells).rstrip(), style="bold" if row in (rows[0], rows[-1]) else "")
        for change in first_of(changes):
            yield Padding(Text(visible(change)), (0, 0, 0, 2))
