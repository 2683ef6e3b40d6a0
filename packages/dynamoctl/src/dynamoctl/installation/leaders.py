"""Which operators work in a cluster, by the Leases that they hold."""

from datetime import datetime

from dynamoctl.installation.checks import CheckResult, Finding
from kube_runtime.times import seconds_between
from kube_runtime.types.coordination import Lease

LEADER = "Cluster-wide Operator"


def leader(lease: Lease | None, now: datetime, *, is_before: bool) -> Finding:
    """Whether an operator leads in the whole cluster. Before an installation, one is a second one."""
    if lease is None or not lease.spec.holder_identity:
        return Finding(LEADER, CheckResult.OK, "no operator leads")
    holder = lease.spec.holder_identity
    if not _is_held(lease, now):
        return Finding(
            LEADER, CheckResult.OK, (f"no operator leads; {holder} did until its Lease expired")
        )
    text = f"{holder} leads, by Lease {lease.metadata.namespace}/{lease.metadata.name}"
    if not is_before:
        return Finding(LEADER, CheckResult.OK, text)
    remedy = "upgrade that release, or install for one namespace: namespaceRestriction.enabled=true"
    return Finding(LEADER, CheckResult.WARNING, text, remedy)


def _is_held(lease: Lease, now: datetime) -> bool:
    age = seconds_between(lease.spec.renew_time, now)
    return age is not None and age < (lease.spec.lease_duration_seconds or 0)
