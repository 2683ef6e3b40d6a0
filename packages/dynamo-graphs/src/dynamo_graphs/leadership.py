"""Whether an operator runs that manages a namespace: by the Leases that operators renew."""

import asyncio
from dataclasses import dataclass
from datetime import datetime

from dynamo_graphs.ages import ago, since
from dynamo_graphs.reader import Reading
from dynamo_operator.names import MARKER_LEASE
from kube_runtime.errors import Forbidden
from kube_runtime.times import instant, rfc3339, seconds_between
from kube_runtime.types.kinds import Lease
from kube_runtime.types.meta import Key

ELECTION_LEASE = Key("kube-system", "dynamo.nvidia.com")
"""The Lease of cluster-wide operators."""

PODS = "control-plane=controller-manager"
"""The label of the pods of operators."""

REMEDY = (
    f"`kubectl get pods -A -l {PODS}` shows its pods, and why they do not run. "
    "On a local control plane, `dynamoctl dev up` starts it. If none is installed: "
    "`dynamoctl install --print | kubectl apply --server-side -f -`."
)
"""What to do if no operator runs."""


@dataclass(frozen=True, slots=True)
class Leadership:
    """The Lease of cluster-wide operators, and the one of an operator of the namespace; None without one.

    `is_known` is False if the user may not read them.
    """

    cluster_wide: Lease | None = None
    marker: Lease | None = None
    is_known: bool = True


UNKNOWN = Leadership(is_known=False)


async def leadership(reading: Reading, namespace: str) -> Leadership:
    """The Leases of the operators that may manage a namespace. Raises: ApiError, Unreachable."""
    try:
        cluster_wide, marker = await asyncio.gather(
            reading.one(Lease, ELECTION_LEASE), reading.one(Lease, Key(namespace, MARKER_LEASE))
        )
        return Leadership(cluster_wide, marker)
    except Forbidden:
        return UNKNOWN


def absence(known: Leadership, now: datetime, *, is_waiting: bool) -> str:
    """A sentence that no operator runs; "" if one does, or if that is unknown.

    An operator without leader election has no Lease. So a missing one only counts if an object has waited
    longer than a running operator takes (`is_waiting`).
    """
    if not known.is_known or is_held(known.marker, now) or is_held(known.cluster_wide, now):
        return ""
    lease = known.cluster_wide or known.marker
    if lease is None:
        return f"No operator runs: none holds the Lease {ELECTION_LEASE}." if is_waiting else ""
    return f"No operator runs: {lapse(lease, now)}. Until one does, changes have no effect."


def lapse(lease: Lease, now: datetime) -> str:
    """How a Lease that no operator holds was lost."""
    renewed = instant(lease.spec.renew_time)  # with microseconds
    time = rfc3339(renewed) if renewed else None
    if holder := lease.spec.holder_identity:
        return f"{holder} has not renewed its Lease {lease.key}{since(time, now)}"
    return f"the last one gave up its Lease {lease.key}{ago(time, now)}"


def is_held(lease: Lease | None, now: datetime) -> bool:
    """Whether an operator holds the Lease."""
    if lease is None or not lease.spec.holder_identity:
        return False
    age = seconds_between(lease.spec.renew_time, now)
    return age is not None and age < (lease.spec.lease_duration_seconds or 0)
