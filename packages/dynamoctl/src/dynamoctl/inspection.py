"""`dynamoctl tree`, `status` and `why`: each reads one object, and says how it stands. Nothing is changed.

The texts are made by `tree`, `overview` and `explanation`; here is what is asked of the API server, and how
a command ends.
"""

import asyncio
from contextlib import aclosing
from datetime import UTC, datetime

from dynamo_graphs.status.readiness import Stated, is_behind, is_ready
from dynamoctl.cluster_options import Where
from dynamoctl.resource_args import GRAPHS, STATED
from dynamoctl.screen import show, show_json, warn
from dynamoctl.target import Target, place
from kube_runtime.commandline.errors import ExitCode, visible


def print_tree(name: str, where: Where, output: str) -> ExitCode:
    """Print the objects of a graph; the exit code says whether it is ready.

    Raises: CycloptsError; OperatorError, or a group of them.
    """
    return asyncio.run(_tree(name, where, output))


def print_status(name: str, where: Where, output: str, *, watch: bool) -> ExitCode:
    """Print how an object stands, again on each change if it is watched, until it is ready.

    Raises: CycloptsError; OperatorError.
    """
    return asyncio.run(_status(name, where, output, watch=watch))


def print_reasons(name: str, where: Where, output: str) -> ExitCode:
    """Print why an object is not ready; the exit code says whether it is.

    Raises: CycloptsError; OperatorError.
    """
    return asyncio.run(_why(name, where, output))


async def _tree(name: str, where: Where, output: str) -> ExitCode:
    from dynamoctl.members import members
    from dynamoctl.tree import drawn, grown, tree_json

    async with place(name, where, GRAPHS) as at:
        graph = await at.found()
        found = await members(at.reading.client, graph.key)
    node = grown(graph, found.by_owner, now=datetime.now(UTC))
    for each in found.unread:
        warn(each)
    if output == "json":
        show_json(tree_json(node))
    else:
        show(drawn(node))
    return _code(is_ready(graph))


async def _status(name: str, where: Where, output: str, *, watch: bool) -> ExitCode:
    async with place(name, where, STATED) as at:
        stated = await at.found()
        _print_status(stated, output)
        if watch and not is_ready(stated):
            stated = await _once_ready(at, stated, output)
    return _code(is_ready(stated))


async def _why(name: str, where: Where, output: str) -> ExitCode:
    from dynamoctl.explanation import changed_at, explanation

    async with place(name, where, STATED) as at:
        stated = await at.found()
        changed = None
        if is_behind(stated):
            changed = changed_at(await at.reading.raw(at.type_.KIND, at.key) or {})
    told = explanation(stated, now=datetime.now(UTC), changed_at=changed)
    if output == "json":
        show_json(
            {
                "kind": stated.KIND.name,
                "namespace": stated.metadata.namespace,
                "name": stated.metadata.name,
                "ready": is_ready(stated),
                "said": told.said,
                "advice": told.advice,
            }
        )
    else:
        print(
            "\n".join(map(visible, [*told.said, *(f"→ {each}" for each in told.advice)])),
            flush=True,
        )
    return _code(is_ready(stated))


async def _once_ready(at: Target[Stated], before: Stated, output: str) -> Stated:
    """The object once it is ready; each of its changes has been printed."""
    from dynamoctl.watching import states

    async with aclosing(states(at.reading.client, at.type_, at.key)) as found:
        async for stated in found:
            if stated.metadata.resource_version == before.metadata.resource_version:
                continue  # the list has what was read a moment ago
            if output == "text":
                print()
            _print_status(stated, output)
            if is_ready(stated):
                return stated
    raise at.missing()


def _print_status(stated: Stated, output: str) -> None:
    from dynamoctl.overview import overview, overview_json

    if output == "json":
        show_json(overview_json(stated))
    else:
        show(*overview(stated, now=datetime.now(UTC)))


def _code(is_well: bool) -> ExitCode:
    return ExitCode.OK if is_well else ExitCode.PROBLEMS
