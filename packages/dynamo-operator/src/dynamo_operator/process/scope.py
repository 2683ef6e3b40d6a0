"""Namespace leases: a restricted operator holds one, and a cluster-wide one stays out of its namespace.

Names and texts are those of the Go operator, so both operators respect each other. `docs/tenancy.md`
describes what a forged Lease can do.
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
    """The namespaces that this operator manages.

    `marker` is the lease of a restricted operator; a cluster-wide one has `exclusions`, filled by
    `informers`.
    """

    marker: NamespaceLease | None
    exclusions: Exclusions | None
    informers: tuple[Informer[Lease], ...]

    def is_excluded(self, namespace: str) -> bool:
        """Whether another operator manages that namespace now: nothing is written or validated there."""
        return self.exclusions is not None and self.exclusions.is_excluded(namespace)

    def excluded(self) -> int:
        """The number of namespaces that other operators manage."""
        return len(self.exclusions) if self.exclusions is not None else 0

    def holds_lease(self) -> bool:
        """Whether a restricted operator holds the lease of its namespace; True for a cluster-wide one."""
        return self.marker is None or self.marker.holds_lease()

    async def claim(self) -> None:
        """Acquire the lease of a restricted operator's namespace, before anything else is written there.

        Raises:
            OperatorError: that failed.
        """
        if self.marker is not None:
            await self.marker.claim()

    async def release(self) -> None:
        """Release the lease, after an orderly stop only."""
        if self.marker is not None:
            await self.marker.release()

    def join(self, manager: Manager) -> None:
        """Have the manager renew the lease, or watch those of others, on every replica."""
        for informer in self.informers:
            manager.inform(informer)
        if self.marker is not None:
            manager.serve(self.marker)
            self.marker.on_regained(manager.wake_namespace)
        if self.exclusions is not None:
            manager.serve(self.exclusions)
            self.exclusions.on_end(manager.wake_namespace)


def scope_of(client: Client, settings: Settings) -> Scope:
    """The scope that the settings describe; nothing is written yet."""
    namespace = settings.render.restricted_namespace
    if not namespace:
        # Only leases of restricted operators are sent, not the many of nodes and controllers.
        informer = Informer(Lease, fields=f"metadata.name={LEASE}")
        return Scope(None, Exclusions(client, informer.store), (informer,))
    lease_settings = settings.namespace_scope
    marker = NamespaceLease(
        client,
        Key(namespace, LEASE),
        holder=f"namespace-restricted-operator-{settings.operator_version or version()}",
        replicas=_REPLICAS,
        terms=MarkerTerms(
            lease_settings.lease_duration_seconds, lease_settings.renew_interval_seconds
        ),
    )
    return Scope(marker, None, ())
