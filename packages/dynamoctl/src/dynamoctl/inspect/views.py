"""`dynamoctl tree`, `status` and `why`: read objects and print them."""

import sys
from collections.abc import Sequence
from contextlib import aclosing, nullcontext
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from cyclopts import CycloptsError
from rich.console import Group

from dynamo_graphs.status.readiness import Stated, is_behind, is_ready
from dynamoctl.cluster.target import GRAPHS, NOUNS, STATED, Target, cluster, not_served, target_of
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.options import Where
from dynamoctl.screen import Styled, redrawing, show, show_json, warn
from kube_runtime.commandline.errors import ExitCode, visible
from kube_runtime.errors import NotFound
from kube_runtime.kind import Object

if TYPE_CHECKING:
    from dynamoctl.inspect.explanation import Explanation


async def print_tree(name: str, where: Where, output: str) -> ExitCode:
    """Print the objects of a graph; 0 if it is ready.

    Raises: CycloptsError; OperatorError, or a group of them.
    """
    from dynamoctl.cluster.members import members
    from dynamoctl.inspect.tree import drawn, tree_json, tree_of

    async with target_of(name, where, GRAPHS) as at:
        graph = await at.get()
        dependents = await members(at.reading.client, graph.key)
    node = tree_of(graph, dependents.by_owner, now=datetime.now(UTC))
    for note in dependents.unread:
        warn(note)
    if output == "json":
        show_json(tree_json(node))
    else:
        show(drawn(node))
    return _code(is_ready(graph))


async def print_status(name: str, where: Where, output: str, *, watch: bool) -> ExitCode:
    """Print the status of an object; with `watch` again on each change until it is ready.

    Raises: CycloptsError; OperatorError.
    """
    async with target_of(name, where, STATED) as at:
        stated = await at.get()
        if watch and not is_ready(stated):
            stated = await once_ready(at, output)
        else:
            _print_status(stated, output)
    return _code(is_ready(stated))


async def print_reasons(
    name: str, where: Where, output: str, *, every: bool = False, everywhere: bool = False
) -> ExitCode:
    """Explain an object, or with `every` each object that is not ready; 0 if everything is ready.

    `every` leaves out components and scaling adapters of a graph: the graph names their causes.

    Raises: CycloptsError; OperatorError.
    """
    if bool(name) == every:
        raise CycloptsError("expected either NAME or --all")
    if everywhere and not every:
        raise CycloptsError("--all-namespaces requires --all")
    if every:
        return await _why_all(where, output, everywhere=everywhere)
    async with target_of(name, where, STATED) as at:
        stated = await at.get()
        explanation = await explained(at.reading, stated)
    if output == "json":
        show_json(_reasons_json(stated, explanation))
    else:
        print_explanation(explanation)
    return _code(is_ready(stated))


async def once_ready(at: Target[Stated], output: str) -> Stated:
    """Print the object on each change, on a terminal in place, and return it once it is ready.

    Raises:
        Missing: it was deleted.
        OperatorError: it may not be watched, or the API server does not answer.
    """
    from dynamoctl.cluster.watching import states
    from dynamoctl.inspect.overview import overview

    is_drawn = output == "text" and sys.stdout.isatty()
    async with aclosing(states(at.reading.client, at.type_, at.key)) as stream:
        with redrawing() if is_drawn else nullcontext() as live:
            is_first = True
            async for stated in stream:
                if live is not None:
                    live.update(Group(*overview(stated, now=datetime.now(UTC))), refresh=True)
                else:
                    if output == "text" and not is_first:
                        print()
                    _print_status(stated, output)
                is_first = False
                if is_ready(stated):
                    return stated
    raise at.missing()


async def _why_all(where: Where, output: str, *, everywhere: bool) -> ExitCode:
    late: list[tuple[Stated, Explanation]] = []
    async with cluster(where) as at:
        namespace = "" if everywhere else at.namespace
        for type_ in STATED:
            try:
                every: Sequence[Stated] = await at.reading.all(type_, namespace=namespace)
            except NotFound:
                warn(str(not_served(type_)))
                continue
            for stated in every:
                if not is_ready(stated) and stated.metadata.controller is None:
                    late.append((stated, await explained(at.reading, stated)))
    if output == "json":
        show_json([_reasons_json(stated, explanation) for stated, explanation in late])
        return _code(not late and not at.reading.unreadable)
    for stated, explanation in late:
        show(Styled(f"{NOUNS[type(stated)]} {stated.key}", "bold").drawn())
        print_explanation(explanation)
        print()
    summary = [f"{len(late)} not ready"] if late else []
    if at.reading.unreadable:
        summary.append(f"{len(at.reading.unreadable)} unreadable")
    print(", ".join(summary) or "All objects are ready.", file=sys.stderr)
    return _code(not summary)


async def explained(reading: Reading, stated: Stated) -> "Explanation":
    """Why an object is not ready.

    Raises: OperatorError.
    """
    from dynamoctl.inspect.explanation import changed_at, explanation

    changed = None
    if is_behind(stated):
        changed = changed_at(await reading.raw(stated.KIND, stated.key) or {})
    return explanation(stated, now=datetime.now(UTC), changed_at=changed)


def print_explanation(explanation: "Explanation") -> None:
    """Print why an object is not ready, for people."""
    show(*map(visible, explanation.lines))


def _reasons_json(stated: Stated, explanation: "Explanation") -> Object:
    return {
        "kind": stated.KIND.name,
        "namespace": stated.metadata.namespace,
        "name": stated.metadata.name,
        "ready": is_ready(stated),
        "said": explanation.said,
        "advice": explanation.advice,
    }


def _print_status(stated: Stated, output: str) -> None:
    from dynamoctl.inspect.overview import overview, overview_json

    if output == "json":
        show_json(overview_json(stated))
    else:
        show(*overview(stated, now=datetime.now(UTC)))


def _code(is_well: bool) -> ExitCode:
    return ExitCode.OK if is_well else ExitCode.PROBLEMS
