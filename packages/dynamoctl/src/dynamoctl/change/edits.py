"""`dynamoctl scale`, `suspend`, `resume` and `rollout`: each writes one field of one object.

The operator does the rest, as after an edit with kubectl. A write names the uid that was read, and nothing is
written if the object already has the value.
"""

import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime

from cyclopts import CycloptsError

from dynamo_graphs.api import labels
from dynamo_graphs.api.component import has_adapter
from dynamo_graphs.api.graph import DynamoGraphDeployment
from dynamo_graphs.api.scaling import DynamoGraphDeploymentScalingAdapter
from dynamo_graphs.status.readiness import Stated
from dynamoctl.change.patches import (
    Edit,
    adapter_of,
    marked,
    obstacles,
    replicas_by_adapter,
    replicas_by_graph,
    restarted,
)
from dynamoctl.cluster.target import GRAPHS, STATED, Target, parse_service, service_of, target_of
from dynamoctl.installation.cluster_reader import Reading
from dynamoctl.options import Where
from kube_runtime.client.requests import Client
from kube_runtime.commandline.errors import visible
from kube_runtime.errors import Conflict

_TRIES = 5
"""Most attempts to read a graph and patch it when a conflicting write came between."""

MANAGER = "dynamoctl"
"""The field manager of all writes of this program."""


async def scale(name: str, replicas: int, where: Where) -> None:
    """Set the replicas of a service: `name` is GRAPH/SERVICE.

    Raises: CycloptsError; OperatorError.
    """
    graph, service = parse_service(name)
    if not service:
        raise CycloptsError(
            f'invalid target "{name}" (expected GRAPH/SERVICE, for example chat/Decode)'
        )
    async with target_of(graph, where, GRAPHS) as at:
        done = await scaled(at, service, replicas)
    print_edit(done.said, done.obstacles)


async def suspend(name: str, where: Where, *, is_on: bool) -> None:
    """Suspend a graph, or resume it.

    Raises: CycloptsError; OperatorError.
    """
    await _mark(name, where, GRAPHS, labels.SUSPEND, is_on=is_on)


async def pause(name: str, where: Where, *, is_on: bool) -> None:
    """Pause an object of our kinds, or resume it.

    Raises: CycloptsError; OperatorError.
    """
    await _mark(name, where, STATED, labels.PAUSED, is_on=is_on)


async def restart(name: str, where: Where) -> None:
    """Restart all services of a graph.

    Raises: CycloptsError; OperatorError.
    """
    async with target_of(name, where, GRAPHS) as at:
        graph = await at.get()
        edit = restarted(graph, datetime.now(UTC))
        await _fulfil(at.reading.client, graph, edit)
    print_edit(edit.message, obstacles(graph))


@dataclass(frozen=True, slots=True)
class Scaled:
    """The change, as a sentence without its full stop, and what prevents it for now."""

    said: str
    obstacles: tuple[str, ...]


async def scaled(at: Target[DynamoGraphDeployment], service: str, replicas: int) -> Scaled:
    """Set the replicas of a service, of its scaling adapter if it has one.

    Raises:
        Missing: there is no such graph or service.
        Unwritable: the number is not a multiple of the graph's `spec.replicas`.
        OperatorError: the API server refuses it.
    """
    for tries_left in reversed(range(_TRIES)):
        graph = await at.get()
        try:
            return await _scaled_as_read(at.reading, graph, service, replicas)
        except Conflict:
            if not tries_left:
                raise
    raise AssertionError("the last try returns or raises")


async def _scaled_as_read(
    reading: Reading, graph: DynamoGraphDeployment, service: str, replicas: int
) -> Scaled:
    if not has_adapter(service_of(graph, service)):
        edit = replicas_by_graph(graph, service, replicas)
        await _fulfil(reading.client, graph, edit)
        return Scaled(edit.message, tuple(obstacles(graph)))
    kind, namespace = DynamoGraphDeploymentScalingAdapter, graph.metadata.namespace
    adapter = adapter_of(graph, service, await reading.all(kind, namespace=namespace))
    edit = replicas_by_adapter(adapter, replicas)
    await _fulfil(reading.client, adapter, edit)
    return Scaled(edit.message, (*obstacles(graph), *obstacles(adapter)))


async def _mark(
    name: str, where: Where, types: tuple[type[Stated], ...], key: str, *, is_on: bool
) -> None:
    async with target_of(name, where, types) as at:
        stated = await at.get()
        edit = marked(stated, key, is_on=is_on)
        await _fulfil(at.reading.client, stated, edit)
    besides = (key,) if key == labels.SUSPEND else (key, labels.SUSPEND)
    print_edit(edit.message, obstacles(stated, besides))


async def _fulfil(client: Client, stated: Stated, edit: Edit) -> None:
    """Write the edit, unless there is nothing to change."""
    if edit.patch is not None:
        uid = stated.metadata.uid
        await client.merge_patch(
            type(stated), stated.key, edit.patch, uid=uid, field_manager=MANAGER
        )


def print_edit(done: str, blocked_by: Iterable[str]) -> None:
    """Print the change, a sentence without its full stop, and on stderr what prevents it."""
    print(visible(f"{done}."))
    for obstacle in blocked_by:
        print(visible(f"note: {obstacle}"), file=sys.stderr)
