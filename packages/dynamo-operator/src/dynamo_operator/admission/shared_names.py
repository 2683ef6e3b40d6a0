"""Index cluster-wide names (Dynamo namespaces, Ingress hosts) by the namespaces that use them.

Two kinds of names are not scoped to a Kubernetes namespace. Graph `c` in `a-b` and graph `b-c` in `a` have
the same Dynamo namespace, and over etcd or NATS their processes find each other. A host is served by one of
the Ingresses that name it. Neither can be refused: the second user gets a warning.
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
    """The namespaces of objects by the names that they use, updated from the cache."""

    claims: Callable[[R], Iterable[str]]
    namespaces: dict[str, Counter[str]] = field(default_factory=dict)

    def on_change(self, change: Change[R]) -> None:
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
        """The names that other namespaces use."""
        return Outside(self, namespace)


@dataclass(frozen=True, slots=True)
class Outside(Generic[R]):
    """The names that namespaces other than `namespace` use, looked up on demand."""

    owners: Owners[R]
    namespace: str

    def __contains__(self, name: object) -> bool:
        namespaces = self.owners.namespaces.get(str(name), ())
        return len(namespaces) > (self.namespace in namespaces)

    def __iter__(self) -> Iterator[str]:
        return (name for name in self.owners.namespaces if name in self)


@dataclass(frozen=True, slots=True)
class SharedNames:
    """The indices of Dynamo namespaces and of Ingress hosts."""

    graphs: Owners[DynamoGraphDeployment]
    hosts: Owners[Ingress]


def shared_names(cache: Cache) -> SharedNames:
    """Index the names of the objects in the cache, and keep the index up to date."""
    shared = SharedNames(Owners(_dynamo_namespaces), Owners(_hosts))
    if cache.holds(DynamoGraphDeployment):
        cache.subscribe(DynamoGraphDeployment, shared.graphs.on_change)
    if cache.holds(Ingress):
        cache.subscribe(Ingress, shared.hosts.on_change)
    return shared


def _dynamo_namespaces(graph: DynamoGraphDeployment) -> tuple[str, ...]:
    return (names.dynamo_namespace(graph.metadata.namespace, graph.metadata.name),)


def _hosts(ingress: Ingress) -> frozenset[str]:
    try:
        rules = msgspec.json.decode(ingress.spec, type=_Spec).rules
    except msgspec.DecodeError:
        return frozenset()  # the API server stores no such Ingress
    return frozenset(rule.host for rule in rules if rule.host)
