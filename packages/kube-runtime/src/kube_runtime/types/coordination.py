"""coordination.k8s.io/v1: Lease."""

from kube_runtime.kind import Kind
from kube_runtime.types.meta import Resource, Struct


class LeaseSpec(Struct):
    """The holder of a Lease. Times are RFC 3339 in UTC, with microseconds."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int = 0


class Lease(Resource):
    """A Lease, for leader election and the ownership of namespaces."""

    KIND = Kind("coordination.k8s.io", "v1", "Lease", "leases")

    spec: LeaseSpec = LeaseSpec()
