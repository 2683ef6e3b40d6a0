"""Whose a namespace is: the marker Lease that a restricted operator writes and a cluster-wide one reads.

Names and texts are those of the Go operator, so that either may stand beside one of ours. What a forged
Lease can do is in `docs/tenancy.md`.
"""

from dataclasses import dataclass

from dynamo_graphs.product import version
from dynamo_graphs.settings import Settings
from kube_runtime.cache.informer import Informer
from kube_runtime.client.requests import Client
from kube_runtime.controller.manager import Manager
from kube_runtime.coordination.excluded_namespaces import Exclusions
from kube_runtime.coordination.namespace_lease import MarkerTerms, NamespaceLease
from kube_runtime.kind import Key
from kube_runtime.types.coordination import Lease

LEASE = "dynamo-operator-namespace-scope"
"""The name of the marker Lease."""

_REPLICAS = "replica.dynamo.nvidia.com"


@dataclass(frozen=True, slots=True)
class Scope:
    """The part of the cluster that this operator works in.

    `marker` is that of a restricted operator; a cluster-wide one has `exclusions`, filled by `informers`.
    """

    marker: NamespaceLease | None
    exclusions: Exclusions | None
    informers: tuple[Informer[Lease], ...]

    def is_excluded(self, namespace: str) -> bool:
        """Whether that namespace belongs to another operator now: nothing is written or validated there."""
        return self.exclusions is not None and self.exclusions.is_excluded(namespace)

    def excluded(self) -> int:
        """The number of namespaces that belong to others."""
        return len(self.exclusions) if self.exclusions is not None else 0

    def holds_lease(self) -> bool:
        """Whether the namespace of a restricted operator still counts as its own."""
        return self.marker is None or self.marker.holds_lease()

    async def claim(self) -> None:
        """Mark the namespace of a restricted operator, before anything is done in it.

        Raises:
            OperatorError: that did not work.
        """
        if self.marker is not None:
            await self.marker.claim()

    async def release(self) -> None:
        """Give the namespace back at once; after an orderly stop only."""
        if self.marker is not None:
            await self.marker.release()

    def join(self, manager: Manager) -> None:
        """Have the manager keep the marker or watch those of others, on every replica."""
        for informer in self.informers:
            manager.inform(informer)
        if self.marker is not None:
            manager.serve(self.marker)
            self.marker.on_regained(manager.wake_namespace)
        if self.exclusions is not None:
            manager.serve(self.exclusions)
            self.exclusions.on_end(manager.wake_namespace)


def scope_of(client: Client, settings: Settings) -> Scope:
    """The scope that the settings ask for; nothing is written yet."""
    namespace = settings.render.restricted_namespace
    if not namespace:
        # Memory and traffic follow the number of restricted operators: no other Lease is ever sent.
        informer = Informer(Lease, fields=f"metadata.name={LEASE}")
        return Scope(None, Exclusions(client, informer.store), (informer,))
    chosen = settings.namespace_scope
    marker = NamespaceLease(
        client,
        Key(namespace, LEASE),
        holder=f"namespace-restricted-operator-{settings.operator_version or version()}",
        replicas=_REPLICAS,
        terms=MarkerTerms(chosen.lease_duration_seconds, chosen.renew_interval_seconds),
    )
    return Scope(marker, None, ())
