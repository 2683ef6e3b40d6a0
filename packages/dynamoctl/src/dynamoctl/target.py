"""The cluster of a command line, and the object that a command is about: `chat` or `dgd/chat`."""

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from cyclopts import CycloptsError

from dynamo_graphs.graph import AsyncCluster
from dynamo_graphs.reader import CONVERTED, GRAPHS, NAME, NAME_IN_WORDS, NOUNS, STATED, S, Target
from dynamo_operator.component.api import GROUP, LATER
from dynamo_operator.graph.api import DynamoGraphDeployment
from dynamo_operator.shared.conditions import Stated
from dynamo_operator.shared.problems import nearest
from dynamoctl.options import Where
from dynamoctl.screen import seconds
from kube_runtime.client.kubeconfig import Overrides
from kube_runtime.errors import ConfigError
from kube_runtime.types.meta import Key


def parse_object(text: str, types: tuple[type[S], ...]) -> tuple[type[S], str]:
    """The type and the name in `NAME` or `KIND/NAME`; without a kind, the first of the types.

    Raises: CycloptsError if it is another kind, or not a name.
    """
    kind, slash, name = text.rpartition("/")
    if not NAME.fullmatch(name) or "/" in kind or (slash and not kind):
        expected = f"NAME or KIND/NAME of {NAME_IN_WORDS}" if name else "NAME or KIND/NAME"
        raise CycloptsError(f'invalid name "{text}" (expected {expected}, for example dgd/chat)')
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
        raise CycloptsError(f'unsupported kind "{kind}" (expected {expected}){nearest(kind.lower(), names)}')
    return chosen


_KUBECTL_KINDS = frozenset(
    (
        *("pod", "po", "deployment", "deploy", "replicaset", "rs", "service", "svc", "node", "no"),
        *("namespace", "ns", "configmap", "cm", "secret", "job", "persistentvolumeclaim", "pvc", "crd"),
        *("event", "ev", "ingress", "ing", "statefulset", "sts", "daemonset", "ds", "endpoint", "ep", "hpa"),
    )
)
"""Kinds that people try here, in the singular."""


def parse_selection(words: Sequence[str]) -> list[tuple[type[Stated], tuple[str, ...]]]:
    """The kinds of `dynamoctl get` with the names of objects: no names are all objects of the kind.

    It takes what kubectl takes: `dgd`, `dgd,dm`, `all`, `dgd chat test`, `dgd/chat dm/support`; and `chat`, a
    graph, as the other commands.

    Raises: CycloptsError.
    """
    first, *names = words or ("dgd",)
    if any("/" in word for word in words):
        chosen = dict[type[Stated], tuple[str, ...]]()
        for word in words:
            type_, name = parse_object(word, STATED)
            chosen[type_] = (*chosen.get(type_, ()), name)
        return [*chosen.items()]
    if {first.lower(), first.lower().removesuffix("s")} & _KUBECTL_KINDS:
        command = " ".join(("kubectl get", *words))
        raise CycloptsError(
            f"{first} are no objects of Dynamo (expected `{command}`, or `dynamoctl tree NAME`)"
        )
    if first.lower() == "all" and not names:
        return [(type_, ()) for type_ in STATED]
    if "," in first or any(first.lower() in _names(type_) for type_ in STATED):
        types = dict.fromkeys(type_named(kind, STATED) for kind in first.split(","))
        return [(type_, tuple(map(_valid, names))) for type_ in types]
    return [(DynamoGraphDeployment, tuple(map(_valid, words)))]


def version_in(words: Sequence[str]) -> str:
    """The version in `dgd.v1beta1.nvidia.com`; "" if none is named. Raises: CycloptsError for several."""
    versions = {match[1] for word in words for match in _VERSIONED.finditer(word.lower())}
    if len(versions) > 1:
        raise CycloptsError(f"expected one version (found {', '.join(sorted(versions))})")
    return "".join(versions)


_VERSIONED = re.compile(rf"\.(v[0-9][0-9a-z]{{0,15}})\.{re.escape(GROUP)}(?=[/,]|$)")


def _valid(name: str) -> str:
    return parse_object(name, STATED)[1]


def _names(type_: Any) -> set[str]:
    kind, definition = type_.KIND, type_.DEFINITION
    noun = NOUNS[type_]
    full = {kind.name.lower(), kind.plural, noun, f"{noun}s"}
    all_names = {*definition.short_names, *full}
    versions = ("", f".{kind.version}", *((f".{LATER}",) if type_ in CONVERTED else ()))
    return {*all_names, *(f"{name}{version}.{kind.group}" for name in all_names for version in versions)}


def namespace_in_words(namespace: str) -> str:
    """A namespace in words; "" is any namespace."""
    return f"namespace {namespace}" if namespace else "any namespace"


def cluster(where: Where) -> AsyncCluster:
    """The cluster of a command line, for `async with`. Raises: CycloptsError if the namespace is no name."""
    overrides = _overrides(where)
    try:
        return AsyncCluster(
            namespace=where.namespace, context=where.context, kubeconfig=where.kubeconfig, overrides=overrides
        )
    except ConfigError:
        message = f'invalid namespace "{where.namespace}" (expected {NAME_IN_WORDS}, for example prod)'
        raise CycloptsError(message) from None


def _overrides(where: Where) -> Overrides | None:
    """What the flags of kubectl choose beside the context. Raises: CycloptsError."""
    if where.as_groups and not where.as_user:
        raise CycloptsError("--as-group requires --as, for example --as jane --as-group developers")
    impersonated = [("Impersonate-User", where.as_user)] if where.as_user else []
    impersonated += [("Impersonate-Group", group) for group in where.as_groups]
    text = where.request_timeout
    limit = int(text) if text.isascii() and text.isdigit() else seconds(text) if text else 0
    overrides = Overrides(where.cluster, where.user, tuple(impersonated), limit or None)
    return overrides if overrides != Overrides() else None


@asynccontextmanager
async def target_of(name: str, where: Where, types: tuple[type[S], ...]) -> AsyncIterator[Target[S]]:
    """Connect to the cluster of the object with that name. Raises: CycloptsError; OperatorError."""
    type_, plain = parse_object(name, types)
    async with cluster(where) as at:
        yield Target(at.reading, type_, Key(at.namespace, plain))
