"""`dynamoctl tree`, `status` and `why`: each reads one object, and says how it stands. Nothing is changed.

The texts are made by `tree`, `overview` and `explanation`; here is what is asked of the API server, and how
a command ends.
"""

import asyncio
import json
import sys
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime

from dynamo_operator.cli.cluster_options import Where
from dynamo_operator.cli.errors import ExitCode, visible
from dynamo_operator.cli.explanation import NOUNS, changed_at, explanation
from dynamo_operator.cli.named import GRAPHS, STATED, named
from dynamo_operator.cli.overview import overview, overview_json
from dynamo_operator.cli.watching import states
from dynamo_operator.installation.reading import Reading
from dynamo_operator.kube.connect import connect, default_namespace
from dynamo_operator.kube.errors import NotFound, OperatorError
from dynamo_operator.kube.kind import Key, Object
from dynamo_operator.status.standing import Stated, is_behind, is_ready

_UNLIMITED = 10_000
"""Characters of a line that no terminal shows."""


class Missing(OperatorError):
    """There is no such object, or no such kind of object."""


@dataclass(frozen=True, slots=True)
class _Place:
    """An object to be looked at, and the cluster that it is in."""

    reading: Reading
    type_: type[Stated]
    key: Key

    async def found(self) -> Stated:
        """The object.

        Raises:
            Missing: it is not there.
        """
        try:
            return await self.reading.client.get(self.type_, self.key)
        except NotFound as error:
            if (error.details or {}).get("name") == self.key.name:
                raise self.missing() from None
            kind = self.type_.KIND
            raise Missing(f"{kind} is not served; `dynamoctl check` says what is there") from None

    def missing(self) -> Missing:
        """That the object is not there."""
        return Missing(
            f"there is no {NOUNS[self.type_]} {self.key.name} in namespace {self.key.namespace}"
        )


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
    from rich.console import Console

    from dynamo_operator.cli.members import members
    from dynamo_operator.cli.tree import drawn, grown, tree_json

    async with _place(name, where, GRAPHS) as place:
        graph = await place.found()
        found = await members(place.reading.client, graph.key)
    node = grown(graph, found.by_owner, now=datetime.now(UTC))
    for each in found.unread:
        print(f"warning: {visible(each)}", file=sys.stderr)
    if output == "json":
        _print_json(tree_json(node))
    else:
        width = None if sys.stdout.isatty() else _UNLIMITED  # a file has no margin to wrap at
        Console(highlight=False, width=width).print(drawn(node))
    return _code(is_ready(graph))


async def _status(name: str, where: Where, output: str, *, watch: bool) -> ExitCode:
    async with _place(name, where, STATED) as place:
        stated = await place.found()
        _print_status(stated, output)
        if watch and not is_ready(stated):
            stated = await _once_ready(place, stated, output)
    return _code(is_ready(stated))


async def _why(name: str, where: Where, output: str) -> ExitCode:
    async with _place(name, where, STATED) as place:
        stated = await place.found()
        changed = None
        if is_behind(stated):
            changed = changed_at(await place.reading.raw(place.type_.KIND, place.key) or {})
    told = explanation(stated, now=datetime.now(UTC), changed_at=changed)
    if output == "json":
        _print_json(
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
        _print_lines([*told.said, *(f"→ {each}" for each in told.advice)])
    return _code(is_ready(stated))


@asynccontextmanager
async def _place(name: str, where: Where, types: tuple[type[Stated], ...]) -> AsyncIterator[_Place]:
    type_, plain = named(name, types)
    async with await connect(where.kubeconfig, where.context or None) as transport:
        namespace = where.namespace or await default_namespace(transport)
        yield _Place(Reading(transport), type_, Key(namespace, plain))


async def _once_ready(place: _Place, before: Stated, output: str) -> Stated:
    """The object once it is ready; each of its changes has been printed."""
    async with aclosing(states(place.reading.client, place.type_, place.key)) as found:
        async for stated in found:
            if stated.metadata.resource_version == before.metadata.resource_version:
                continue  # the list has what was read a moment ago
            if output == "text":
                print()
            _print_status(stated, output)
            if is_ready(stated):
                return stated
    raise place.missing()


def _print_status(stated: Stated, output: str) -> None:
    if output == "json":
        _print_json(overview_json(stated))
    else:
        _print_lines(overview(stated, now=datetime.now(UTC)))


def _print_json(body: Object) -> None:
    print(json.dumps(body, indent=2), flush=True)


def _print_lines(lines: list[str]) -> None:
    print("\n".join(visible(each) for each in lines), flush=True)


def _code(is_well: bool) -> ExitCode:
    return ExitCode.OK if is_well else ExitCode.PROBLEMS
