"""Cluster-wide names (Dynamo namespaces, Ingress hosts), and which namespaces use them.

Kubernetes keeps names of two namespaces apart; two sorts of ours are wider. The Dynamo namespace of graph
`c` in `a-b` is that of graph `b-c` in `a`, and over etcd or NATS their processes find each other. And a host
of an Ingress is served by one of its Ingresses. Neither can be refused: the second gets a warning.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Generic

import msgspec

from dynamo_graphs.api import names
from dynamo_graphs.api.graph import DynamoGraphDeployment
from kube_runtime.cache.cache import Cache
from kube_runtime.cache.store import Change
from kube_runtime.types.meta import R
from kube_runtime.types.networking import Ingress


class _Rule(msgspec.Struct):
    host: str = ""


class _Spec(msgspec.Struct):
    rules: tuple[_Rule, ...] = ()


@dataclass(slots=True)
class Owners(Generic[R]):
    """The namespaces of objects by the names that they use, kept up to date with a store."""

    claims: Callable[[R], Iterable[str]]
    namespaces: dict[str, Counter[str]] = field(default_factory=dict)

    def heard(self, change: Change[R]) -> None:
        """Apply a change."""
        for state, by in ((change.old, -1), (change.new, 1)):
            if state is not None:
                for name in self.claims(state):
                    self._count(name, state.metadata.namespace, by)

    def _count(self, name: str, namespace: str, by: int) -> None:
        namespaces = self.namespaces.setdefault(name, Counter())
        namespaces[namespace] += by
        if namespaces[namespace] <= 0:
            del namespaces[namespace]
        if not namespaces:
            del self.namespaces[name]

    def outside(self, namespace: str) -> "Outside[R]":
        """Names that other namespaces use."""
        return Outside(self, namespace)


@dataclass(frozen=True, slots=True)
class Outside(Generic[R]):
    """Names that other namespaces than one use, looked up on demand."""

    owners: Owners[R]
    namespace: str

    def __contains__(self, name: object) -> bool:
        namespaces = self.owners.namespaces.get(str(name), ())
        return len(namespaces) > (self.namespace in namespaces)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.owners.namespaces if name in self)


@dataclass(frozen=True, slots=True)
class SharedNames:
    """Both sorts of names."""

    graphs: Owners[DynamoGraphDeployment]
    hosts: Owners[Ingress]


def shared_names(cache: Cache) -> SharedNames:
    """Index the names of the objects in the cache, and keep the index up to date."""
    shared = SharedNames(Owners(_dynamo_namespaces), Owners(_hosts))
    if cache.holds(DynamoGraphDeployment):
        cache.subscribe(DynamoGraphDeployment, shared.graphs.heard)
    if cache.holds(Ingress):
        cache.subscribe(Ingress, shared.hosts.heard)
    return shared


def _dynamo_namespaces(graph: DynamoGraphDeployment) -> tuple[str, ...]:
    return (names.dynamo_namespace(graph.metadata.namespace, graph.metadata.name),)


def _hosts(ingress: Ingress) -> frozenset[str]:
    try:
        rules = msgspec.json.decode(ingress.spec, type=_Spec).rules
    except msgspec.DecodeError:
        return frozenset()  # the API server would not have stored it
    return frozenset(rule.host for rule in rules if rule.host)
