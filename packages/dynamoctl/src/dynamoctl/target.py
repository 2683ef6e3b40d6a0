"""The cluster of a command line, and the object that a command is about: `chat` or `dgd/chat`."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from cyclopts import CycloptsError

from dynamo_graphs.graph import AsyncCluster
from dynamo_graphs.reader import GRAPHS, NAME, S, Target
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamoctl.options import Where
from dynamoctl.screen import seconds
from kube_runtime.client.connect import Overrides
from kube_runtime.errors import ConfigError
from kube_runtime.types.meta import Key


def parse_object(text: str, types: tuple[type[S], ...]) -> tuple[type[S], str]:
    """The type and the name in `NAME` or `KIND/NAME`; without a kind, the first of the types.

    Raises: CycloptsError if it is another kind, or not a name.
    """
    kind, slash, name = text.rpartition("/")
    if not NAME.fullmatch(name) or "/" in kind or (slash and not kind):
        raise CycloptsError(f'invalid name "{text}" (expected NAME or KIND/NAME, for example dgd/chat)')
    if not slash:
        return types[0], name
    return type_named(kind, types), name


def parse_graph(text: str) -> str:
    """The name of the graph in `NAME` or `dgd/NAME`. Raises: CycloptsError."""
    return parse_object(text, GRAPHS)[1]


def parse_service(text: str) -> tuple[str, str]:
    """The graph and the service of `GRAPH/SERVICE` or `dgd/GRAPH/SERVICE`; "" as service of a graph alone.

    Raises: CycloptsError.
    """
    kind, _, rest = text.partition("/")
    target = rest if rest and kind.lower() in _names(DynamoGraphDeployment) else text
    graph, slash, service = target.partition("/")
    if not NAME.fullmatch(graph) or (slash and not service):
        raise CycloptsError(
            f'invalid target "{text}" (expected GRAPH or GRAPH/SERVICE, for example chat/Decode)'
        )
    return graph, service


def type_named(kind: str, types: tuple[type[S], ...]) -> type[S]:
    """The type by any name that kubectl accepts for its kind. Raises: CycloptsError."""
    chosen = next((type_ for type_ in types if kind.lower() in _names(type_)), None)
    if chosen is None:
        names = [type_.DEFINITION.short_names[0] for type_ in types]
        expected = f"one of {', '.join(names)}" if len(names) > 1 else names[0]
        raise CycloptsError(f'unsupported kind "{kind}" (expected {expected})')
    return chosen


def _names(type_: Any) -> set[str]:
    kind, definition = type_.KIND, type_.DEFINITION
    full = {kind.name.lower(), kind.plural}
    grouped = {f"{name}{version}.{kind.group}" for name in full for version in ("", f".{kind.version}")}
    return {*definition.short_names, *full, *grouped}


def namespace_in_words(namespace: str) -> str:
    """A namespace in words; "" is any namespace."""
    return f"namespace {namespace}" if namespace else "any namespace"


def cluster(where: Where) -> AsyncCluster:
    """The cluster of a command line, for `async with`. Raises: CycloptsError if the namespace is no name."""
    overrides = _overrides(where)
    try:
        return AsyncCluster(
            namespace=where.namespace,
            context=where.context,
            kubeconfig=where.kubeconfig,
            overrides=overrides,
        )
    except ConfigError:
        message = f'invalid namespace "{where.namespace}" (expected a name, for example prod)'
        raise CycloptsError(message) from None


def _overrides(where: Where) -> Overrides:
    """What the flags of kubectl choose beside the context. Raises: CycloptsError."""
    if where.as_groups and not where.as_user:
        raise CycloptsError("--as-group requires --as, for example --as jane --as-group developers")
    impersonated = [("Impersonate-User", where.as_user)] if where.as_user else []
    impersonated += [("Impersonate-Group", group) for group in where.as_groups]
    text = where.request_timeout
    limit = int(text) if text.isascii() and text.isdigit() else seconds(text) if text else 0
    return Overrides(where.cluster, where.user, tuple(impersonated), limit or None)


@asynccontextmanager
async def target_of(name: str, where: Where, types: tuple[type[S], ...]) -> AsyncIterator[Target[S]]:
    """Connect to the cluster of the object with that name. Raises: CycloptsError; OperatorError."""
    type_, plain = parse_object(name, types)
    async with cluster(where) as at:
        yield Target(at.reading, type_, Key(at.namespace, plain))
